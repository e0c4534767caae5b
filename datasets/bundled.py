"""Load the data sets that scikit-learn ships, without a download."""

from dataclasses import replace
from typing import Any

from normbench.datasets.dataset import Dataset, make_dataset


def breast_cancer() -> Dataset:
    """Return the Wisconsin Diagnostic breast cancer data, 569 x 30, malignant 0 and benign 1."""
    return _load("breast_cancer", "UCI, Wisconsin Diagnostic")


def digits() -> Dataset:
    """Return the 8 x 8 handwritten digits, 1797 x 64, ten classes."""
    return _load("digits", "UCI, optical recognition of handwritten digits")


def iris() -> Dataset:
    """Return Fisher's iris flowers, 150 x 4, three species, lengths in cm."""
    return _load("iris", "UCI, Iris")


def wine() -> Dataset:
    """Return the chemical analysis of Italian wines, 178 x 13, three growers."""
    return _load("wine", "UCI, Wine")


def diabetes() -> Dataset:
    """Return the diabetes data, 442 x 10, in its own units; the target is the disease's progress.

    By default scikit-learn hands the features out standardized; here they are not, since the
    schemes do that.

    References:
        Efron, Hastie, Johnstone, Tibshirani, "Least Angle Regression", 2004.
    """
    return _load("diabetes", "not scaled, Efron et al. 2004", scaled=False)


def china() -> Dataset:
    """Return the pixels of scikit-learn's photograph of a temple in China, 273,280 x 3, unlabelled.

    The features of a pixel are its red, green and blue, from 0 to 255. `Dataset.picture` keeps the
    height and width.
    """
    from sklearn.datasets import load_sample_image

    image = load_sample_image("china.jpg")
    pixels = make_dataset(
        "china",
        image.reshape(-1, 3),
        feature_names=["red", "green", "blue"],
        source="scikit-learn load_sample_image, china.jpg",
    )
    return replace(pixels, picture=image.shape[:2])


def _load(name: str, origin: str, **options: Any) -> Dataset:
    """Return a data set by the name that scikit-learn gives it; without class names, real targets.

    Args:
        name: The name, such as `iris` for scikit-learn's `load_iris`.
        origin: Where scikit-learn has the data from, for `Dataset.source`.
        **options: Those of scikit-learn's loader.
    """
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")(**options)
    class_names = bunch.get("target_names")
    return make_dataset(
        name,
        bunch.data,
        bunch.target,
        feature_names=[str(feature) for feature in bunch.feature_names],
        class_names=None if class_names is None else [str(label) for label in class_names],
        source=f"scikit-learn load_{name} ({origin})",
    )
