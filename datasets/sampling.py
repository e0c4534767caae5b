"""The settings of any data set: classes, subset, test part, folds, copies, outliers, targets."""

import warnings
from copy import deepcopy
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.columns import Columns
from normbench.datasets.dataset import Dataset, OwnTargets, digest, infer_task
from normbench.datasets.on_disk.points import is_in_memory, select_rows
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import (
    UserError,
    check_choice,
    check_integer,
    check_list,
    check_number,
    spell_setting,
)

MAX_REPEATS = 10_000  # of a cross-validation
MAX_COPIES = 10_000  # of each point
FIT_ON_CHOICES = ("train", "all")
NOISE_SHAPES = ("aligned", "round")
OUTLIERS = ("cells", "points")
MAX_OUTLIER_SIZE = 1e9  # standard deviations


@dataclass(frozen=True)
class Sampling:
    """The settings of `conf/config.yaml` that every data set has, `dataset.points` and so on.

    Attributes:
        keep_classes: The classes whose points are kept, by name; None for all.
        points: How many training points to draw; None for all.
        test_fraction: The share of points to hold out, from 0 to below 1.
        folds: How many folds a cross-validation has; None for no cross-validation.
        repeats: How many cross-validations there are.
        split_seed: The seed of all of these draws.
        augment: The shape of the noise of copies; None for no copies.
        augment_copies: How many copies each training point has.
        augment_noise: The size of the noise of copies.
        outliers: `cells` or `points` among the training points; None for none.
        outlier_share: The share of the cells, or of the points, that become outliers.
        outlier_size: The size of outliers in standard deviations of the feature.
        fit_on: The points from which the schemes learn their statistics: `train` or `all`.
        target_scheme: A scheme of the targets, a transformer; None for targets as they are.
    """

    keep_classes: Any = None
    points: Any = None
    test_fraction: Any = 0.0
    folds: Any = None
    repeats: Any = 1
    split_seed: Any = 0
    augment: Any = None
    augment_copies: Any = 1
    augment_noise: Any = 0.2
    outliers: Any = None
    outlier_share: Any = 0.01
    outlier_size: Any = 100.0
    fit_on: Any = "train"
    target_scheme: Any = None

    def apply(self, dataset: Dataset) -> Dataset:
        """Return a loaded data set under these settings.

        They are applied in this order: classes, subset, test part, folds, outliers, noisy copies,
        scheme of the targets. Raises `UserError` where one does not fit the data set.
        """
        seed = check_integer("dataset.split_seed", self.split_seed, 0)
        data = draw_subset(keep_classes(dataset, self.keep_classes), self.points, seed)
        data = split(data, self.test_fraction, seed)
        data = set_fit_points(assign_folds(data, self.folds, self.repeats, seed), self.fit_on)
        drawn = self._contaminate(data, seed)
        if drawn is not data:
            # From the points as they were: what is held out stays clean and without copies.
            drawn = replace(
                drawn,
                columns=None,  # the table no longer describes the points
                hold_out_and_redraw=lambda test_mask, repeat: self._contaminate(
                    hold_out(data, test_mask), seed + repeat
                ),
            )
        if data.folds and data.columns is not None:  # each fold has its own medians and categories
            drawn = replace(drawn, fingerprint=_digest_table(drawn, data.columns))
        # A copy, since the scheme is fitted, and these settings may be applied again.
        return with_target_scheme(drawn, deepcopy(self.target_scheme))

    def _contaminate(self, data: Dataset, seed: int) -> Dataset:
        """Return the data set with outliers and noisy copies; unchanged where none are set."""
        data = with_outliers(data, self.outliers, self.outlier_share, self.outlier_size, seed)
        return add_noisy_copies(data, self.augment, self.augment_copies, self.augment_noise, seed)


def _require_dense_points(dataset: Dataset, setting: str, value: Any) -> None:
    """Raise `UserError` where a setting needs points in a dense array, and the data set has none.

    Its points are a memory map then, or sparse.
    """
    if not (is_in_memory(dataset.x) and is_in_memory(dataset.x_test)):
        reason = "sparse" if isinstance(dataset.x, SparsePoints) else "read block by block"
        raise UserError(
            f"{spell_setting(setting, value)}: takes points that are held in memory, and those of "
            f"{dataset.name} are {reason}; leave it out"
        )


