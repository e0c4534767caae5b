"""The only room that writes MLflow: records, writer, store, recovery, identity, transfer."""
