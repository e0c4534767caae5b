"""The `Dataset` that every loader returns, and the checks that every data set passes."""

import hashlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.points import Points, iterate_blocks
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import UserError as UserError

if TYPE_CHECKING:
    from normbench.datasets.columns import Columns

MAX_COUNTED_CLASSES = 10  # that a line names with their counts
MAX_CLASS_NAME = 20  # characters of a class in that line
# An entry's square, and a sum of squares, stay finite. A plain Python float would become
# float32 beside such points: infinite, so that no infinite one would be larger.
LARGEST_ENTRY = np.float64(1e150)


class OwnTargets(NamedTuple):
    """The targets in their own units, and the scheme that transformed them.

    Attributes:
        y: Targets of the training points, (P,).
        y_test: Targets of the test points, (Q,).
        scheme: A scikit-learn transformer, fitted on y as points (P, 1).
    """

    y: NDArray[np.float64]
    y_test: NDArray[np.float64]
    scheme: Any

    def invert(self, predictions: NDArray[Any]) -> NDArray[np.float64]:
        """Return predictions (p,) of transformed targets in the targets' own units.

        They are NaN where the scheme has no inverse for a prediction.
        """
        # Without warnings: a prediction outside the scheme's range is no mistake of the user.
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            inverse = self.scheme.inverse_transform(predictions.astype(np.float64)[:, None])
        return np.asarray(inverse, dtype=np.float64)[:, 0]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Points, targets and their description. Build one with `make_dataset`.

    Attributes:
        name: The name of the data set.
        task: `binary`, `multiclass`, `regression` or `unlabelled`.
        x: Points (P, N), one per row: an array, a memory map, or sparse points.
        y: Class indices 0..C-1 (P,), real targets of a regression (P,), or empty without targets.
        x_test: Test points (Q, N); Q = 0 without a test part.
        y_test: Targets of the test points (Q,).
        feature_names: One for each of N features.
        class_names: One for each of C classes, in the order of the class indices.
        source: Where the data come from.
        fingerprint: The SHA-256 of the points and targets, and of what else determines the points
            of the folds.
        columns: The table from which `x` is computed again whenever points are held out, since its
            medians and categories are those of the training points; None without one.
        notes: Sentences on the data for the user.
        fit_on: `train` or `all`: the points from which the schemes learn their statistics.
        folds: For each cross-validation, the index of the fold of every point (P,). Noisy copies
            are not among these points.
        picture: Height and width, where the points are the pixels of a picture, row by row.
        hold_out_and_redraw: Replaces `hold_out` where the training points have noisy copies or
            outliers: of a mask of points to hold out (P,) and the index of a cross-validation, it
            returns the data set whose other points have newly drawn copies or outliers. None
            elsewhere.
        own_targets: The targets in their own units, where a scheme has transformed y; None
            elsewhere.
        read_from_rows: Whether the points are the rows of a file that `dataset.points_in=columns`
            would read by its columns. Errors suggest that option then.
        has_numbered_classes: Whether whole numbers were taken for classes, because no task was
            given.
    """

    name: str
    task: str
    x: Points
    y: NDArray[Any]
    x_test: Points
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
    hold_out_and_redraw: "Callable[[NDArray[np.bool_], int], Dataset] | None" = None
    own_targets: OwnTargets | None = None
    read_from_rows: bool = False
    has_numbered_classes: bool = False

    def with_points(self, **fields: Any) -> "Dataset":
        """Return the data set with other fields, and the fingerprint of its points and targets."""
        changed = replace(self, **fields)
        fingerprint = digest(changed.x, changed.y, changed.x_test, changed.y_test)
        return replace(changed, fingerprint=fingerprint)

    @property
    def classes(self) -> int:
        """The number of classes C; 0 where targets are not classes."""
        return len(self.class_names)

    @property
    def encoding(self) -> str:
        """Which label became which class index, such as `no=0, yes=1`; empty without classes."""
        return ", ".join(f"{label}={index}" for index, label in enumerate(self.class_names))

    @property
    def target_summary(self) -> str:
        """What the targets are: the classes with their counts of training points, or the range.

        Such as `2 classes (No 88, Yes 32)` or `real numbers, 1.2 to 9.8`, in the targets' own
        units; empty for unlabelled points.
        """
        if self.classes:
            names = [name[:MAX_CLASS_NAME] for name in self.class_names]
            return count_classes(self.y, names, MAX_COUNTED_CLASSES)
        y = self.own_targets.y if self.own_targets else self.y
        return f"real numbers, {y.min():g} to {y.max():g}" if len(y) else ""


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
        name: The name of the data set, which errors mention.
        x: Points (P, N), numbers, one point per row, or a sparse matrix of scipy; the
            memory map of a loader keeps its own precision.
        y: Targets (P,): class indices where `class_names` are given, real targets where they are
            not, None for unlabelled points.
        source: Where the data come from.
        x_test: Test points (Q, N), None without a test part.
        y_test: Targets of the test points (Q,).
        feature_names: One for each feature; x0, x1, ... by default.
        class_names: One for each class; None where the targets are not classes.
        precision: The type in which points are stored. Use float32 only for points that lose
            nothing by it, such as images: a large mean would cost them digits.

    Returns:
        The data set.

    Raises:
        UserError: Where points, targets or names do not fit together; the message names the data
            set, the place and the remedy.
    """
    if (y_test is not None) != (x_test is not None and y is not None):
        given = "missing" if y_test is None else "given without test points or training targets"
        raise UserError(f"data of {name}: the test targets are {given}; give all or none of them")
    points = _check_points(name, x, "", precision)
    test_points = points[:0] if x_test is None else _check_points(name, x_test, "test ", precision)
    names = tuple(() if feature_names is None else feature_names)
    names = names or tuple(f"x{n}" for n in range(points.shape[1]))
    if not test_points.shape[1] == len(names) == points.shape[1]:
        counts = f"{points.shape[1]} features, {test_points.shape[1]} in its test part"
        raise UserError(f"data of {name}: has {counts}, and {len(names)} feature names")
    targets = np.empty(0) if y is None else _check_targets(name, y, len(points), class_names, "")
    test_targets = targets[:0]
    if y_test is not None:
        test_targets = _check_targets(name, y_test, len(test_points), class_names, "test ")
    _refuse_entries(name, points, names, "")
    _refuse_entries(name, test_points, names, "test ")
    return Dataset(
        name=name,
        task=infer_task(None if y is None else len(class_names or ())),
        x=points,
        y=targets,
        x_test=test_points,
        y_test=test_targets,
        feature_names=names,
        class_names=tuple(class_names or ()),
        source=source,
        fingerprint=digest(points, targets, test_points, test_targets),
    )


