"""Bad data and bad files, and what a user sees."""

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from normbench.choices import build, import_target, options
from normbench.datasets import UserError, split
from normbench.engine.settings import Settings
from normbench.job import Job, check
from normbench.optimizers import gradient_descent

NO_NETWORK = "http://127.0.0.1:9"  # a proxy that nobody runs: every download fails at once
GOOD = "a,b,label\n1,2,no\n3,4,yes\n5,6,no\n7,8,yes\n"


@dataclass(frozen=True)
class Case:
    """A kind of bad data: what makes it in a folder, and fragments of what the user reads."""

    kind: str
    make: Callable[[Path], Callable[[], object]]
    fragments: tuple[str, ...]
    process: bool = False  # shown to a real `normbench` too


def load(option, settings, cost="softmax"):
    """Load a data set as a job does, the checks of the job included."""
    choice = {**options("dataset", option), **settings}
    if "precision" in choice:
        choice["precision"] = "float64"
    fraction = choice.pop("test_fraction", 0.0)
    dataset = split(build("dataset", choice), fraction, 0)
    cost = import_target("cost", options("cost", cost)["_target_"])
    check(Job(dataset, cost, StandardScaler(), gradient_descent(), Settings(step_sizes=(1.0,))))
    return dataset


def csv(text, cost="softmax", **settings):
    def make(folder):
        path = folder / "my.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return partial(load, "csv", {"path": str(path), "target": "label", **settings}, cost)

    return make


def npz(cost="softmax", options=None, **arrays):
    def make(folder):
        path = folder / "my.npz"
        np.savez(path, **arrays)
        return partial(load, "npz", {"path": str(path), **(options or {})}, cost)

    return make


def parquet(frame, **settings):
    def make(folder):
        path = folder / "my.parquet"
        frame.to_parquet(path)
        return partial(load, "parquet", {"path": str(path), "target": "label", **settings})

    return make


def chosen(option, cost="softmax", **settings):
    return lambda folder: partial(load, option, settings, cost)


def no_file(folder):
    return partial(load, "csv", {"path": str(folder / "none.csv"), "target": "label"})


def a_folder(folder):
    (folder / "my.csv").mkdir()
    return partial(load, "csv", {"path": str(folder / "my.csv"), "target": "label"})


def cut_gzip(folder):
    path = folder / "my.csv.gz"
    path.write_bytes(gzip.compress(GOOD.encode() * 100)[:-20])
    return partial(load, "csv", {"path": str(path), "target": "label"})


def damaged_digits(folder):
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"not the digits"))
    return partial(load, "mnist", {"data_dir": str(folder)}, "multiclass_softmax")


def data_dir(option):
    return lambda folder: partial(load, option, {"data_dir": str(folder)}, "multiclass_softmax")


def data_dir_is_a_file(folder):
    (folder / "data").write_text("")
    return partial(load, "span_2d", {"data_dir": str(folder / "data")})


def openml_without_network(folder):
    return partial(load, "openml", {"data_dir": str(folder), "name": "iris"})


PLANE = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
YES_NO = np.array(["no", "yes", "no", "yes"])
COLUMNS = "5,3,8,1,1\n1,4,1,8,3\n-1,-1,1,1,2\n"  # one point per column
DATES = pd.DataFrame(
    {"day": pd.date_range("2020-01-01", periods=4), "b": range(4), "label": [0, 1, 0, 1]}
)

