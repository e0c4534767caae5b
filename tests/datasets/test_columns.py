"""Real tables: words, gaps and dates are told at once, and made numbers by the training points."""

import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from normbench import compare
from normbench.datasets import UserError, split
from normbench.datasets.files import csv, parquet
from normbench.datasets.tables import TableOptions, table_dataset

TABLE = pd.DataFrame(
    {
        "city": ["Rome", "Paris", "Rome", "Oslo", "Paris", None, "Rome", "Oslo"],
        "sex": list("mffmmfmf"),
        "age": [34, None, 41, 29, 55, 61, 33, None],
        "income": ["1000", "1200", "?", "900", "2000", "1500", "1700.5", "1100"],
        "when": [f"2020-01-0{n}" for n in range(1, 9)],
        "note": [f"text {n}" for n in range(8)],
        "label": ["yes", "no"] * 4,
    }
)
OPTIONS = TableOptions(["when", "note"], ["city", "sex"], "median", ["?"])


def read(table, options=OPTIONS, target="label"):
    return table_dataset("my", table, replace(options, target=target), source="-")


def test_one_refusal_names_every_column_and_what_settles_it():
    with pytest.raises(UserError) as caught:
        read(TABLE, TableOptions())
    said = str(caught.value)
    for words in (
        "'city' is of words (3 kinds, 'Rome', 'Paris', 'Oslo')",
        "'sex' is of words (2 kinds, 'm', 'f')",
        "'age' has no entry in 2 of 8 points, first in 1",
        "'income' is of numbers, but for '?' in 1 point, first in 2",
        "'when' has 8 different texts in 8 entries ('2020-01-01', ",
        "'note' has 8 different texts in 8 entries ('text 0', ",
    ):
        assert words in said
    assert "label" not in said
    assert "target" not in said
    told = dict(re.findall(r"'dataset\.(\w+)=\[(.*?)\]'", said))
    lists = {name: text.replace('"', "").split(",") for name, text in told.items()}
    assert lists == {"encode": ["city", "sex"], "missing": ["?"], "drop": ["when", "note"]}
    assert said.endswith("dataset.fill=median")
    read(TABLE, TableOptions(**lists, fill="median"))  # what it says is enough


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_with_words_and_gaps_becomes_numbers(tmp_path, kind):
    given = {"drop": ["when", "note"], "encode": ["city", "sex"], "missing": ["?"]}
    path = tmp_path / f"my.{kind}"
    if kind == "csv":
        TABLE.to_csv(path, index=False)
        data = csv(str(path), "label", **given, fill="median")
    else:
        TABLE.to_parquet(path)
        data = parquet(str(path), "label", **given, fill="median")
    assert data.feature_names == (
        *("city=(missing)", "city=Oslo", "city=Paris", "city=Rome", "sex=m", "age", "income"),
    )
    city = [
        ["(missing)", "Oslo", "Paris", "Rome"].index(c) for c in TABLE["city"].fillna("(missing)")
    ]
    assert data.x[:, :4].tolist() == np.eye(4)[city].tolist()
    assert data.x[:, 4].tolist() == [1, 0, 0, 1, 1, 0, 1, 0]
    assert data.x[:, 5].tolist() == [34, 37.5, 41, 29, 55, 61, 33, 37.5]
    assert data.x[:, 6].tolist() == [1000, 1200, 1200, 900, 2000, 1500, 1700.5, 1100]


def test_medians_and_categories_are_of_the_training_points():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.standard_normal(60), "c": rng.choice(list("uvw"), 60)})
    table.loc[::5, "a"] = np.nan
    table["label"] = np.arange(60) % 2
    data = split(read(table, TableOptions((), ["c"], "median")), 0.4, 3)
    whole = read(table, TableOptions((), ["c"], "median"))
    held = {tuple(row) for row in data.x_test[:, 1:]}
    assert len(data.x) + len(data.x_test) == 60
    real = [value for value in data.x[:, 0] if value in set(table["a"])]
    median = np.median(real)
    assert (data.x[:, 0] == median).any()
    assert (data.x_test[:, 0] == median).any()
    assert median != np.median(table["a"].dropna())  # what all points would say
    assert (whole.x[:, 0] == np.median(table["a"].dropna())).any()
    assert held <= {(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)}
    # A category that no training point has is none of the others.
    rare = table.assign(c=["u", "v", "w"] * 20)
    for seed in range(50):
        data = split(read(rare.iloc[:8], TableOptions((), ["c"], "median")), 0.6, seed)
        known = [name for name in data.feature_names if name.startswith("c=")]
        if len(known) < 3:
            break
    assert len(known) < 3
    assert data.x.shape[1] == data.x_test.shape[1] == len(data.feature_names)


