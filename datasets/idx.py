"""Load MNIST and Fashion-MNIST: images of 28 x 28 bytes in IDX files."""

import gzip
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.dataset import Dataset, UserError, make_dataset
from normbench.datasets.download import RemoteFile, fetch
from normbench.datasets.values import (
    check_choice,
    check_integer,
    check_list,
    check_switch,
    refuse_larger,
)

SUBSETS = ("test10k", "train60k", "train_test", "all70k")
MAGIC_NUMBERS = {"labels": 2049, "images": 2051}  # two zero bytes, 8 for bytes, the dimensions
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
    ) -> Dataset:
        """Return the images, P x 784, from the four files of their publisher.

        Args:
            data_dir: The folder of downloaded data.
            subset: `test10k`, the 10,000 of the textbook's comparison; `train60k`; `train_test`,
                the 60,000 as training points and the 10,000 as test points; `all70k`, the 60,000
                and then the 10,000, all training points.
            contrast_normalize: Whether each image is centred by its own mean and divided by its own
                standard deviation (with the divisor 784; a constant image becomes 0).
            digits: The classes to keep, all by default; points of a single class are unlabelled.
            points: How many training points to keep, drawn without replacement, in their order; all
                by default.
            seed: The seed of that draw.
            precision: The type of the pixels. float32 halves the memory; the mean of the pixels is
                so small that no digits are lost.

        Raises:
            UserError: An option is out of its range, or a file is missing or damaged.
        """
        check_choice("precision", precision, ("float64", "float32"))
        check_choice("dataset.subset", subset, SUBSETS)
        check_switch("dataset.contrast_normalize", contrast_normalize)
        seed = check_integer("dataset.seed", seed, 0)
        kept_digits = _check_digits(digits)
        splits = [
            self._load_split("t10k" if subset == "test10k" else "train", data_dir, kept_digits)
        ]
        if subset == "all70k":
            splits.append(self._load_split("t10k", data_dir, kept_digits))
        images, labels = (np.concatenate(arrays) for arrays in zip(*splits))
        if points is not None:
            count = check_integer("dataset.points", points, 2, len(images))
            rows = np.sort(np.random.default_rng(seed).permutation(len(images))[:count])
            images, labels = images[rows], labels[rows]
        test_split = (
            self._load_split("t10k", data_dir, kept_digits) if subset == "train_test" else None
        )
        # Both take (images, precision): without normalization the bytes become numbers.
        convert = normalize_contrast if contrast_normalize else np.asarray
        single_class = len(kept_digits) == 1
        return make_dataset(
            self.name,
            convert(images, precision),
            None if single_class else labels,
            source=self.mirrors[0].rstrip("/"),
            x_test=None if test_split is None else convert(test_split[0], precision),
            y_test=None if test_split is None or single_class else test_split[1],
            feature_names=[f"pixel_{row}_{column}" for row in range(28) for column in range(28)],
            class_names=None
            if single_class
            else [self.class_names[digit] for digit in kept_digits],
            precision=precision,
        )

    def files(self, split_name: str) -> list[RemoteFile]:
        """Return the two files of a split (`train` or `t10k`): its images, then its labels."""
        stems = [f"{split_name}-{array_kind}" for array_kind in ("images-idx3", "labels-idx1")]
        names = {stem: f"{stem}-ubyte.gz" for stem in stems}
        return [
            RemoteFile(
                name,
                self.sums[stem],
                tuple(f"{mirror}{name}" for mirror in self.mirrors),
                self.folder,
            )
            for stem, name in names.items()
        ]

    def _load_split(
        self, split_name: str, data_dir: str, kept_digits: list[int]
    ) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
        """Return the images (P, 784) of the kept digits, and their class indices (P,).

        Args:
            split_name: `train` or `t10k`.
            data_dir: The folder of downloaded data.
            kept_digits: The digits to keep, increasing; a class index is a position in this list.

        Raises:
            UserError: A file is missing or damaged.
        """
        paths = [fetch(file, data_dir) for file in self.files(split_name)]
        images, labels = read_idx(paths[0], "images"), read_idx(paths[1], "labels")
        if len(images) != len(labels):
            raise UserError(f"{paths[0]}: has {len(images)} images for {len(labels)} labels")
        # One entry for each value of a byte; -1 stands for digits that are not kept.
        class_of_digit = np.full(256, -1, dtype=np.intp)
        class_of_digit[kept_digits] = np.arange(len(kept_digits))
        classes = class_of_digit[labels]
        if len(kept_digits) == 10:  # without a copy of the images
            return images, classes
        return images[classes >= 0], classes[classes >= 0]


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


def read_idx(path: Path, array_kind: str) -> NDArray[np.uint8]:
    """Return the bytes of a gzipped IDX file of `images` (P, N) or `labels` (P,).

    An IDX file holds a magic number, the size of each dimension (each 4 bytes, big-endian), and
    then the entries, a byte each.

    Args:
        path: The file.
        array_kind: `images` or `labels`.

    Raises:
        UserError: The file is truncated, is no such IDX file, or has another number of bytes than
            it announces.
    """
    remedy = "remove it, and it is downloaded again"
    try:
        with gzip.open(path) as file:
            magic = int.from_bytes(file.read(4), "big")
            if magic != MAGIC_NUMBERS[array_kind]:
                raise UserError(
                    f"{path}: starts with {magic}, an IDX file of {array_kind} with "
                    f"{MAGIC_NUMBERS[array_kind]}; {remedy}"
                )
            # The last byte of the magic number counts the dimensions; each size takes 4 bytes.
            header = file.read(4 * (magic % 256))
            # Of a truncated header only whole sizes are read; the lengths are compared below.
            shape = tuple(map(int, np.frombuffer(header[: len(header) // 4 * 4], ">u4")))
            expected = math.prod(shape)
            refuse_larger(f"{path}", expected, remedy)
            content = file.read(expected + 1)  # one more byte shows that the file holds more
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: is no whole gzip file ({error}); {remedy}") from error
    # The header is truncated, there is no entry, or there are more or fewer than announced.
    if len(shape) != magic % 256 or not expected or len(content) != expected:
        held = "more" if len(content) > expected else len(content)
        raise UserError(
            f"{path}: announces {' x '.join(map(str, shape))} = {expected} bytes of "
            f"{array_kind} and holds {held}; {remedy}"
        )
    values = np.frombuffer(content, np.uint8)
    return values.reshape(shape[0], -1) if array_kind == "images" else values


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


def _check_digits(digits: Any) -> list[int]:
    """Return the setting `dataset.digits` as a sorted list, all ten for None.

    Raises `UserError` unless it is a list of different digits, one at least.
    """
    if digits is None:
        return list(range(10))
    name = "dataset.digits"
    rule = f"a list of classes, such as {name}=[3,8]"
    kept_digits = sorted(
        check_integer(name, digit, 0, 9) for digit in check_list(name, digits, rule)
    )
    if not kept_digits or len(set(kept_digits)) < len(kept_digits):
        raise UserError(f"{name}={digits}: must be one class or several different ones, as [3,8]")
    return kept_digits
