"""The data set of a run, as MLflow's dataset input describes it."""

import json
from typing import Any

MAX_COUNT = 1 << 53
SIZE_FIELDS = ("train_points", "test_points", "features")


def of_run(run: Any) -> list[Any]:
    """Return MLflow's dataset inputs of a run."""
    return list(run.inputs.dataset_inputs) if run.inputs else []


def entries(dataset: Any) -> dict[str, str]:
    """Return the fields of MLflow's data set that have a value, as text."""
    return {key: str(value) for key, value in dict(dataset).items() if value is not None}


def data(run: Any) -> str:
    """Return the data set that a run was given, with its size and fingerprint; empty for none."""
    descriptions = []
    for dataset in (dataset_input.dataset for dataset_input in of_run(run)):
        profile = _profile(dataset.profile)
        size = ", ".join(
            f"{profile[key]} {key.replace('_', ' ')}"
            for key in SIZE_FIELDS
            if _is_size(profile.get(key))
        )
        descriptions.append(
            f"{dataset.name}: {size or 'size unknown'}; fingerprint {dataset.digest}"
        )
    return "; ".join(descriptions)


def sizes(run: Any) -> dict[str, int]:
    """Return the numbers of points and features of a run's data set, where they are recorded."""
    inputs = of_run(run)
    profile = _profile(inputs[0].dataset.profile) if inputs else {}
    return {key: profile[key] for key in SIZE_FIELDS if _is_size(profile.get(key))}


def _is_size(value: Any) -> bool:
    """Return whether a value of a profile is a number of points or features."""
    return type(value) is int and 0 <= value < MAX_COUNT


def _profile(text: str | None) -> dict[str, Any]:
    """Return a data set's profile; nothing where another program wrote it in another form."""
    try:
        profile = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return profile if isinstance(profile, dict) else {}
