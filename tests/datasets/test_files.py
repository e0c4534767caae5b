"""The user's own files: however they are laid out, the same points come out."""

import gzip

import numpy as np
import pandas as pd
import pytest

from normbench.datasets.arrays import npz
from normbench.datasets.files import DELIMITERS, csv, parquet
from normbench.datasets.textbook import breast_cancer_textbook
from tests.datasets.places import data_folder

RNG = np.random.default_rng(0)
POINTS = RNG.standard_normal((30, 3)) * 10.0 ** RNG.integers(-20, 20, (30, 3))
LABELS = np.array(["no", "yes"])[np.arange(30) % 2]
TABLE = pd.DataFrame(POINTS, columns=["a", "b b", "c,c"]).assign(label=LABELS)


def sound(data):
    assert data.x.tolist() == POINTS.tolist()  # to the last bit
    assert data.y.tolist() == [0, 1] * 15
    assert data.class_names == ("no", "yes")


@pytest.mark.parametrize("delimiter", sorted(set(DELIMITERS) - {"space"}))
def test_csv_keeps_every_bit(tmp_path, delimiter):
    path = tmp_path / "my.points.csv"
    TABLE.to_csv(path, index=False, sep=DELIMITERS[delimiter])
    data = csv(str(path), "label", delimiter=delimiter)
    sound(data)
    assert data.name == "my.points"
    assert data.feature_names == ("a", "b b", "c,c")


def test_csv_by_spaces_without_header(tmp_path):
    path = tmp_path / "my.txt"
    path.write_text("\n".join(" ".join(map(str, row)) for row in TABLE.to_numpy().tolist()))
    sound(csv(str(path), -1, header=False, delimiter="space"))


@pytest.mark.parametrize("header", [True, False])
def test_csv_with_points_in_columns(tmp_path, header):
    path = tmp_path / "my.csv"
    TABLE.T.to_csv(path, index=header, header=False)
    data = csv(str(path), "label" if header else -1, header=header, points_in="columns")
    sound(data)
    assert data.feature_names == (("a", "b b", "c,c") if header else ("0", "1", "2"))


def test_csv_in_gzip_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "my.csv.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + TABLE.to_csv(index=False).encode()))
    data = csv(str(path), "label")
    sound(data)
    assert data.feature_names[0] == "a"


@pytest.mark.parametrize("target", ["label", -1, 3])
def test_the_target_goes_by_name_or_position(tmp_path, target):
    path = tmp_path / "my.csv"
    TABLE.to_csv(path, index=False)
    sound(csv(str(path), target))


def test_columns_are_left_out_by_name_or_position(tmp_path):
    path = tmp_path / "my.csv"
    TABLE.assign(id="x").to_csv(path, index=False)
    data = csv(str(path), "label", drop=["id", 0])
    assert data.feature_names == ("b b", "c,c")


def test_columns_that_are_counted_are_a_header(tmp_path):
    path = tmp_path / "my.csv"
    pd.DataFrame(np.column_stack([POINTS, np.arange(30) % 2])).to_csv(path, index=False)
    data = csv(str(path), -1)
    assert data.feature_names == ("0", "1", "2")
    assert data.x.tolist() == POINTS.tolist()


@pytest.mark.parametrize("dtype", ["category", "string", object])
def test_parquet_keeps_every_bit(tmp_path, dtype):
    path = tmp_path / "my.parquet"
    TABLE.astype({"label": dtype}).to_parquet(path)
    sound(parquet(str(path), "label"))


def test_whole_numbers_truth_values_and_float32_are_features(tmp_path):
    frame = pd.DataFrame(
        {
            "truth": [True, False, True],
            "whole": pd.array([1, 2, 3], "Int64"),
            "single": np.array([0.1, 0.2, 0.3], np.float32),
            "label": pd.array([True, False, True], "boolean"),
        }
    )
    frame.to_parquet(tmp_path / "my.parquet")
    data = parquet(str(tmp_path / "my.parquet"), "label")
    assert data.x[:, :2].tolist() == [[1, 1], [0, 2], [1, 3]]
    assert data.class_names == ("False", "True")


def test_an_index_of_a_parquet_file_is_no_feature(tmp_path):
    frame = pd.DataFrame({"b": [1, 2, 3], "b.c": ["x", "y", "z"], "a": [4, 5, 6]})
    frame.set_index(pd.Index(["p", "q", "r"], name="id")).to_parquet(tmp_path / "my.parquet")
    data = parquet(str(tmp_path / "my.parquet"), drop=["b.c"])
    assert data.feature_names == ("b", "a")
    assert data.x.tolist() == [[1, 4], [2, 5], [3, 6]]


def test_npz_with_a_test_part(tmp_path):
    path = tmp_path / "my.npz"
    np.savez(path, points=POINTS, kinds=LABELS, others=POINTS[:2], more=LABELS[:2])
    data = npz(str(path), "points", "kinds", "others", "more")
    sound(data)
    assert data.x_test.tolist() == POINTS[:2].tolist()
    assert data.y_test.tolist() == [0, 1]


def test_the_textbooks_file_as_a_users_own():
    folder = data_folder()
    own = csv(str(folder / "breast_cancer_data.csv"), -1, header=False, points_in="columns")
    ours = breast_cancer_textbook(str(folder))
    assert own.fingerprint == ours.fingerprint
    assert own.class_names == ours.class_names
