"""The record of a job: made, found again, judged by other rules, kept, copied to MLflow."""
