"""Load the data of "Machine Learning Refined" (Watt, Borhani, Katsaggelos), and Old Faithful.

Most of the textbook's files have one point per column and the target in the last row.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.dataset import Dataset, make_dataset
from normbench.datasets.download import RemoteFile, fetch
from normbench.datasets.labels import label_dataset
from normbench.datasets.values import check_number, check_switch

TEXTBOOK = (
    "https://raw.githubusercontent.com/neonwatty/machine_learning_refined/"
    "e8054c33da2729fbfe0eb55171473ca010f26e86/exercises/ed_2/mlrefined_datasets/"
)
GEYSER = (
    "https://raw.githubusercontent.com/mwaskom/seaborn-data/"
    "71e2436a092d714350de0fc409ca8a8714e7e78f/geyser.csv"
)
GEYSER_NAMES = ("duration (minutes)", "waiting (minutes)")
UNSUPERVISED = ("2d_span_data", "3d_span_data", "PCA_class_data")  # of the textbook's files
SUMS = {  # SHA-256 of the textbook's files
    "breast_cancer_data": "29769297e811f3215d15f563d9af05286fd025e6d27a8602bde4e1eb49bc68b9",
    "unnorm_linregress_data": "2f41c80be55ee947d259b393674cd76ec795aefa5fdd50e36f744a61d8b05bfa",
    "highdim_multirange_linregress": (
        "69df5f321baa985a9f8ef4dd23eee9f957475d6d370294ed2adaa83d1dc8aec0"
    ),
    "2d_classification_data_v1": "f2307600926cc6dc7d37f6a403c52454c6265d7646e6a803a81c3feffc7c90bd",
    "3class_data": "aaaf54d37d635ecccb55fee0e9ab25df92729c7166916a541057cbe77956802c",
    "4class_data": "20a603e652aa4731398f3c0747557db4de455ce88c65b5d67197227aa42bd3ca",
    "2d_span_data": "8f537b63ffa4a609e7785e66aa55bff24ea7e10ed5f02d0373c51e2fcdf1f06e",
    "3d_span_data": "91b968d4016c24c675b3697d080ffcdd8246d48f5e668ae555395efce08532c4",
    "PCA_class_data": "9d46adc24bf43de8c660ddc74654a44fac5d9ed1a0b0392cc0af970a347fddb9",
}


def breast_cancer_textbook(data_dir: str) -> Dataset:
    """Return the textbook's breast cancer data, 699 x 8, labels -1 (241 points) and +1 (458)."""
    return _supervised("breast_cancer_textbook", "breast_cancer_data", data_dir)


def linear_regression_textbook(data_dir: str) -> Dataset:
    """Return the textbook's regression on one feature that is not normalized, 100 x 1."""
    name, stem = "linear_regression_textbook", "unnorm_linregress_data"
    return _supervised(name, stem, data_dir, "regression")


def multirange_regression_textbook(data_dir: str) -> Dataset:
    """Return the textbook's regression on five features of different ranges, 200 x 5."""
    name, stem = "multirange_regression_textbook", "highdim_multirange_linregress"
    return _supervised(name, stem, data_dir, "regression")


def one_feature_textbook(data_dir: str, shift: Any = 0.0, flip_last: Any = False) -> Dataset:
    """Return the textbook's two classes on one feature, 11 x 1, labels -1 and +1.

    The textbook scales the features of this data (2nd ed. 9.4) with a shift of 4, and with the last
    label changed to -1.

    Args:
        data_dir: The folder of downloaded data.
        shift: A number that is added to every input.
        flip_last: Whether the last point changes its class.

    Raises:
        UserError: An option is no number, or not true or false.
    """
    (x, y), source = _read("2d_classification_data_v1", data_dir)
    x = x + check_number("dataset.shift", shift)
    if check_switch("dataset.flip_last", flip_last):
        y[-1] = -y[-1]
    return label_dataset("one_feature_textbook", x[:, None], y, "classes", source=source)


def three_classes_textbook(data_dir: str) -> Dataset:
    """Return the textbook's three classes on two features, 30 x 2."""
    return _supervised("three_classes_textbook", "3class_data", data_dir)


def four_classes_textbook(data_dir: str) -> Dataset:
    """Return the textbook's four classes on two features, 40 x 2."""
    return _supervised("four_classes_textbook", "4class_data", data_dir)


def span_2d(data_dir: str) -> Dataset:
    """Return the textbook's unlabelled points in the plane, 50 x 2."""
    table, source = _read("2d_span_data", data_dir)
    return make_dataset("span_2d", table.T, source=source)


def span_3d(data_dir: str) -> Dataset:
    """Return the textbook's unlabelled points in space, 100 x 3."""
    table, source = _read("3d_span_data", data_dir)
    return make_dataset("span_3d", table.T, source=source)


def separable_2d(data_dir: str) -> Dataset:
    """Return two classes on two features, 23 x 2, that one line separates.

    Their first principal component does not. The file has one point per row.
    """
    table, source = _read("PCA_class_data", data_dir)
    return label_dataset("separable_2d", table[:, :-1], table[:, -1], "classes", source=source)


def old_faithful(data_dir: str) -> Dataset:
    """Return the eruptions of the geyser Old Faithful, unlabelled, 272 x 2, both in minutes."""
    digest = "ce8f6bd15967c9a3dee345aaf268f6b92623abb1e1d313e04d79b720aa6b8bd6"
    path = fetch(RemoteFile("geyser.csv", digest, (GEYSER,)), data_dir)
    table = np.loadtxt(path, delimiter=",", skiprows=1, usecols=(0, 1))
    return make_dataset("old_faithful", table, source=GEYSER, feature_names=GEYSER_NAMES)


def _supervised(name: str, stem: str, data_dir: str, task: str = "classes") -> Dataset:
    """Return the data set of a supervised file, whose last row holds the targets.

    Args:
        name: The name of the data set.
        stem: The file's name without `.csv`.
        data_dir: The folder of downloaded data.
        task: `classes` or `regression`.
    """
    table, source = _read(stem, data_dir)
    return label_dataset(name, table[:-1].T, table[-1], task, source=source)


def _read(stem: str, data_dir: str) -> tuple[NDArray[np.float64], str]:
    """Return the table of one of the textbook's files as it stands, and the file's address.

    Most tables have one point per column. The file is downloaded if `data_dir` lacks it.

    Args:
        stem: The file's name without `.csv`.
        data_dir: The folder of downloaded data.
    """
    folder = "unsuperlearn_datasets" if stem in UNSUPERVISED else "superlearn_datasets"
    address = f"{TEXTBOOK}{folder}/{stem}.csv"
    path = fetch(RemoteFile(f"{stem}.csv", SUMS[stem], (address,)), data_dir)
    return np.loadtxt(path, delimiter=",", ndmin=2), address