CASES = (
    Case("no path", chosen("csv"), ("dataset.path=null", "dataset.path=my.csv"), True),
    Case("a file that is not there", no_file, ("none.csv: no such file", "quotes")),
    Case("a folder instead of a file", a_folder, ("my.csv: is a folder", "name a file"), True),
    Case("an empty file", csv(""), ("cannot be read as a table", "No columns")),
    Case("a header and no points", csv("a,b,label\n"), ("column 'a' is empty",)),
    Case(
        "no text in UTF-8",
        csv(b"a,label\n\xe9,1\n"),
        ("is not text in UTF-8", "'dataset.read={encoding: \"latin-1\"}'"),
    ),
    Case(
        "a gap in a feature",
        csv("a,b,label\n1,2,no\n3,,yes\n5,6,no\n"),
        ("column 'b' has no entry in 1 of 3 points, first in 1", "dataset.fill=median"),
        True,
    ),
    Case(
        "an entry whose square overflows",
        csv("a,b,label\n1,2,no\n1e200,4,yes\n5,6,no\n"),
        ("feature 'a' of point 1", "1e+200", "rescale"),
    ),
    Case(
        "text in a number column",
        csv("a,b,label\n1,2,no\n3,4o,yes\n5,6,no\n"),
        (
            "column 'b'",
            "'4o' in 1 point, first in 1",
            "Correct the file",
            "'dataset.missing=[\"4o\"]'",
        ),
    ),
    Case(
        "a categorical column",
        csv("a,colour,label\n1,red,no\n3,blue,yes\n5,red,no\n"),
        ("column 'colour'", "'red'", "'dataset.encode=[colour]'"),
        True,
    ),
    Case(
        "one class",
        csv("a,label\n1,no\n3,no\n"),
        ("all points are of one class", "check the target"),
    ),
    Case(
        "a label missing",
        csv("a,label\n1,no\n3,\n4,yes\n"),
        ("target of point 1", "missing", "dataset.fill=drop"),
    ),
    Case(
        "text for a target of regression",
        csv(GOOD, task="regression", cost="least_squares"),
        ("a target is not a number", "dataset.task=classes"),
    ),
    Case(
        "no target chosen",
        csv(GOOD, target=None, drop=["label"]),
        ("unlabelled", "set dataset.target"),
        True,
    ),
    Case(
        "the target left out", csv(GOOD, drop=["label"]), ("dataset.target=label", "dataset.drop")
    ),
    Case(
        "the wrong layout: a point per column",
        csv(COLUMNS, header=False, target=-1),
        ("3 points of 4 features", "dataset.points_in=columns"),
    ),
    Case(
        "a first point taken for the header",
        csv("1.5,2,0\n2.5,3,1\n3.5,4,0\n", target=-1),
        ("its first row (1.5, 2, 0) holds numbers", "add dataset.header=false"),
    ),
    Case(
        "a first point with its label taken for the header",
        csv("1.5,1.5,no\n2.5,3,yes\n3.5,4,no\n3,2,yes\n", target=-1),
        ("its first row (1.5, 1.5, no) holds numbers", "add dataset.header=false"),
    ),
    Case(
        "the wrong delimiter",
        csv(GOOD.replace(",", ";")),
        ("dataset.delimiter=comma does not separate", "add dataset.delimiter=semicolon"),
    ),
    Case(
        "a row longer than the others",
        csv("a,b,label\n1,2,no\n3,4,5,6,yes\n5,6,no\n"),
        ("line 3 ('3,4,5,6,yes') has not 3 entries, as most lines, but 5",),
    ),
    Case("a gzip file cut short", cut_gzip, ("cannot be read as a table",)),
    Case(
        "a row shorter than the others",
        csv("label,a,b\nno,1,2\nyes,3\nno,5,6\n"),
        ("column 'b' has no entry in 1 of 3 points, first in 1",),
    ),
    Case(
        "a task that does not exist",
        csv(GOOD, task="binary"),
        ("dataset.task=binary", "one of classes, regression"),
    ),
    Case(
        "numbers for a cost of classes",
        csv("a,label\n1,0.5\n3,0.6\n4,0.7\n"),
        ("cost=softmax", "regression", "cost=least_squares", "dataset.task=classes"),
        True,
    ),
    Case("three classes for two", chosen("iris"), ("3 classes", "cost=multiclass_softmax")),
    Case(
        "points without targets",
        lambda folder: partial(
            load, "span_2d", {"data_dir": os.environ.get("NORMBENCH_DATA", str(folder))}
        ),
        ("2d_span_data.csv",)
        if not os.environ.get("NORMBENCH_DATA")
        else ("unlabelled", "a data set with targets"),
    ),
    Case(
        "a test part that empties a class",
        csv(GOOD, test_fraction=0.9),
        ("dataset.test_fraction=0.9", "leaves no point of class"),
    ),
    Case("dates in Parquet", parquet(DATES), ("column 'day'", "dataset.drop=[day]")),
    Case(
        "pickled objects in npz",
        npz(x=np.array([[1, "a"], [2, None]], dtype=object), y=np.arange(2)),
        ("allow_pickle=False", "can run code"),
        True,
    ),
    Case("no such array in npz", npz(points=PLANE), ("dataset.x=x", "it has points")),
    Case("complex numbers", npz(x=PLANE * 1j, y=YES_NO), ("complex128 is none",)),
    Case("fewer targets than points", npz(x=PLANE, y=YES_NO[:3]), ("(3,)", "each of 4 points")),
    Case(
        "a test label that no training point has",
        npz(
            x=PLANE,
            y=YES_NO,
            x_test=PLANE[:1],
            y_test=["maybe"],
            options={"x_test": "x_test", "y_test": "y_test"},
        ),
        ("a test point has the label 'maybe'", "no, yes"),
    ),
    Case(
        "a test part of other features",
        npz(
            x=PLANE,
            y=YES_NO,
            x_test=PLANE[:, :1],
            y_test=YES_NO,
            options={"x_test": "x_test", "y_test": "y_test"},
        ),
        ("has 2 features, 1 in its test part",),
    ),
    Case(
        "a missing file and no network",
        data_dir("mnist"),
        ("has no t10k-images-idx3-ubyte.gz", "https://", "put it at", "8d422c7b0a1c1c79"),
        True,
    ),
    Case(
        "a file with the wrong checksum and no network",
        damaged_digits,
        ("no download of it succeeded", "8d422c7b0a1c1c79"),
    ),
    Case("a data folder that is a file", data_dir_is_a_file, ("data_dir=", "2d_span_data.csv")),
    Case(
        "a subset that does not exist",
        chosen("mnist", data_dir=".", subset="foo"),
        ("dataset.subset=foo", "test10k, train60k, train_test, all70k"),
        True,
    ),
    Case(
        "OpenML and no network",
        openml_without_network,
        ("dataset.name=iris", "cannot be had from openml.org", "dataset.id="),
    ),
)


def seen(case, folder):
    """Return what a user reads of a case, in one line."""
    try:
        case.make(folder)()
    except UserError as error:
        return " ".join(str(error).split())
    return "nothing: it is accepted"
