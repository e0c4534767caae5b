"""Read runs from MLflow into tidy tables; no other room reads MLflow."""

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
    "saved_views",
    "state",
    "stores",
    "uris",
]
