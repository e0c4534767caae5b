"""The data set of a job, as its record describes it."""

import json
from collections.abc import Mapping

SIZE_FIELDS = ("train_points", "test_points", "features")  # of a data set's profile


def describe(dataset: Mapping[str, str]) -> str:
    """Return a description of a data set: name, size and fingerprint; empty without one."""
    if not dataset:
        return ""
    size = ", ".join(f"{count} {key.replace('_', ' ')}" for key, count in sizes(dataset).items())
    return f"{dataset['name']}: {size}; fingerprint {dataset['digest']}"


def sizes(dataset: Mapping[str, str]) -> dict[str, int]:
    """Return the numbers of points and features of a data set, where they are recorded."""
    profile = json.loads(dataset.get("profile", "{}"))
    return {key: int(profile[key]) for key in SIZE_FIELDS if key in profile}