EMPTY = TABLE[["sex", "label"]].assign(age=[None] * 8, size=[np.nan] * 8)
ODD = pd.DataFrame({"a": pd.Series([1, 2, pd.NA, "err"] * 2, dtype="string"), "label": [0, 1] * 4})
REFUSED = [
    (TABLE, {"encode": ["town"]}, "dataset.encode=town: no such column"),
    (TABLE, {"encode": "city"}, "dataset.encode=city: must be a list"),
    (TABLE, {"missing": "?"}, "dataset.missing=?: must be a list of entries, such as ['?',-999]"),
    (TABLE, {"fill": "mean"}, "dataset.fill=mean: must be one of median, drop"),
    (TABLE[["age", "label"]].assign(age=[None] * 7 + [1.0]), {"fill": "drop"}, "2 points at least"),
    (EMPTY, {"drop": ["sex"], "fill": "median"}, "'dataset.drop=[sex,age,size]'"),
    (ODD, {}, "numbers, but for 'err' in 2 points, first in 3"),
    (TABLE, {"target": None}, "add 'dataset.target=label' '"),
    (TABLE.drop(columns="label"), {"target": None}, "'dataset.target=note' 'dataset.encode=[city,"),
]


@pytest.mark.parametrize(("table", "options", "words"), REFUSED)
def test_a_table_that_is_refused_is_told_in_one_line(table, options, words):
    target = options.get("target", "label")
    with pytest.raises(UserError, match=re.escape(words)) as caught:
        read(table, TableOptions(**{k: v for k, v in options.items() if k != "target"}), target)
    assert "\n" not in str(caught.value)
    assert table is not EMPTY or "dataset.fill" not in str(caught.value)


CITIES = {"city": ["Rome", "Rome ", " Oslo", "Oslo", "Bari"]}
CODES = {"a": range(5, 13), "code": ["01", "1", "?", "02"] * 2}
SINGLE = pd.Series([1.5, -99.9, 1e20, 0.0, np.inf, 6.0])
GAPS = pd.Series(["1", "2", pd.NA, "-999", "5", "6"])
MARKED = {"fill": "drop", "missing": ["-999"]}
FAR = {"fill": "drop", "missing": [-99.9, "1e20", "inf"]}
READ = [
    (CITIES, {"encode": ["city"]}, ("city=Bari", "city=Oslo", "city=Rome"), [0, 0, 0, 0, 1]),
    (
        *(CODES, {"encode": ["code"], "missing": ["?"]}),
        *(("a", "code=(missing)", "code=01", "code=02", "code=1"), [*range(5, 13)]),
    ),
    *(
        ({"a": [1.5, 2, -999, 4]}, {"fill": "drop", "missing": [mark]}, ("a",), [1.5, 2, 4])
        for mark in (-999, "-999.0")
    ),
    *(
        ({"a": GAPS.astype(dtype)}, MARKED, ("a",), [1, 2, 5, 6])
        for dtype in ("object", "Int64", pd.ArrowDtype(pa.string()))
    ),
    *(
        ({"a": SINGLE.astype(dtype)}, FAR, ("a",), [1.5, 0, 6])
        for dtype in ("float32", pd.ArrowDtype(pa.float32()), "float64")
    ),
]


@pytest.mark.parametrize(("columns", "options", "names", "first"), READ)
def test_a_column_is_read_as_its_options_say(columns, options, names, first):
    table = pd.DataFrame(columns)
    data = read(table.assign(label=np.arange(len(table)) % 2), TableOptions(**options))
    assert data.feature_names == names
    assert data.x[:, 0].tolist() == first


