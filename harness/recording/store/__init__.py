"""The writer of MLflow: the connection, the records of a job, and their files."""

__all__ = ["connection", "places", "records", "writer"]
