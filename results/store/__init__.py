"""Read runs from MLflow into tidy tables; no other room reads MLflow."""
