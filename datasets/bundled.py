"""The data sets that scikit-learn ships: no download."""

from datasets.dataset import Dataset, make_dataset


def breast_cancer() -> Dataset:
    """Return the Wisconsin Diagnostic breast cancer data, 569 x 30, malignant 0 and benign 1."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    return make_dataset(
        "breast_cancer",
        bunch.data,
        bunch.target,
        feature_names=[str(name) for name in bunch.feature_names],
        class_names=[str(name) for name in bunch.target_names],
        source="scikit-learn load_breast_cancer (UCI, Wisconsin Diagnostic)",
    )


def digits() -> Dataset:
    """Return the 8 x 8 handwritten digits, 1797 x 64, ten classes."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return make_dataset(
        "digits",
        bunch.data,
        bunch.target,
        feature_names=[str(name) for name in bunch.feature_names],
        class_names=[str(name) for name in bunch.target_names],
        source="scikit-learn load_digits (UCI, optical recognition of handwritten digits)",
    )
