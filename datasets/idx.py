"""Load MNIST and Fashion-MNIST: images of 28 x 28 bytes in IDX files."""

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets import sampling
from normbench.datasets.dataset import Dataset, make_dataset
from normbench.datasets.download import RemoteFile, fetch
from normbench.datasets.values import check_choice, check_integer, check_switch

SUBSETS = ("test10k", "train60k", "train_test", "all70k")
HEADER_BYTES = {"images-idx3": 16, "labels-idx1": 8}  # before an IDX file's entries, a byte each
SIDE = 28  # of an image, in pixels
IMAGES_PER_BLOCK = 250  # images that are normalized at a time
FASHION_CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)


@dataclass(frozen=True)
class Images:
    """A publisher's images, P x 784: a loader, which returns them when it is called with options.

    Attributes:
        name: The name of the data set.
        class_names: The names of the ten classes.
        mirrors: Addresses of folders that hold the files; each ends in a slash.
        sums: The SHA-256 of each file, by its name without `-ubyte.gz`.
        folder: The folder of the files in `data_dir`, empty for `data_dir` itself. MNIST's and
            Fashion-MNIST's files have the same names, and so need two folders.
    """

    name: str
    class_names: Sequence[str]
    mirrors: Sequence[str]
    sums: Mapping[str, str]
    folder: str = ""

    def __call__(
        self,
        data_dir: str,
        subset: str = "test10k",
        contrast_normalize: bool = True,
        digits: Sequence[int] | None = None,
        points: int | None = None,
        seed: int = 0,
        precision: str = "float64",
        keep_classes: Sequence[Any] | None = None,
    ) -> Dataset:
        """Return the images, P x 784, from the four files of their publisher.

        Args:
            data_dir: The folder of downloaded data.
            subset: `test10k`, the 10,000 of the textbook's comparison; `train60k`; `train_test`,
                the 60,000 as training points and the 10,000 as test points; `all70k`, the 60,000
                and then the 10,000, all training points.
            contrast_normalize: Whether each image is centred by its own mean and divided by its own
                standard deviation (with the divisor 784; a constant image becomes 0).
            digits: The same as `keep_classes`.
            points: How many training points to keep, drawn without replacement, in their order; all
                by default.
            seed: The seed of that draw.
            precision: The type of the pixels. float32 halves the memory; the mean of the pixels is
                so small that no digits are lost.
            keep_classes: The classes to keep by their names, all by default; points of a single
                class are unlabelled.

        Raises:
            UserError: An option is out of its range, or a file is missing.
        """
        check_choice("dataset.subset", subset, SUBSETS)
        check_switch("dataset.contrast_normalize", contrast_normalize)
        rng = np.random.default_rng(check_integer("dataset.seed", seed, 0))
        split_names = {"test10k": ["t10k"], "all70k": ["train", "t10k"]}.get(subset, ["train"])
        images, labels = self._read(split_names, data_dir)
        # Without normalization the bytes become numbers.
        convert = normalize_contrast if contrast_normalize else np.asarray
        x_test = y_test = None
        if subset == "train_test":
            test_images, y_test = self._read(["t10k"], data_dir)
            x_test = convert(test_images, precision)
        data = make_dataset(
            self.name,
            convert(images, precision),
            labels,
            source=self.mirrors[0].rstrip("/"),
            x_test=x_test,
            y_test=y_test,
            feature_names=[
                f"pixel_{row}_{column}" for row in range(SIDE) for column in range(SIDE)
            ],
            class_names=self.class_names,
            precision=precision,
        )
        data = sampling.keep_classes(data, digits if keep_classes is None else keep_classes)
        if points is None:
            return data
        mask = np.zeros(len(data.x), bool)
        mask[
            rng.permutation(len(mask))[: check_integer("dataset.points", points, 2, len(mask))]
        ] = 1
        return sampling.take_points(data, mask)

    def files(self, split_name: str) -> list[RemoteFile]:
        """Return the two files of a split (`train` or `t10k`): its images, then its labels."""
        return [
            RemoteFile(
                f"{stem}-ubyte.gz",
                self.sums[stem],
                tuple(f"{mirror}{stem}-ubyte.gz" for mirror in self.mirrors),
                self.folder,
            )
            for stem in (f"{split_name}-{kind}" for kind in HEADER_BYTES)
        ]

    def _read(
        self, split_names: Sequence[str], data_dir: str
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return the images (P, 784) and labels (P,) of splits, each `train` or `t10k`, joined."""
        files = [self.files(split_name) for split_name in split_names]
        images, labels = (
            np.concatenate([read_idx(fetch(file, data_dir), kind) for file in kind_files])
            for kind_files, kind in zip(zip(*files), HEADER_BYTES)
        )
        return images.reshape(-1, SIDE**2), labels


mnist = Images(
    "mnist",
    [str(digit) for digit in range(10)],
    (
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
    ),
    {
        "train-images-idx3": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "t10k-images-idx3": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    },
)

# Xiao, Rasul, Vollgraf, "Fashion-MNIST", 2017. The sums are those that TensorFlow Datasets lists
# for the same addresses.
fashion_mnist = Images(
    "fashion_mnist",
    FASHION_CLASSES,
    (
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/"
        "b2617bb6d3ffa2e429640350f613e3291e10b141/data/fashion/",
    ),
    {
        "train-images-idx3": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "train-labels-idx1": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "t10k-images-idx3": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "t10k-labels-idx1": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    },
    folder="fashion_mnist",
)


def read_idx(path: Path, kind: str) -> NDArray[np.uint8]:
    """Return the entries of a gzipped IDX file of a kind of `HEADER_BYTES`, a byte each."""
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=HEADER_BYTES[kind])


def normalize_contrast(images: NDArray[np.uint8], precision: str = "float64") -> NDArray[Any]:
    """Return images (P, N), each minus its mean and over its standard deviation (divisor N).

    A constant image becomes 0. The result is computed in float64, some images at a time, and stored
    in the precision (`float32` or `float64`).
    """
    normalized = np.empty(images.shape, dtype=precision)
    for first in range(0, len(images), IMAGES_PER_BLOCK):
        block = images[first : first + IMAGES_PER_BLOCK].astype(np.float64)
        block -= block.mean(axis=1, keepdims=True)
        scale = np.sqrt(np.einsum("pn,pn->p", block, block) / block.shape[1])
        normalized[first : first + IMAGES_PER_BLOCK] = (
            block / np.where(scale > 0, scale, 1)[:, None]
        )
    return normalized
