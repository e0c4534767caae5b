"""The only room that writes MLflow: records, writer, store, what waits, identity, pages."""
