"""The one reader of MLflow: runs in, tidy tables out."""

__all__ = [
    "dataset_inputs",
    "errors",
    "job_records",
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
