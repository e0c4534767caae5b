"""What all data sets can be asked for: fewer points, a test part, folds, copies, outliers."""

from dataclasses import dataclass
from typing import Any

from normbench.datasets.augment import augmented
from normbench.datasets.dataset import Dataset, split
from normbench.datasets.on_disk.parts import fitted_on, folded, subset
from normbench.datasets.outliers import with_outliers
from normbench.datasets.values import UserError, number, whole


@dataclass(frozen=True)
class Drawn:
    """The settings of `conf/config.yaml` that every data set has, `dataset.points` and so on.

    Raises `UserError` for a share or a seed that no data set could have, before one is loaded.
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

    def __post_init__(self) -> None:
        fraction = number("dataset.test_fraction", self.test_fraction, least=0, below=1)
        object.__setattr__(self, "test_fraction", fraction)
        object.__setattr__(self, "split_seed", whole("dataset.split_seed", self.split_seed, 0))
        if self.outliers is not None and self.augment is not None:
            raise UserError(
                f"dataset.outliers={self.outliers}: cannot stand beside dataset.augment="
                f"{self.augment}, whose copies would repeat the outliers; leave one of them out"
            )

    def of(self, dataset: Dataset) -> Dataset:
        """Return the points of a data set that a job has. Raises `UserError`."""
        seed = self.split_seed
        data = split(subset(dataset, self.points, seed), self.test_fraction, seed)
        data = fitted_on(folded(data, self.folds, self.repeats, seed), self.fit_on)
        data = with_outliers(data, self.outliers, self.outlier_share, self.outlier_size, seed)
        return augmented(data, self.augment, self.augment_copies, self.augment_noise, seed)
