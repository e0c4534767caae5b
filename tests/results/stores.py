"""All that a store holds, read by MLflow's own client, so that two stores can be compared."""

import hashlib
from pathlib import Path

from mlflow import MlflowClient

from normbench.results import names

# What belongs to one store: ids, places on a machine, and the notes that link to ids.
OF_A_STORE = ("mlflow.parentRunId", "imported_from", "mlflow.note.content")
OF_A_STORE += ("folder", "pid", "drawn", "drawn_files")


def everything(uri, folder):
    """Every run of a store by the run that it is a copy of; folder: to read into."""
    client, found, above = MlflowClient(uri), {}, {}
    names_of = {one.experiment_id: one.name for one in client.search_experiments()}
    runs, token = [], None
    while token is None or token:
        page = client.search_runs([*names_of], max_results=1000, page_token=token)
        runs, token = [*runs, *page], page.token or ""
    origins = {
        run.info.run_id: run.data.tags.get(names.ORIGIN.key, run.info.run_id) for run in runs
    }
    for run in runs:
        key, tags = run.info.run_id, run.data.tags
        above[origins[key]] = origins.get(tags.get("mlflow.parentRunId"))
        assert origins[key] not in found, "a run is there twice"
        found[origins[key]] = {
            "experiment": names_of[run.info.experiment_id],
            "name": run.info.run_name,
            "info": (run.info.status, run.info.start_time, run.info.end_time),
            "tags": {name: text for name, text in tags.items() if name not in OF_A_STORE},
            "params": run.data.params,
            "metrics": {name: _history(client, key, name) for name in run.data.metrics},
            "inputs": [_input(given) for given in run.inputs.dataset_inputs],
            "artifacts": dict(_artifacts(client, key, folder, origins)),
        }
    return found, above


def _history(client, run, name):
    points = client.get_metric_history(run, name)
    return sorted((point.step, point.timestamp, repr(point.value)) for point in points)


def _input(given):
    return dict(given.dataset), {tag.key: tag.value for tag in given.tags}


def _artifacts(client, run, folder, origins, path=None):
    for entry in client.list_artifacts(run, path):
        if entry.is_dir:
            yield from _artifacts(client, run, folder, origins, entry.path)
            continue
        content = Path(client.download_artifacts(run, entry.path, str(folder))).read_bytes()
        if entry.path == "jobs.json":  # which names runs
            text = content.decode()
            for own, origin in origins.items():
                text = text.replace(own, origin)
            content = text.encode()
        yield entry.path, hashlib.sha256(content).hexdigest()
