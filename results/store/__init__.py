"""The one reader of MLflow: runs in, tidy tables out."""