def _refuse_lost_points(dataset: Dataset, mask: NDArray[np.bool_], setting: str) -> None:
    """Raise `UserError` where a mask (P,) of training points leaves too few, or none of a class."""
    lost: Any = np.setdiff1d(dataset.y, dataset.y[mask]) if dataset.classes else []
    if len(lost) or np.count_nonzero(mask) < 2:
        rest = f"no point of class {dataset.class_names[lost[0]]}" if len(lost) else "1 point"
        raise UserError(f"{setting}: leaves {rest} of {dataset.name} to train on; leave more")


def keep_classes(dataset: Dataset, classes: Any) -> Dataset:
    """Return the data set with the points of some classes; of a single one, they are unlabelled.

    Args:
        dataset: Any data set.
        classes: The setting `dataset.keep_classes`: some class names, numbers among them; None for
            all.

    Raises:
        UserError: The value is no list of its classes.
    """
    if classes is None:
        return dataset
    setting, names = "dataset.keep_classes", dataset.class_names
    rule = f"a list of classes of {dataset.name} ({', '.join(names) or 'it has none'})"
    listed = {str(entry) for entry in check_list(setting, classes, rule)}
    if not listed or not listed <= set(names):
        raise UserError(f"{spell_setting(setting, classes)}: must be {rule}")
    indices = [index for index, name in enumerate(names) if name in listed]
    data = take_points(dataset, np.isin(dataset.y, indices))
    test_mask = np.isin(dataset.y_test, indices)
    is_single = len(indices) == 1
    y, y_test = (
        np.empty(0) if is_single else np.searchsorted(indices, labels)
        for labels in (data.y, data.y_test[test_mask])
    )
    return data.with_points(
        task=infer_task(None if is_single else len(indices)),
        y=y,
        x_test=select_rows(data.x_test, test_mask),
        y_test=y_test,
        class_names=() if is_single else tuple(names[index] for index in indices),
    )


def draw_subset(dataset: Dataset, points: Any, seed: int) -> Dataset:
    """Return the data set with some of its training points, drawn class by class.

    Points are drawn without replacement and stay in their order. The number of points of a class
    differs from its share by less than one point. A test part stays as it is.

    Args:
        dataset: Any data set.
        points: How many training points to draw; None for all.
        seed: The seed of the generator that draws them.

    Returns:
        The data set with fewer points.

    Raises:
        UserError: For a number out of range, or where a class would be left without a point.
    """
    if points is None:
        return dataset
    count = check_integer("dataset.points", points, 2, len(dataset.x))
    rows = _order_by_class(dataset, seed)
    # Along an order by class, equally spaced positions from a random start give each class its
    # share of the points. The 1 makes the start independent of other draws from this seed.
    offset = np.random.default_rng([seed, 1]).random()
    positions = (offset + np.arange(count)) * len(rows) / count
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[rows[positions.astype(int)]] = True
    _refuse_lost_points(dataset, chosen, spell_setting("dataset.points", points))
    return take_points(dataset, chosen)


def take_points(
    dataset: Dataset, mask: NDArray[np.bool_], test_mask: NDArray[np.bool_] | None = None
) -> Dataset:
    """Return the data set with the training points of a mask (P,).

    Medians and categories of a table's columns are computed again from these points alone.

    Args:
        dataset: The data set.
        mask: The training points to keep (P,).
        test_mask: The points (P,) that become the test part; None leaves the test part as it is.
    """
    x, names, columns = dataset.x, dataset.feature_names, dataset.columns
    if columns is not None:
        x, names = columns.encode_features(mask)
        columns = columns.select_rows(mask)
    # Unlabelled points have an empty y, to which no mask fits.
    y = y_test = dataset.y
    if len(y):
        y, y_test = y[mask], y[mask if test_mask is None else test_mask]
    fields = {"x": select_rows(x, mask), "y": y, "feature_names": names, "columns": columns}
    if test_mask is not None:
        fields |= {"x_test": select_rows(x, test_mask), "y_test": y_test, "folds": ()}
    return dataset.with_points(**fields)


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
    setting = spell_setting("dataset.test_fraction", test_fraction)
    if len(dataset.x_test):
        raise UserError(
            f"{setting}: {dataset.name} already has a test part of {len(dataset.x_test)} points; "
            f"set {spell_setting('dataset.test_fraction', 0)} to use that one"
        )
    rng, groups = np.random.default_rng(seed), _groups(dataset)
    test_mask = np.zeros(len(dataset.x), dtype=bool)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        test_mask[rng.permutation(members)[: round(test_fraction * len(members))]] = True
    if not test_mask.any():
        raise UserError(f"{setting}: holds no point of {dataset.name} out; choose a larger share")
    _refuse_lost_points(dataset, ~test_mask, setting)
    return hold_out(dataset, test_mask)


