"""The writer of MLflow: the connection, the records of jobs, and their files."""

__all__ = ["connection", "places", "provenance", "records", "writer"]