def test_points_with_gaps_are_left_out_and_it_is_said():
    data = read(TABLE, TableOptions(["when", "note"], ["city", "sex"], "drop", ["?"]))
    assert data.x[:, -1].tolist() == [1000, 900, 2000, 1700.5]
    assert data.notes == ("data of my: 4 of 8 points have gaps and are left out",)
    gap = TABLE.assign(label=[None, *TABLE["label"][1:]])
    assert len(read(gap, TableOptions(["when", "note"], ["city", "sex"], "drop", ["?"])).x) == 3


def test_messages_count_the_points_of_the_file_where_some_are_left_out():
    table = TABLE[["age", "income", "label"]].assign(age=[None, *range(7)])
    table.index = list("stuvwxyz")
    with pytest.raises(UserError, match=r"'\?' in 1 point, first in 2\.") as caught:
        read(table, TableOptions(fill="drop"))
    assert "dataset.fill=median" not in str(caught.value)  # it would not be left out any more
    # Of the other points, the column has numbers alone.
    numbers = read(table.assign(age=[1, 2, None, *range(5)]), TableOptions(fill="drop"))
    assert numbers.x[:, 1].tolist() == [1000, 1200, 900, 2000, 1500, 1700.5, 1100]


def test_frames_from_python_take_the_same_options():
    features, labels = TABLE.drop(columns="label"), TABLE["label"]
    with pytest.raises(UserError, match="'city' is of words"):
        compare(features, labels)
    found = compare(
        *(features, labels),
        normalizers=["standard"],
        iterations=2,
        drop=["when", "note"],
        encode=["city", "sex"],
        fill="median",
        missing=["?"],
    )
    assert np.isfinite(found["cost"]).all()
    with pytest.raises(UserError, match="columns of a pandas frame"):
        compare(np.eye(4), [0, 1, 0, 1], encode=["a"])


WRITTEN = {
    "text": ["1.5", "2"] * 4,
    "objects": pd.Series([1.5, 2] * 4, dtype=object),
    "decimals": [Decimal("1.5"), Decimal(2)] * 4,
    "pandas' text": pd.array(["1.5", "2"] * 4, dtype="string"),
    "Arrow's text": pd.array(["1.5", "2"] * 4, dtype=pd.ArrowDtype(pa.string())),
    "categories of text": pd.Categorical(["1.5", "2"] * 4),
    "categories of numbers": pd.Categorical([1.5, 2] * 4),
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_column_of_numbers_alone_is_taken_as_numbers_however_it_is_kept(kind):
    table = pd.DataFrame({"a": WRITTEN[kind], "b": range(5, 13), "label": [0, 1] * 4})
    data = read(table, TableOptions())
    np.testing.assert_array_equal(data.x[:2, 0], [1.5, 2])
    assert read(table, TableOptions(encode=["a"])).feature_names == ("a=2", "b")
    compare(table[["a", "b"]], table["label"], normalizers=["standard"], iterations=1)
    gap = table.assign(a=pd.Series(WRITTEN[kind]).where(table.index > 0))
    with pytest.raises(UserError, match=r"'a' has no entry in 1 of 8 points.*fill=median"):
        read(gap, TableOptions())
    assert len(read(gap, TableOptions(fill="drop")).x) == 7


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_target_of_numbers_alone_is_taken_however_it_is_kept(kind):
    """Text names classes; numbers are numbers, of whatever type."""
    data = read(pd.DataFrame({"a": range(5, 13), "label": WRITTEN[kind]}), TableOptions())
    if "text" in kind:
        assert data.class_names == ("1.5", "2")
    else:
        assert data.task == "regression"
        assert data.y.tolist() == [1.5, 2] * 4


def test_decimals_of_a_parquet_file_are_real_targets(tmp_path):
    table = pd.DataFrame({"a": range(5, 13), "price": [Decimal("1.25"), Decimal("2.50")] * 4})
    table.to_parquet(tmp_path / "my.parquet")
    for in_blocks in (True, False):
        data = parquet(str(tmp_path / "my.parquet"), "price", in_blocks=in_blocks)
        assert data.task == "regression"
        assert data.y.tolist() == [1.25, 2.5] * 4