def infer_task(classes: int | None) -> str:
    """Return the task that a number of classes implies: 0 of real targets, None without targets."""
    if classes is None:
        return "unlabelled"
    if classes == 0:
        return "regression"
    return "binary" if classes == 2 else "multiclass"


def count_classes(y: NDArray[Any], class_names: Sequence[str], most: int) -> str:
    """Return the number of classes, and the points of each, as `2 classes (No 88, Yes 32)`.

    Args:
        y: Class indices 0..C-1 (P,).
        class_names: One for each of C classes.
        most: How many classes are named; the others are counted.
    """
    counts = np.bincount(y, minlength=len(class_names))
    classes = [f"{name} {count}" for name, count in zip(class_names[:most], counts)]
    classes += [f"{len(class_names) - most} more"] if len(class_names) > most else []
    return f"{len(class_names)} classes ({', '.join(classes)})"


def digest(*arrays: Points) -> str:
    """Return the SHA-256 of some arrays of any shape, or points, added in order, bit by bit.

    Points that are not in memory are read block by block.
    """
    hasher = hashlib.sha256()
    for x in arrays:
        # The same bytes in another shape or type are other points.
        hasher.update(f"{x.shape}{x.dtype}".encode())
        is_sparse = isinstance(x, SparsePoints)
        for part in (x.csr.data, x.csr.indices, x.csr.indptr) if is_sparse else (x,):
            for _, block in iterate_blocks(part):
                hasher.update(np.ascontiguousarray(block).data)
    return hasher.hexdigest()


