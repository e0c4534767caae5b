"""The value that every loader returns, with the checks that every data set has to pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.content import LARGEST, Content, digest
from normbench.datasets.on_disk.points import Points, Rows
from normbench.datasets.on_disk.taken import taken
from normbench.datasets.values import UserError as UserError
from normbench.datasets.values import spelled

if TYPE_CHECKING:
    from normbench.datasets.columns import Columns

FRACTION = "dataset.test_fraction"
TASKS = ("binary", "multiclass", "regression", "unlabelled")


@dataclass(frozen=True)
class Dataset:
    """Points, targets and what is known about them. Build one with `make_dataset`.

    Attributes:
        name: What it is called.
        task: `binary`, `multiclass`, `regression` or `unlabelled`.
        x: Points (P, N), one per row, as an array or as `Points` of which some rows at a time are
            in memory.
        y: Class indices 0..C-1 (P,), or real targets for regression; empty where there are none.
        x_test: Test points (Q, N); Q = 0 without a test part.
        y_test: Their targets (Q,).
        feature_names: N names.
        class_names: C names; empty without classes.
        source: Where the data are from.
        fingerprint: Of the content.
        columns: The table that `x` was made from, where there is one.
        notes: What a user should know of the data.
        fit_on: Whether the schemes' statistics are of the `train` points or of `all`.
        folds: Cross-validations; each has the number of every point's fold (P,), noisy copies not
            counted.
        held_out: Of a data set with copies, what holds out points (P,) and copies the others anew,
            by the number of the cross-validation.
        picture: Height and width, where the points are the pixels of a picture, row by row.
    """

    name: str
    task: str
    x: Rows
    y: NDArray[Any]
    x_test: Rows
    y_test: NDArray[Any]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    source: str
    fingerprint: str
    columns: "Columns | None" = None
    notes: tuple[str, ...] = ()
    fit_on: str = "train"
    folds: tuple[NDArray[np.intp], ...] = ()
    picture: tuple[int, int] | None = None
    held_out: "Callable[[NDArray[np.bool_], int], Dataset] | None" = None

    @property
    def classes(self) -> int:
        """The number of classes C; 0 where targets are not classes."""
        return len(self.class_names)

    @property
    def encoding(self) -> str:
        """Which label became which class index, such as `no=0, yes=1`; empty without classes."""
        return ", ".join(f"{label}={index}" for index, label in enumerate(self.class_names))


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
    precision: str = "float64",
) -> Dataset:
    """Make a data set of arrays, checked: what every loader returns.

    Args:
        name: What it is called in labels, tables and MLflow.
        x: Points (P, N), one per row, P at least 2. `Points` that stay in their file are read
            once, and a later change of the file is noticed.
        y: Targets (P,): class indices where `class_names` are given, real numbers where they are
            not, None for unlabelled points.
        source: Where the data are from.
        x_test: Test points (Q, N) of the same features.
        y_test: Their targets (Q,).
        feature_names: N names; `x0`, `x1` and so on by default.
        class_names: The name of each class index; None for real targets.
        precision: The type that points are kept in; `float32` only for points that lose nothing
            by it, such as images (a large mean would cost them digits).

    Returns:
        The data set, with the fingerprint of its content.

    Raises:
        UserError: A shape, a number or a label does not fit; the message names the data set, the
            place and the remedy.
    """
    points = _points(name, x, "", precision)
    if len(points) < 2:
        raise UserError(
            f"data of {name}: has shape {points.shape}; it takes 2 points at least, one point per "
            "row (of a csv file with one point per column: dataset.points_in=columns)"
        )
    held_out = _points(name, x_test, "test ", precision) if x_test is not None else points[:0]
    names = tuple(feature_names or (f"x{n}" for n in range(points.shape[1])))
    if held_out.shape[1] != points.shape[1]:
        raise UserError(
            f"data of {name}: has {points.shape[1]} features in the training part and "
            f"{held_out.shape[1]} in the test part; they must be the same features"
        )
    if len(names) != points.shape[1]:
        raise UserError(
            f"data of {name}: {points.shape[1]} features but {len(names)} feature names"
        )
    targets = _targets(name, y, len(points), class_names, "")
    held_out_targets = (
        _targets(name, y_test, len(held_out), class_names, "test ")
        if x_test is not None and y is not None
        else targets[:0]
    )
    if class_names is not None:
        _refuse_classes(name, targets, class_names)
        _refuse_labels(name, held_out_targets, class_names)
    content = Content()
    content.add_points(points, name, names, "")
    content.add(targets)
    content.add_points(held_out, name, names, "test ")
    content.add(held_out_targets)
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
        fingerprint=content.fingerprint,
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
            f"{spelled(FRACTION, test_fraction)}: {dataset.name} already has a test part of "
            f"{len(dataset.x_test)} points; set {spelled(FRACTION, 0)} to use that one"
        )
    rng = np.random.default_rng(seed)
    groups = dataset.y if dataset.classes else np.zeros(len(dataset.x), dtype=int)
    held = np.zeros(len(dataset.x), dtype=bool)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        held[rng.permutation(members)[: round(test_fraction * len(members))]] = True
    left = np.unique(groups[~held])
    if not held.any() or (~held).sum() < 2 or len(left) < len(np.unique(groups)):
        raise UserError(
            f"{spelled(FRACTION, test_fraction)}: leaves a part of {dataset.name} "
            f"({len(dataset.x)} points) empty, or 1 training point; choose a share that leaves "
            "points on both sides"
        )
    return part(dataset, held)


def part(dataset: Dataset, held: NDArray[np.bool_]) -> Dataset:
    """Return the data set with the held points, a mask (P,), as its test part.

    Medians and categories of a table's columns are made anew, by the training points alone.
    """
    train = ~held
    x, names = dataset.x, dataset.feature_names
    if dataset.columns is not None:
        x, names = dataset.columns.numbers(train)
    x, x_test = taken(x, train), taken(x, held, beside=True)
    y, y_test = (dataset.y[train], dataset.y[held]) if len(dataset.y) else (dataset.y, dataset.y)
    return replace(
        dataset,
        x=x,
        y=y,
        x_test=x_test,
        y_test=y_test,
        feature_names=names,
        folds=(),
        fingerprint=digest(x, y, x_test, y_test),
    )


def _points(name: str, x: Any, part: str, precision: str) -> Rows:
    """Return points (P, N) as numbers of the precision, or as they are where they are `Points`."""
    points = x if isinstance(x, Points) else _array(name, x, precision)
    if points.ndim != 2:
        raise UserError(
            f"data of {name}: the {part}points have shape {points.shape}; they must be (P, N), "
            "one point per row"
        )
    if min(points.shape) < 1:
        raise UserError(
            f"data of {name}: the {part}points have shape {points.shape}; "
            "it takes 1 point and 1 feature at least, one point per row"
        )
    return points


def _array(name: str, x: Any, precision: str) -> NDArray[Any]:
    try:
        raw = np.asarray(x)
        if np.iscomplexobj(raw):
            raise TypeError("complex numbers have no order")
        if raw.dtype.kind in "mMV":
            raise TypeError(f"{raw.dtype} is none")
        return np.ascontiguousarray(raw, dtype=precision)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"data of {name}: every feature must be a number ({error}); "
            "encode or drop the columns that are not"
        ) from error


def _targets(
    name: str, y: Any, points: int, class_names: Sequence[str] | None, part: str
) -> NDArray[Any]:
    if y is None and not part:
        return np.empty(0)
    targets = np.asarray(y)
    if y is None or targets.shape != (points,):
        shape = "are missing" if y is None else f"have shape {targets.shape}"
        raise UserError(
            f"data of {name}: the {part}targets {shape}; "
            f"it takes one target for each of {points} {part}points"
        )
    if class_names is not None:
        return targets.astype(np.intp)
    try:
        targets = targets.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"data of {name}: a {part}target is not a number ({error}); "
            "of labels: dataset.task=classes"
        ) from error
    bad = np.flatnonzero(~(np.abs(targets) <= LARGEST))
    if len(bad):
        raise UserError(
            f"data of {name}: the target of {part}point {bad[0]} (counted from 0) is "
            f"{targets[bad[0]]:g}; drop the points without a usable target"
        )
    return targets


def _refuse_classes(name: str, targets: NDArray[Any], class_names: Sequence[str]) -> None:
    _refuse_labels(name, targets, class_names)
    present = np.count_nonzero(np.bincount(targets))
    if present < 2:
        raise UserError(
            f"data of {name}: all points are of one class; it takes two classes at least to "
            "classify (check the target column)"
        )
    if present == len(targets) > 2:
        raise UserError(
            f"data of {name}: each of its {present} points has a class of its own; check the "
            "target column (of numbers: dataset.task=regression), and whether the file has one "
            "point per column (dataset.points_in=columns)"
        )


def _refuse_labels(name: str, targets: NDArray[Any], class_names: Sequence[str]) -> None:
    if len(targets) and (targets.min() < 0 or targets.max() >= len(class_names)):
        raise UserError(
            f"data of {name}: labels reach from {targets.min()} to {targets.max()}; "
            f"they must be 0..{len(class_names) - 1}"
        )


def refuse_from_file(dataset: Dataset, setting: str, value: Any) -> None:
    """Raise `UserError` where a setting takes points in memory, and a data set's are not."""
    if isinstance(dataset.x, Points):
        raise UserError(
            f"{spelled(setting, value)}: takes points that are held in memory, and those of "
            f"{dataset.name} are read from their file block by block; leave it out"
        )


def _task(y: Any, class_names: Sequence[str] | None) -> str:
    if y is None:
        return "unlabelled"
    if class_names is None:
        return "regression"
    return "binary" if len(class_names) == 2 else "multiclass"
