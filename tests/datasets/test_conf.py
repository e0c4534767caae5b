"""Every data set under conf/dataset loads and is sound: a new one is tested without a new test."""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch

from normbench.choices import CONF, build, import_target, options
from normbench.costs.declaration import traits
from normbench.datasets import UserError
from normbench.datasets.on_disk.points import as_array
from normbench.engine.settings import Settings
from normbench.job import Job, run
from tests.datasets.places import data_folder

NAMES = sorted(path.stem for path in (CONF / "dataset").glob("*.yaml"))
TABLE = pd.DataFrame(
    {"a": [1.5, 2.5, 3.5, 4.5], "b": [1, 0, 0, 1], "label": ["no", "yes", "yes", "no"]}
)


def write_csv(folder):
    TABLE.to_csv(folder / "mine.csv", index=False)
    return {"path": str(folder / "mine.csv"), "target": "label"}


def write_parquet(folder):
    TABLE.to_parquet(folder / "mine.parquet")
    return {"path": str(folder / "mine.parquet"), "target": "label"}


def write_npz(folder):
    np.savez(folder / "mine.npz", x=TABLE[["a", "b"]].to_numpy(), y=TABLE["label"].to_list())
    return {"path": str(folder / "mine.npz")}


def write_npy(folder):
    np.save(folder / "mine.npy", np.ascontiguousarray(TABLE[["a", "b"]]))
    np.save(folder / "y.npy", TABLE["label"].to_list())
    return {"path": str(folder / "mine.npy"), "targets": str(folder / "y.npy")}


def write_svmlight(folder):
    (folder / "mine.svmlight").write_text("1 1:1.5 2:1\n2 1:2.5\n2 1:3.5\n1 1:4.5 2:1\n")
    return {"path": str(folder / "mine.svmlight")}


OWN = {
    "npy": write_npy,
    "csv": write_csv,
    "parquet": write_parquet,
    "npz": write_npz,
    "svmlight": write_svmlight,
}


def choice(name, folder, monkeypatch):
    """Return a data set's options, with what a user would have to give."""
    found = options("dataset", name)
    if name in OWN:
        return found | OWN[name](folder)
    if name == "openml":
        monkeypatch.setattr(
            "sklearn.datasets.fetch_openml",
            lambda **_: Bunch(frame=TABLE, target_names=["label"], url="made"),
        )
        return found | {"name": "mine", "data_dir": str(folder)}
    if "precision" in found:
        assert found["precision"] == "${precision}"
        found["precision"] = "float64"
    if "data_dir" in found:
        assert found["data_dir"] == "${data_dir}"
        found["data_dir"] = str(data_folder())
    if name == "fashion_mnist" and not (data_folder() / name).is_dir():
        pytest.skip("no real data: shared/data has no fashion_mnist")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_data_set_is_sound(name, tmp_path, monkeypatch):
    described = choice(name, tmp_path, monkeypatch)
    data = build("dataset", described)
    assert data.name == ("mine" if name in (*OWN, "openml") else name)
    assert data.task in ("binary", "multiclass", "regression", "unlabelled")
    assert data.source
    for x, y in ((data.x, data.y), (data.x_test, data.y_test)):
        x = as_array(x)
        assert x.dtype == np.float64
        assert x.flags.c_contiguous
        assert x.shape[1] == data.x.shape[1] == len(data.feature_names)
        assert np.isfinite(x).all()
        assert np.isfinite(y).all()
        assert y.shape == ((0,) if data.task == "unlabelled" else (len(x),))
        if data.classes:
            assert set(np.unique(y)) <= set(range(data.classes))
    assert (data.task in ("binary", "multiclass")) == (data.classes > 1)
    assert len(set(data.class_names)) == data.classes
    if data.classes:
        assert set(np.unique(data.y)) == set(range(data.classes))
    assert build("dataset", described).fingerprint == data.fingerprint


@pytest.mark.parametrize("name", ["iris", "csv", "npz", "openml"])
def test_an_unknown_option_is_refused_in_words(name, tmp_path, monkeypatch):
    described = choice(name, tmp_path, monkeypatch)
    with pytest.raises(UserError, match="no_such_option"):
        build("dataset", described | {"no_such_option": 1})


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_data_set_descends_under_every_cost_that_fits(name, tmp_path, monkeypatch):
    described = choice(name, tmp_path, monkeypatch)
    if "subset" in described:
        described["points"] = 100
    data = build("dataset", described)
    fitting = 0
    for path in sorted((CONF / "cost").glob("*.yaml")):
        job = Job(
            data,
            import_target("cost", options("cost", path.stem)["_target_"]),
            build("normalizer", options("normalizer", "standard")),
            build("optimizer", options("optimizer", "gradient_descent")),
            Settings(step_sizes=(1e-3,), iterations=2, start="normal"),
        )
        if data.task not in traits(job.cost).tasks:
            with pytest.raises(UserError, match=f"does not fit the targets of {data.name}"):
                run(job)
            continue
        costs = run(job).steps[0].histories["train/cost"]
        assert len(costs) == 3
        assert costs[2] < costs[0]
        fitting += 1
    assert bool(fitting) == (data.task != "unlabelled")


SHAPES = {
    "breast_cancer": (569, 30, "binary"),
    "breast_cancer_textbook": (699, 8, "binary"),
    "china": (273280, 3, "unlabelled"),
    "diabetes": (442, 10, "regression"),
    "digits": (1797, 64, "multiclass"),
    "four_classes_textbook": (40, 2, "multiclass"),
    "iris": (150, 4, "multiclass"),
    "linear_regression_textbook": (100, 1, "regression"),
    "mnist": (10000, 784, "multiclass"),
    "multirange_regression_textbook": (200, 5, "regression"),
    "old_faithful": (272, 2, "unlabelled"),
    "one_feature_textbook": (11, 1, "binary"),
    "separable_2d": (23, 2, "binary"),
    "span_2d": (50, 2, "unlabelled"),
    "span_3d": (100, 3, "unlabelled"),
    "three_classes_textbook": (30, 2, "multiclass"),
    "two_moons": (1000, 2, "binary"),
    "wine": (178, 13, "multiclass"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_data_set_has_its_publishers_shape(name, tmp_path, monkeypatch):
    data = build("dataset", choice(name, tmp_path, monkeypatch))
    assert (*data.x.shape, data.task) == SHAPES[name]


def test_the_textbooks_breast_cancer_has_241_and_458_points():
    data = build(
        "dataset", options("dataset", "breast_cancer_textbook") | {"data_dir": str(data_folder())}
    )
    assert data.encoding == "-1=0, 1=1"
    assert np.bincount(data.y).tolist() == [241, 458]


def test_the_one_feature_is_moved_and_its_last_label_changed():
    described = options("dataset", "one_feature_textbook") | {"data_dir": str(data_folder())}
    plain = build("dataset", described)
    moved = build("dataset", described | {"shift": 4, "flip_last": True})
    assert np.array_equal(moved.x, plain.x + 4)
    assert plain.y.tolist() == [0] * 5 + [1] * 6
    assert moved.y.tolist() == [0] * 5 + [1] * 5 + [0]
    assert moved.fingerprint != plain.fingerprint
    for wrong in ({"shift": "4 m"}, {"shift": float("inf")}, {"flip_last": 1}):
        with pytest.raises(UserError, match=f"dataset.{next(iter(wrong))}="):
            build("dataset", described | wrong)
