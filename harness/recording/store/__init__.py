"""The writer of MLflow: the connection, the records of jobs, and their files."""
