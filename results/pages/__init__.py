"""MLflow's notes, chart views and dashboard."""

__all__ = ["dashboard", "description", "drawn", "publishing", "view"]
