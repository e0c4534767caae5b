"""The `Dataset` that every loader returns, and the checks that every data set passes."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.entries import convert_targets
from normbench.datasets.on_disk.content import LARGEST_ENTRY, Content, digest
from normbench.datasets.on_disk.points import Points, is_in_memory, select_rows
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import UserError as UserError
from normbench.datasets.values import spell_setting

if TYPE_CHECKING:
    from normbench.datasets.columns import Columns

TEST_FRACTION_SETTING = "dataset.test_fraction"
MAX_COUNTED_CLASSES = 10  # that a line names with their counts
MAX_CLASS_NAME = 20  # characters of a class in that line


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


@dataclass(frozen=True)
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
    points = _check_points(name, x, "", precision)
    # One point has no variance.
    if len(points) < 2:
        raise UserError(
            f"data of {name}: has shape {points.shape}; it takes 2 points at least, one point per "
            "row (of a csv file with one point per column: dataset.points_in=columns)"
        )
    test_points = (
        _check_points(name, x_test, "test ", precision) if x_test is not None else points[:0]
    )
    names = tuple(() if feature_names is None else feature_names)
    names = names or tuple(f"x{n}" for n in range(points.shape[1]))
    if test_points.shape[1] != points.shape[1]:
        raise UserError(
            f"data of {name}: has {points.shape[1]} features in the training part and "
            f"{test_points.shape[1]} in the test part; they must be the same features"
        )
    if len(names) != points.shape[1]:
        raise UserError(
            f"data of {name}: {points.shape[1]} features but {len(names)} feature names"
        )
    # Test points without targets, where training points have some, are refused by `_check_targets`.
    if y_test is not None and (x_test is None or y is None):
        lacking_part = "test points" if x_test is None else "targets of the training points"
        raise UserError(
            f"data of {name}: have targets of the test points, but no {lacking_part}; give both "
            "or none"
        )
    targets = _check_targets(name, y, len(points), class_names, "")
    test_targets = (
        _check_targets(name, y_test, len(test_points), class_names, "test ")
        if x_test is not None and y is not None
        else targets[:0]
    )
    if class_names is not None:
        _refuse_classes(name, targets, class_names)
        _refuse_out_of_range(name, test_targets, class_names)  # they may be of a single class
    content = Content()
    content.add_points(points, name, names, "")
    content.add(targets)
    content.add_points(test_points, name, names, "test ")
    content.add(test_targets)
    return Dataset(
        name=name,
        task=_infer_task(y, class_names),
        x=points,
        y=targets,
        x_test=test_points,
        y_test=test_targets,
        feature_names=names,
        class_names=tuple(class_names or ()),
        source=source,
        fingerprint=content.fingerprint,
    )


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


def split(dataset: Dataset, test_fraction: float, seed: int) -> Dataset:
    """Return the data set with a random share of its points held out as its test part.

    Points are drawn without replacement, class by class, so that the classes keep their shares.

    Args:
        dataset: A data set without a test part.
        test_fraction: The share of points to hold out; 0 returns the data set unchanged.
        seed: The seed of the generator that draws the points.

    Returns:
        The data set with a test part.

    Raises:
        UserError: Where there is a test part already, it would be empty, or the training part would
            have a single point or no point of some class.
    """
    if test_fraction == 0:
        return dataset
    if len(dataset.x_test):
        raise UserError(
            f"{spell_setting(TEST_FRACTION_SETTING, test_fraction)}: {dataset.name} already has a "
            f"test part of {len(dataset.x_test)} points; set "
            f"{spell_setting(TEST_FRACTION_SETTING, 0)} to use that one"
        )
    rng = np.random.default_rng(seed)
    # Without classes all points are one group.
    groups = dataset.y if dataset.classes else np.zeros(len(dataset.x), dtype=int)
    test_mask = np.zeros(len(dataset.x), dtype=bool)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        test_mask[rng.permutation(members)[: round(test_fraction * len(members))]] = True
    train_groups = np.unique(groups[~test_mask])  # no class may lose all of its points
    if not test_mask.any() or (~test_mask).sum() < 2 or len(train_groups) < len(np.unique(groups)):
        raise UserError(
            f"{spell_setting(TEST_FRACTION_SETTING, test_fraction)}: leaves a part of "
            f"{dataset.name} ({len(dataset.x)} points) empty, 1 training point, or a class without "
            "one; choose a share that leaves points on both sides"
        )
    return hold_out(dataset, test_mask)


def hold_out(dataset: Dataset, test_mask: NDArray[np.bool_]) -> Dataset:
    """Return the data set with the points of a mask as its test part.

    Medians and categories of a table's columns are computed again from the training points alone.
    Noisy copies and outliers are not drawn again: see `Dataset.hold_out_and_redraw`.

    Args:
        dataset: A data set whose points are all training points; a test part would be replaced.
        test_mask: Which points to hold out (P,).

    Returns:
        The data set with a test part, without folds.

    Raises:
        UserError: Where a column of a table has no number among the training points.
    """
    train_mask = ~test_mask
    # Without a table, features do not depend on which points are trained on.
    x, names = dataset.x, dataset.feature_names
    if dataset.columns is not None:
        x, names = dataset.columns.encode_features(train_mask)
    x, x_test = select_rows(x, train_mask), select_rows(x, test_mask, is_test_part=True)
    # Unlabelled points have an empty y, to which no mask fits.
    y, y_test = (
        (dataset.y[train_mask], dataset.y[test_mask]) if len(dataset.y) else (dataset.y, dataset.y)
    )
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


def _check_points(name: str, x: Any, prefix: str, precision: str) -> Points:
    """Return points (P, N) as numbers of the precision; a loader's memory map stays as it is.

    Args:
        name: The name of the data set, for errors.
        x: See `make_dataset`.
        prefix: `test ` for test points, for errors; empty for training points.
        precision: The type in which points are stored.

    Raises:
        UserError: An entry is not a number, or there is no point or no feature.
    """
    # A loader's memory map is taken as it is; any other becomes an array.
    is_map = isinstance(x, np.memmap) and "in_blocks" in vars(x)
    points = x if is_map else _to_points(name, x, precision)
    if points.ndim != 2:
        raise UserError(
            f"data of {name}: the {prefix}points have shape {points.shape}; they must be (P, N), "
            "one point per row"
        )
    # A table of the target alone: the message says so, unlike the one below.
    if len(points) and not points.shape[1]:
        raise UserError(
            f"data of {name}: the {prefix}points have no feature; it takes 1 at least, beside the "
            "target"
        )
    if min(points.shape) < 1:
        raise UserError(
            f"data of {name}: the {prefix}points have shape {points.shape}; "
            "it takes 1 point and 1 feature at least, one point per row"
        )
    return points


def _to_points(name: str, x: Any, precision: str) -> Points:
    """Return points as a contiguous array of numbers; those of a sparse matrix stay sparse.

    Args:
        name: The name of the data set, for errors.
        x: Anything that NumPy turns into an array, or a sparse matrix of scipy.
        precision: The type in which points are stored.

    Raises:
        UserError: An entry is not a real number.
    """
    try:  # what is raised here ends as the reason in the error below
        if hasattr(x, "tocsr"):  # a sparse matrix, in any of scipy's formats
            if np.iscomplexobj(x):
                raise TypeError("complex numbers have no order")
            return SparsePoints.of_matrix(x, precision)
        raw = np.asarray(x)
        if np.iscomplexobj(raw):
            raise TypeError("complex numbers have no order")
        if raw.dtype.kind in "mMV":  # spans of time, dates and records
            raise TypeError(f"{raw.dtype} is none")
        if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):  # `asarray` drops the mask
            raw = np.where(np.ma.getmaskarray(x), np.nan, raw.astype(np.float64))
        return np.ascontiguousarray(raw, dtype=precision)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"data of {name}: every feature must be a number ({error}); "
            "encode or drop the columns that are not"
        ) from error


def _check_targets(
    name: str, y: Any, point_count: int, class_names: Sequence[str] | None, prefix: str
) -> NDArray[Any]:
    """Return targets (P,) as class indices or finite float64 numbers.

    Args:
        name: The name of the data set, for errors.
        y: Class indices where `class_names` are given, else real targets. None returns an empty
            array for training points, and is refused for test points.
        point_count: The number P of points.
        class_names: One for each class; None where the targets are not classes.
        prefix: `test ` for test points, empty for training points.

    Raises:
        UserError: The targets are not one number for each point, not finite, or too large to be
            squared.
    """
    if y is None and not prefix:
        return np.empty(0)
    targets = convert_targets(y)
    if y is None or targets.shape != (point_count,):
        shape = "are missing" if y is None else f"have shape {targets.shape}"
        raise UserError(
            f"data of {name}: the {prefix}targets {shape}; "
            f"it takes one target for each of {point_count} {prefix}points"
        )
    if class_names is not None:
        return targets.astype(np.intp)
    try:
        targets = targets.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"data of {name}: a {prefix}target is not a number ({error}); "
            "of labels: dataset.task=classes"
        ) from error
    # The negated comparison is also true of NaN.
    unusable_rows = np.flatnonzero(~(np.abs(targets) <= LARGEST_ENTRY))
    if len(unusable_rows):
        raise UserError(
            f"data of {name}: the target of {prefix}point {unusable_rows[0]} (counted from 0) is "
            f"{targets[unusable_rows[0]]:g}; drop the points without a usable target"
        )
    return targets


def _refuse_classes(name: str, targets: NDArray[Any], class_names: Sequence[str]) -> None:
    """Raise `UserError` for training targets that cannot be classified.

    They are out of range, all of a single class, or all different (if there are more than two).

    Args:
        name: The name of the data set, for errors.
        targets: Class indices (P,).
        class_names: One for each of C classes.
    """
    _refuse_out_of_range(name, targets, class_names)
    present = np.count_nonzero(np.bincount(targets))  # the number of classes that have points
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


def _refuse_out_of_range(name: str, targets: NDArray[Any], class_names: Sequence[str]) -> None:
    """Raise `UserError` for class indices (P,) that are not in 0..C-1; C counts the class names."""
    if len(targets) and (targets.min() < 0 or targets.max() >= len(class_names)):
        raise UserError(
            f"data of {name}: labels reach from {targets.min()} to {targets.max()}; "
            f"they must be 0..{len(class_names) - 1}"
        )


def require_dense_points(
    dataset: Dataset, setting: str, value: Any, with_test: bool = False
) -> None:
    """Raise `UserError` where a setting needs points in a dense array, and the data set has none.

    Its points are a memory map then, or sparse.

    Args:
        dataset: The data set.
        setting: The name of the setting, for the error.
        value: Its value, for the error.
        with_test: Whether the setting needs the test points as an array, too.
    """
    if not is_in_memory(dataset.x) or (with_test and not is_in_memory(dataset.x_test)):
        is_sparse = isinstance(dataset.x, SparsePoints)
        reason = "are sparse" if is_sparse else "are read from their file block by block"
        raise UserError(
            f"{spell_setting(setting, value)}: takes points that are held in memory, and those of "
            f"{dataset.name} {reason}; leave it out"
        )


def _infer_task(y: Any, class_names: Sequence[str] | None) -> str:
    """Return the task that targets and class names imply."""
    if y is None:
        return "unlabelled"
    if class_names is None:
        return "regression"
    return "binary" if len(class_names) == 2 else "multiclass"
