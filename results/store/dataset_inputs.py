"""The data set of a run, as MLflow's dataset input describes it."""

import json
from typing import Any

MAX_COUNT = 1 << 53  # of points or features; floats hold all smaller integers exactly
SIZE_FIELDS = ("train_points", "test_points", "features")  # of a data set's profile


def of_run(run: Any) -> list[Any]:
    """Return MLflow's dataset inputs of a run."""
    return list(run.inputs.dataset_inputs) if run.inputs else []


def entries(dataset: Any) -> dict[str, str]:
    """Return the fields of MLflow's data set that have a value, as text."""
    return {key: str(value) for key, value in dict(dataset).items() if value is not None}


def describe(run: Any) -> str:
    """Return a description of a run's data set: name, size and fingerprint; empty without one."""
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
    # A bool is an instance of int, too, but no number here.
    return type(value) is int and 0 <= value < MAX_COUNT


def _profile(text: str | None) -> dict[str, Any]:
    """Return a data set's profile from its JSON text; empty where it is no JSON object."""
    try:
        profile = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return profile if isinstance(profile, dict) else {}
