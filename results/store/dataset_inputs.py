"""What a run says of the data that it was given: MLflow's dataset input."""

import json
from typing import Any

SIZES = ("train_points", "test_points", "features")


def data(run: Any) -> str:
    """Return the data set that a run was given, with its size and fingerprint; empty for none."""
    inputs = run.inputs.dataset_inputs if run.inputs else []
    words = []
    for dataset in (entry.dataset for entry in inputs):
        profile = _profile(dataset.profile)
        size = ", ".join(
            f"{profile[key]} {key.replace('_', ' ')}" for key in SIZES if key in profile
        )
        words.append(f"{dataset.name}: {size or 'size unknown'}; fingerprint {dataset.digest}")
    return "; ".join(words)


def sizes(run: Any) -> dict[str, int]:
    """Return how many points and features the run's data set has, as far as it is recorded."""
    inputs = run.inputs.dataset_inputs if run.inputs else []
    profile = _profile(inputs[0].dataset.profile) if inputs else {}
    return {key: profile[key] for key in SIZES if isinstance(profile.get(key), int)}


def _profile(text: str | None) -> dict[str, Any]:
    """Return what a data set's profile says; nothing where it is another's, in another form."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
