"""The settings of any data set: subset, test part, folds, copies, outliers, scale of targets."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from normbench.datasets.augment import add_noisy_copies
from normbench.datasets.dataset import Dataset, split
from normbench.datasets.on_disk.subsets import (
    assign_folds,
    draw_subset,
    fingerprint_folds,
    set_fit_points,
)
from normbench.datasets.outliers import with_outliers
from normbench.datasets.target_scheme import with_target_scheme
from normbench.datasets.values import UserError, check_integer, check_number


@dataclass(frozen=True)
class Sampling:
    """The settings of `conf/config.yaml` that every data set has, `dataset.points` and so on.

    Attributes:
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

    Raises:
        UserError: For a share or a seed that no data set could have, or outliers beside noisy
            copies, before any data set is loaded.
    """

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

    def __post_init__(self) -> None:
        """Check the settings that no data set is needed for; the others are checked in `apply`."""
        fraction = check_number("dataset.test_fraction", self.test_fraction, at_least=0, below=1)
        object.__setattr__(self, "test_fraction", fraction)  # the class is frozen
        object.__setattr__(
            self, "split_seed", check_integer("dataset.split_seed", self.split_seed, 0)
        )
        if self.outliers is not None and self.augment is not None:
            raise UserError(
                f"dataset.outliers={self.outliers}: cannot stand beside dataset.augment="
                f"{self.augment}, whose copies would repeat the outliers; leave one of them out"
            )

    def apply(self, dataset: Dataset) -> Dataset:
        """Return a loaded data set under these settings.

        They are applied in this order: subset, test part, folds, outliers, noisy copies, scheme of
        the targets. Raises `UserError` where one does not fit the data set.
        """
        seed = self.split_seed
        data = split(draw_subset(dataset, self.points, seed), self.test_fraction, seed)
        data = set_fit_points(assign_folds(data, self.folds, self.repeats, seed), self.fit_on)
        columns = data.columns  # outliers and copies drop the table, which the fingerprint needs
        data = with_outliers(data, self.outliers, self.outlier_share, self.outlier_size, seed)
        data = add_noisy_copies(data, self.augment, self.augment_copies, self.augment_noise, seed)
        # A copy, since the scheme is fitted, and these settings may be applied again.
        data = with_target_scheme(data, self.target_scheme and deepcopy(self.target_scheme))
        return fingerprint_folds(data, columns)
