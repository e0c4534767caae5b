"""All that a store of MLflow's holds, read by SQL, so that two stores can be compared."""

import hashlib
from collections import defaultdict
from pathlib import Path
from urllib.request import url2pathname

# What belongs to one store: ids, places on a machine, and the notes that link to ids.
OF_A_STORE = ("mlflow.parentRunId", "imported_from", "mlflow.note.content")
OF_A_STORE += ("folder", "pid", "drawn", "drawn_files", "drawn_from", "drawn_in")
POINTS = "select run_uuid, key, step, timestamp, value, cast(is_nan as int)"
TOLD = {
    "tags": "select run_uuid, key, value from tags",
    "params": "select run_uuid, key, value from params",
    "metrics": f"{POINTS} from metrics",
    "last": f"{POINTS} from latest_metrics",
    "inputs": "select destination_id, name, digest, dataset_source_type, dataset_source, "
    "dataset_schema, dataset_profile from inputs join datasets on dataset_uuid = source_id",
    "given": "select destination_id, name, value from inputs join input_tags using (input_uuid)",
}


def everything(store):
    """Every run that is not deleted, by the run that it is a copy of, and the run above each."""
    runs = store.ask(
        "select run_uuid, experiments.name, runs.name, status, start_time, end_time, "
        "artifact_uri from runs join experiments using (experiment_id) "
        "where runs.lifecycle_stage = 'active'"
    )
    told = {key: defaultdict(list) for key in TOLD}
    for key, query in TOLD.items():
        for run, *values in store.ask(query):
            told[key][run].append(tuple(values))
    tags = {run: dict(told["tags"][run]) for run, *_ in runs}
    origins = {run: own.get("imported_from", run) for run, own in tags.items()}
    found = {}
    for run, *info, place in runs:
        own = [entry for entry in told["tags"][run] if entry[0] not in OF_A_STORE]
        every = {key: sorted(entries[run], key=str) for key, entries in told.items()}
        every |= {"info": info, "tags": sorted(own)}
        every["artifacts"] = dict(_artifacts(_folder(place, store.kept), origins))
        assert origins[run] not in found, "a run is there twice"
        found[origins[run]] = every
    above = {run: origins.get(own.get("mlflow.parentRunId")) for run, own in tags.items()}
    return found, {origins[run]: parent for run, parent in above.items()}


def _folder(place, kept):
    if place.startswith("mlflow-artifacts:/"):
        return kept / place.removeprefix("mlflow-artifacts:/").lstrip("/")
    return Path(url2pathname(place.removeprefix("file://")))


def _artifacts(folder, origins):
    for file in sorted(folder.rglob("*")):
        if not file.is_file():
            continue
        content = file.read_bytes()
        if file.name == "jobs.json":  # which names runs
            text = content.decode()
            for own, origin in origins.items():
                text = text.replace(own, origin)
            content = text.encode()
        yield file.relative_to(folder).as_posix(), hashlib.sha256(content).hexdigest()
