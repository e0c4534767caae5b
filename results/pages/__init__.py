"""MLflow's notes, chart views and dashboard."""