def _refuse_entries(name: str, x: Points, features: Sequence[str], prefix: str) -> None:
    """Raise `UserError` for points of which an entry is not finite, or beyond `LARGEST_ENTRY`.

    Args:
        name: The name of the data set, for the error.
        x: Its points (P, N).
        features: The names of its N features, for the error.
        prefix: `test ` for test points, for the error; empty for training points.
    """
    is_sparse = isinstance(x, SparsePoints)
    for rows, entries in [(slice(0, 0), x.csr.data)] if is_sparse else iterate_blocks(x):
        # Two reductions need no temporary array; NaN fails the comparison.
        if not entries.size or max(float(entries.max()), -float(entries.min())) <= LARGEST_ENTRY:
            continue
        place = tuple(np.argwhere(~(np.abs(entries) <= LARGEST_ENTRY))[0])
        row, column = (axis[place] for axis in x.csr.tocoo().coords) if is_sparse else place
        raise UserError(
            f"data of {name}: feature {features[column]!r} of {prefix}point {rows.start + row} "
            f"(counted from 0) is {entries[place]:g}; entries must be finite, and below "
            f"{LARGEST_ENTRY:g}: rescale the feature, drop such points, or fill the gaps"
        )


def _check_points(name: str, x: Any, prefix: str, precision: str) -> Points:
    """Return points (P, N) as numbers of the precision; a loader's memory map stays as it is.

    Args:
        name: The name of the data set, for errors.
        x: See `make_dataset`.
        prefix: `test ` for test points, for errors; empty for training points.
        precision: The type in which points are stored.

    Raises:
        UserError: An entry is not a real number, or there are too few points or no feature.
    """
    is_sparse = hasattr(x, "tocsr")  # a sparse matrix, in any of scipy's formats
    points: Points
    try:  # what is raised here ends as the reason in the error below
        raw = x if is_sparse else np.asarray(x)
        if raw.dtype.kind in "cmMV":  # complex numbers, spans of time, dates and records
            raise TypeError(f"{raw.dtype} is none")
        if isinstance(x, np.memmap) and "in_blocks" in vars(x):  # of a loader
            points = x
        elif is_sparse:
            points = SparsePoints.of_matrix(x, precision)
        else:
            points = np.ascontiguousarray(_fill_mask(x), dtype=precision)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"data of {name}: every feature must be a number ({error}); "
            "encode or drop the columns that are not"
        ) from error
    at_least = 1 if prefix else 2  # a single training point has no variance
    if points.ndim != 2 or len(points) < at_least or not points.shape[1]:
        raise UserError(
            f"data of {name}: the {prefix}points have shape {points.shape}; it takes (P, N), one "
            f"point per row, {at_least} points at least, and 1 feature at least beside the target"
        )
    return points


def _fill_mask(x: Any) -> NDArray[Any]:
    """Return an array or a sequence as an array, in which a masked entry is NaN."""
    return x.astype(object).filled(np.nan) if np.ma.is_masked(x) else np.asarray(x)


def _check_targets(
    name: str, y: Any, point_count: int, class_names: Sequence[str] | None, prefix: str
) -> NDArray[Any]:
    """Return targets (P,) as class indices or finite float64 numbers.

    Args:
        name: The name of the data set, for errors.
        y: Class indices where `class_names` are given, else real targets.
        point_count: The number P of points.
        class_names: One for each class; None where the targets are not classes.
        prefix: `test ` for test points, empty for training points.

    Raises:
        UserError: The targets are not one number for each point, not finite, or too large to be
            squared; or classes are out of range, or those of the training points are all the same,
            or all different (if there are more than two).
    """
    targets = _fill_mask(y)
    if targets.shape != (point_count,):
        raise UserError(
            f"data of {name}: the {prefix}targets have shape {targets.shape}; "
            f"it takes one target for each of {point_count} {prefix}points"
        )
    try:
        targets = targets.astype(np.float64 if class_names is None else np.intp)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"data of {name}: a {prefix}target is not a number ({error}); "
            "of labels: dataset.task=classes"
        ) from error
    least, largest = (
        (-LARGEST_ENTRY, LARGEST_ENTRY) if class_names is None else (0, len(class_names) - 1)
    )
    # The negated comparison is also true of NaN.
    unusable_rows = np.flatnonzero(~((targets >= least) & (targets <= largest)))
    if len(unusable_rows):
        row = unusable_rows[0]
        raise UserError(
            f"data of {name}: the target of {prefix}point {row} (counted from 0) is "
            f"{targets[row]:g}, and must be from {least:g} to {largest:g}; leave such points out"
        )
    present = len(np.unique(targets))
    if class_names is not None and not prefix and (present < 2 or present == point_count > 2):
        classes = "one class" if present < 2 else f"{present} classes, one for each"
        raise UserError(
            f"data of {name}: all points are of {classes}; check the target column (of numbers: "
            "dataset.task=regression), and the layout (dataset.points_in=columns)"
        )
    return targets
