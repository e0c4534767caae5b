"""Results: MLflow in, tables and figures out. Nothing of the rest of the project is known here."""
