"""The records of jobs: what is in them, their keys, their folder, and their copy in MLflow."""