def hold_out(dataset: Dataset, test_mask: NDArray[np.bool_]) -> Dataset:
    """Return the data set with the points of a mask as its test part.

    Noisy copies and outliers are not drawn again: see `Dataset.hold_out_and_redraw`.

    Args:
        dataset: A data set whose points are all training points; a test part would be replaced.
        test_mask: Which points to hold out (P,).

    Returns:
        The data set with a test part, without folds.
    """
    return take_points(dataset, ~test_mask, test_mask)


def assign_folds(dataset: Dataset, folds: Any, repeats: Any, seed: int) -> Dataset:
    """Return the data set with repeated cross-validations, their seeds counted from `seed` on.

    Each cross-validation assigns the points to folds, class by class: the sizes of two folds differ
    by one point at most, and so do their numbers of points of each class.

    Args:
        dataset: A data set in memory, without a test part.
        folds: How many folds each cross-validation has; None for no cross-validation.
        repeats: How many cross-validations there are.
        seed: The seed of the first one; each further one has the next seed.

    Returns:
        The data set with `folds`.

    Raises:
        UserError: For a number out of range, a test part, or points that are not in memory.
    """
    # Checked without folds, too: a mistyped value is an error whether or not it has an effect.
    repeats = check_integer("dataset.repeats", repeats, 1, MAX_REPEATS)
    if folds is None:
        return dataset
    setting = spell_setting("dataset.folds", folds)
    _require_dense_points(dataset, "dataset.folds", folds)
    if len(dataset.x_test):
        raise UserError(
            f"{setting}: holds points of {dataset.name} out by itself, beside a test part of "
            f"{len(dataset.x_test)}; leave one of them out"
        )
    count = check_integer("dataset.folds", folds, 2, len(dataset.x) // 2)
    # Along an order by class, folds are dealt in turn: the point at position i gets the fold
    # i modulo `count`. The argsort of an order is the position of each point in it.
    orders = [_order_by_class(dataset, seed + repeat) for repeat in range(repeats)]
    return replace(dataset, folds=tuple(np.argsort(order) % count for order in orders))


def hold_out_fold(dataset: Dataset, repeat: int, number: int) -> Dataset:
    """Return the data set with one fold of one of its cross-validations as its test part.

    Noisy copies and outliers of the other points are drawn anew.

    Args:
        dataset: A data set with `folds`.
        repeat: The index of the cross-validation.
        number: The index of the fold.

    Returns:
        The data set with a test part.
    """
    test_mask = dataset.folds[repeat] == number
    if dataset.hold_out_and_redraw is None:  # without noisy copies and outliers
        return hold_out(dataset, test_mask)
    return dataset.hold_out_and_redraw(test_mask, repeat)


def _digest_table(dataset: Dataset, columns: Columns) -> str:
    """Return a fingerprint of a data set that covers the table of its features, too."""
    from pandas.util import hash_pandas_object

    rows = hash_pandas_object(columns.frame, index=False).to_numpy()
    table = f"{dataset.fingerprint} {sorted(columns.encoded)} {columns.fill}".encode()
    return sha256(table + rows.tobytes()).hexdigest()


def set_fit_points(dataset: Dataset, fit_on: Any) -> Dataset:
    """Return the data set with a choice of the points from which schemes learn their statistics.

    Args:
        dataset: Any data set.
        fit_on: `train`, or `all` for training and test points.

    Returns:
        The data set with `fit_on`.

    Raises:
        UserError: For another word; for `all` without test points or folds, or where the points are
            on disk or sparse.
    """
    check_choice("dataset.fit_on", fit_on, FIT_ON_CHOICES)
    if fit_on == "all":
        _require_dense_points(dataset, "dataset.fit_on", fit_on)
        if not len(dataset.x_test) and not dataset.folds:
            raise UserError(
                f"{spell_setting('dataset.fit_on', fit_on)}: {dataset.name} has no test points; "
                f"set {spell_setting('dataset.test_fraction')} or {spell_setting('dataset.folds')}"
            )
    return replace(dataset, fit_on=fit_on)


def _groups(dataset: Dataset) -> NDArray[np.intp]:
    """Return the class of each point (P,); 0 of all points without classes."""
    return dataset.y if dataset.classes else np.zeros(len(dataset.x), dtype=np.intp)


def _order_by_class(dataset: Dataset, seed: int) -> NDArray[np.intp]:
    """Return the indices of the points (P,), class after class, each class in a random order.

    Without classes all points are in one random order.

    Args:
        dataset: The data set.
        seed: The seed of the random order.
    """
    shuffled = np.random.default_rng(seed).permutation(len(dataset.x))
    # A stable sort keeps the random order within a class.
    return shuffled[np.argsort(_groups(dataset)[shuffled], kind="stable")]


def with_outliers(dataset: Dataset, unit: Any, share: Any, size: Any, seed: int) -> Dataset:
    """Return the data set with outliers among its training points; test points stay unchanged.

    A cell becomes `x + size s e`, with the standard deviation s of its feature and its own standard
    normal e.

    Args:
        dataset: A data set in memory.
        unit: None for no outliers; `cells` draws single entries of the points, `points` whole rows.
        share: The share of the cells, or of the points, that is drawn, without replacement; one of
            them at least.
        size: The size of outliers, in standard deviations of the feature.
        seed: The seed of the draw.

    Raises:
        UserError: A setting is out of its range.
    """
    # Checked without outliers, too: a mistyped value is an error whether or not it has an effect.
    share = check_number("dataset.outlier_share", share, above=0, at_most=1)
    size = check_number("dataset.outlier_size", size, above=0, at_most=MAX_OUTLIER_SIZE)
    if unit is None:
        return dataset
    check_choice("dataset.outliers", unit, OUTLIERS)
    _require_dense_points(dataset, "dataset.outliers", unit)
    x = dataset.x.astype(np.float64)
    rng = np.random.default_rng([seed, 3])  # 3: other draws from this seed have other numbers
    drawn = np.zeros(x.shape, bool)
    # A view of the mask, whose rows are what is drawn: single cells, or whole points.
    rows = drawn.reshape(-1, 1) if unit == "cells" else drawn
    rows[rng.permutation(len(rows))[: max(1, round(share * len(rows)))]] = True
    outliers = x + size * x.std(axis=0) * rng.standard_normal(x.shape)
    return dataset.with_points(x=np.where(drawn, outliers, x).astype(dataset.x.dtype))


def add_noisy_copies(
    dataset: Dataset, noise_shape: Any, copies: Any, noise: Any, seed: int
) -> Dataset:
    """Return the data set with noisy copies of its training points, each copy drawn independently.

    The points come first, then the first copy of each point, and so on, with their targets; test
    points stay unchanged.

    Args:
        dataset: A data set in memory.
        noise_shape: None for no copies. `aligned` adds to a copy, along each principal axis of the
            training points, noise times the root of its eigenvalue times a standard normal; `round`
            adds noise of the same total variance, equal in all directions.
        copies: The number of copies of each point.
        noise: The size of the noise, relative to the standard deviation along each principal axis.
        seed: The seed of the generator.

    Returns:
        The data set, with (copies + 1) P training points; unchanged without copies.

    Raises:
        UserError: An option is out of its range.

    References:
        Krizhevsky, Sutskever, Hinton, "ImageNet classification with deep convolutional neural
        networks", 2012, section 4.1.
    """
    # Checked without copies, too: a mistyped value is an error whether or not it has an effect.
    copies = check_integer("dataset.augment_copies", copies, 1, MAX_COPIES)
    noise = check_number("dataset.augment_noise", noise, above=0)
    if noise_shape is None:
        return dataset
    check_choice("dataset.augment", noise_shape, NOISE_SHAPES)
    _require_dense_points(dataset, "dataset.augment", noise_shape)
    x = dataset.x.astype(np.float64)
    noise_factor = factor_noise(x, noise_shape)
    rng = np.random.default_rng([seed, 2])  # 2: other draws from this seed have other numbers
    noisy_copies = [x + noise * rng.standard_normal(x.shape) @ noise_factor for _ in range(copies)]
    x_augmented = np.concatenate([x, *noisy_copies]).astype(dataset.x.dtype)
    return dataset.with_points(x=x_augmented, y=np.tile(dataset.y, copies + 1))


def factor_noise(x: NDArray[np.float64], noise_shape: str) -> NDArray[np.float64]:
    """Return the matrix F (N, N) that turns standard normal rows e into noise `e F`.

    Args:
        x: Points (P, N).
        noise_shape: With `aligned` the noise has the covariance of the points; with `round` it has
            the same total variance, equal in all directions: F is a multiple of the identity.
    """
    # Unscaled, squares of large points overflow; 1 where all entries are 0.
    scale = float(np.abs(x).max()) or 1.0
    centred = (x - x.mean(axis=0)) / scale
    eigenvalues, eigenvectors = np.linalg.eigh(centred.T @ centred / len(x))
    deviations = np.sqrt(np.maximum(eigenvalues, 0.0))  # rounding can make an eigenvalue negative
    if noise_shape == "round":
        return np.asarray(scale * np.sqrt((deviations**2).mean()) * np.eye(x.shape[1]))
    # The symmetric root of the covariance, which the signs of the eigenvectors do not change: these
    # differ between processors.
    return np.asarray(scale * (eigenvectors * deviations) @ eigenvectors.T)


def with_target_scheme(dataset: Dataset, scheme: Any) -> Dataset:
    """Return the data set with its real targets under a scheme.

    Args:
        dataset: A data set of real targets.
        scheme: A scikit-learn transformer with an inverse, which is fitted on the training targets;
            None for targets as they are.

    Returns:
        The data set with transformed targets, and the given ones in `own_targets`; unchanged
        without a scheme.

    Raises:
        UserError: The targets are classes or missing, there is a cross-validation, or the scheme
            has no inverse, or does not return one finite number for each target.
    """
    if scheme is None:
        return dataset
    setting = spell_setting("dataset.target_scheme")
    if dataset.task != "regression" or dataset.folds:
        unfit = "folds" if dataset.folds else "classes" if dataset.classes else "none"
        raise UserError(
            f"{setting}: is for real targets of one training part, and {dataset.name} has {unfit}; "
            f"leave it out, or set {spell_setting('dataset.task', 'regression')} of a file"
        )

    def transform(targets: NDArray[Any]) -> NDArray[np.float64]:
        if not len(targets):  # scikit-learn refuses empty arrays
            return targets
        transformed = np.asarray(scheme.transform(targets[:, None]), np.float64)
        if not np.isfinite(transformed).all():
            raise ValueError("it gives targets that are not finite")
        return transformed.reshape(targets.shape)

    try:  # what is raised here ends as the reason in the error below
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            scheme.fit(dataset.y[:, None])
            y, y_test = transform(dataset.y), transform(dataset.y_test)
        if not hasattr(scheme, "inverse_transform"):
            raise ValueError("it has no inverse_transform, so predictions would have no units")
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{setting}: {type(scheme).__name__} is unfit for these targets "
            f"({' '.join(str(error).split())}); choose another scheme, such as standard or minmax"
        ) from error
    own_targets = OwnTargets(dataset.y, dataset.y_test, scheme)
    targets = digest(y, y_test, dataset.y, dataset.y_test)
    fingerprint = sha256(f"{dataset.fingerprint} {targets}".encode()).hexdigest()
    return replace(dataset, y=y, y_test=y_test, own_targets=own_targets, fingerprint=fingerprint)
