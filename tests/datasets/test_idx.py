"""MNIST: its files, its options, and the contrast normalization of the textbook."""

import hashlib

import numpy as np
import pytest

from normbench.datasets.idx import fashion_mnist, mnist, normalize_contrast
from tests.datasets.places import data_folder


def test_contrast_is_one_for_every_image_but_a_constant_one():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (2500, 784)).astype(np.uint8)
    images[7] = 9
    z = normalize_contrast(images)
    others = np.arange(len(z)) != 7
    assert not z[7].any()
    np.testing.assert_allclose(z.mean(axis=1), 0, atol=1e-14)  # measured: 2e-16
    np.testing.assert_allclose(z[others].std(axis=1), 1, rtol=1e-13)  # measured: 9e-16
    plain = images.astype(float)
    expected = (plain - plain.mean(axis=1)[:, None])[others] / plain[others].std(axis=1)[:, None]
    np.testing.assert_allclose(z[others], expected, atol=1e-13)  # measured: 2e-15


def test_digits_are_kept_and_renumbered():
    folder = str(data_folder())
    data = mnist(folder, keep_classes=[8, 3], contrast_normalize=False)
    assert data.task == "binary"
    assert data.encoding == "3=0, 8=1"
    assert np.bincount(data.y).tolist() == [1010, 974]  # of the test part, as published
    whole = mnist(folder, contrast_normalize=False)
    assert (whole.x[np.isin(whole.y, [3, 8])] == data.x).all()
    assert data.x.max() == 255


@pytest.mark.commands
def test_all_images_are_the_train_part_and_then_the_test_part():
    folder = str(data_folder())
    every = mnist(folder, "all70k", digits=[3], contrast_normalize=False, precision="float32")
    assert every.x.shape == (7141, 784)  # as published: 6,131 and 1,010
    assert (every.task, len(every.y), len(every.x_test)) == ("unlabelled", 0, 0)
    first, last = (mnist(folder, part, keep_classes=[3, 8]) for part in ("train60k", "test10k"))
    both = mnist(folder, "all70k", keep_classes=[3, 8])
    assert (both.x == np.concatenate([first.x, last.x])).all()
    assert (both.y == np.concatenate([first.y, last.y])).all()


def test_a_single_class_is_unlabelled_in_its_test_part_too():
    data = mnist(str(data_folder()), "train_test", keep_classes=[3], contrast_normalize=False)
    assert (data.x.shape, data.x_test.shape) == ((6131, 784), (1010, 784))
    assert (data.task, data.classes, len(data.y_test)) == ("unlabelled", 0, 0)


def test_points_are_drawn_by_the_seed():
    folder = str(data_folder())
    first, again, other = (mnist(folder, points=100, seed=seed) for seed in (0, 0, 1))
    assert first.x.shape == (100, 784)
    assert first.fingerprint == again.fingerprint != other.fingerprint


def test_the_parts_of_train_test_are_the_publishers():
    folder = str(data_folder())
    data = mnist(folder, "train_test", points=500)
    assert data.x.shape == (500, 784)
    assert data.x_test.shape == (10000, 784)
    assert (data.x_test == mnist(folder).x).all()
    small = mnist(folder, "train60k", keep_classes=[0, 1], points=500)
    assert len(small.x_test) == 0


@pytest.mark.parametrize("part", ["t10k", "train"])
def test_the_files_are_those_of_the_publisher(part):
    for file in mnist.files(part):
        content = (data_folder() / file.name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file.sha256
        assert len(file.addresses) == 2


def test_fashion_mnist_has_a_folder_of_its_own(tmp_path, monkeypatch):
    files = [*fashion_mnist.files("train"), *fashion_mnist.files("t10k")]
    assert {file.folder for file in files} == {"fashion_mnist"}
    monkeypatch.setattr(
        "normbench.datasets.idx.fetch", lambda file, folder: data_folder() / file.name
    )
    data = fashion_mnist(str(tmp_path), points=50)  # MNIST's bytes under the other's names
    assert data.name == "fashion_mnist"
    assert data.class_names[0] == "T-shirt/top"
    assert data.classes == 10
