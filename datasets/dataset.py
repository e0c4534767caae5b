"""The value that every loader returns, with the checks that every data set has to pass."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

TASKS = ("binary", "multiclass", "regression", "unlabelled")


class UserError(ValueError):
    """A user's mistake, told in one line: the setting, its value, the rule and the remedy."""


@dataclass(frozen=True)
class Dataset:
    """Points, targets and what is known about them. Build one with `make_dataset`.

    `x` (P, N) holds one point per row. `y` (P,) holds class indices 0..C-1, or real targets for
    regression, or is empty where there are none. `x_test` (Q, N) and `y_test` are empty (Q = 0)
    without a test part.
    """

    name: str
    task: str
    x: NDArray[Any]
    y: NDArray[Any]
    x_test: NDArray[Any]
    y_test: NDArray[Any]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    source: str
    fingerprint: str

    @property
    def classes(self) -> int:
        """The number of classes C; 0 where targets are not classes."""
        return len(self.class_names)


def make_dataset(
    name: str,
    x: Any,
    y: Any = None,
    *,
    source: str,
    x_test: Any = None,
    y_test: Any = None,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
) -> Dataset:
    """Return a checked `Dataset`.

    x: (P, N) numbers, one point per row. y: (P,); class indices where `class_names` are given,
    real targets where they are not, None for unlabelled points. Raises `UserError` that names
    the data set, the place and the remedy.
    """
    points = _points(name, x)
    names = tuple(feature_names or (f"x{n}" for n in range(points.shape[1])))
    _refuse_nonfinite(name, points, names)
    targets = _targets(name, y, len(points), class_names)
    if class_names:
        _refuse_missing_class(name, targets, class_names)
    held_out = _points(name, x_test) if x_test is not None else points[:0]
    _refuse_nonfinite(name, held_out, names)
    held_out_targets = (
        _targets(name, y_test, len(held_out), class_names) if x_test is not None else targets[:0]
    )
    return Dataset(
        name=name,
        task=_task(y, class_names),
        x=points,
        y=targets,
        x_test=held_out,
        y_test=held_out_targets,
        feature_names=names,
        class_names=tuple(class_names or ()),
        source=source,
        fingerprint=_fingerprint(points, targets, held_out, held_out_targets),
    )


def split(dataset: Dataset, test_fraction: float, seed: int) -> Dataset:
    """Return the data set with a share of its points held out as its test part.

    Points are drawn without replacement, class by class (so that the classes keep their shares),
    by a generator of its own seed; 0 leaves the data set as it is.
    """
    if test_fraction == 0:
        return dataset
    if len(dataset.x_test):
        raise UserError(
            f"dataset.test_fraction={test_fraction}: {dataset.name} already has a test part of "
            f"{len(dataset.x_test)} points; set dataset.test_fraction=0 to use that one"
        )
    rng = np.random.default_rng(seed)
    groups = dataset.y if dataset.classes else np.zeros(len(dataset.x), dtype=int)
    held = np.zeros(len(dataset.x), dtype=bool)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        held[rng.permutation(members)[: round(test_fraction * len(members))]] = True
    if not held.any() or len(np.unique(groups[~held])) < len(np.unique(groups)):
        raise UserError(
            f"dataset.test_fraction={test_fraction}: leaves a part of {dataset.name} "
            f"({len(dataset.x)} points) empty; choose a share that leaves points on both sides"
        )
    x, x_test = dataset.x[~held], dataset.x[held]
    y, y_test = (dataset.y[~held], dataset.y[held]) if len(dataset.y) else (dataset.y, dataset.y)
    return replace(
        dataset,
        x=x,
        y=y,
        x_test=x_test,
        y_test=y_test,
        fingerprint=_fingerprint(x, y, x_test, y_test),
    )


def _points(name: str, x: Any) -> NDArray[Any]:
    try:
        points = np.ascontiguousarray(x)
        if points.dtype not in (np.float32, np.float64):
            points = points.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"data of {name}: every feature must be a number ({error}); "
            "encode or drop the columns that are not"
        ) from error
    if points.ndim != 2:
        raise UserError(
            f"data of {name}: has shape {points.shape}; points must be (P, N), one point per row"
        )
    if len(points) < 2 or points.shape[1] < 1:
        raise UserError(
            f"data of {name}: has shape {points.shape}; it takes 2 points and 1 feature at least, "
            "one point per row"
        )
    return points


def _refuse_nonfinite(name: str, points: NDArray[Any], names: tuple[str, ...]) -> None:
    if len(names) != points.shape[1]:
        raise UserError(
            f"data of {name}: {points.shape[1]} features but {len(names)} feature names"
        )
    # A sum is not finite where an entry is not; the mask is built only to name the place.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(points.sum()):
            return
    bad = np.argwhere(~np.isfinite(points))
    if len(bad):
        row, column = bad[0]
        raise UserError(
            f"data of {name}: feature {names[column]!r} of point {row} is "
            f"{points[row, column]} ({len(bad)} such entries in all); "
            "drop those points or fill the gaps before the comparison"
        )


def _targets(name: str, y: Any, points: int, class_names: Sequence[str] | None) -> NDArray[Any]:
    if y is None:
        return np.empty(0)
    targets = np.asarray(y)
    if targets.shape != (points,):
        raise UserError(
            f"data of {name}: targets have shape {targets.shape}; "
            f"it takes one target for each of {points} points"
        )
    if class_names is not None:
        return targets.astype(np.intp)
    try:
        targets = targets.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"data of {name}: a target is not a number ({error})") from error
    if not np.isfinite(targets).all():
        place = int(np.flatnonzero(~np.isfinite(targets))[0])
        raise UserError(
            f"data of {name}: the target of point {place} is {targets[place]}; "
            "drop the points without a target"
        )
    return targets


def _refuse_missing_class(name: str, targets: NDArray[Any], class_names: Sequence[str]) -> None:
    present = np.unique(targets)
    if len(class_names) < 2 or len(present) < 2:
        raise UserError(
            f"data of {name}: all points are of one class; it takes two classes at least to "
            "classify (check the target column)"
        )
    if present[0] < 0 or present[-1] >= len(class_names):
        raise UserError(
            f"data of {name}: labels reach from {present[0]} to {present[-1]}; "
            f"they must be 0..{len(class_names) - 1}"
        )


def _task(y: Any, class_names: Sequence[str] | None) -> str:
    if y is None:
        return "unlabelled"
    if not class_names:
        return "regression"
    return "binary" if len(class_names) == 2 else "multiclass"


def _fingerprint(*arrays: NDArray[Any]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
