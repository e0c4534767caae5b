"""The one reader of MLflow: runs in, tidy tables out."""

__all__ = [
    "database",
    "dataset_inputs",
    "entities",
    "errors",
    "job_records",
    "local_artifacts",
    "looks",
    "memory",
    "mlflows_own",
    "owner",
    "rows",
    "run_checks",
    "run_labels",
    "runs",
    "state",
    "stores",
    "uris",
]
