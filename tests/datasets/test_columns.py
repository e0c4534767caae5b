"""Real tables: words, gaps and dates are told at once, and made numbers by the training points."""

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from normbench import compare
from normbench.datasets import UserError, hold_out, split
from normbench.datasets.files import TableOptions, csv, parquet, table_dataset

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
    return table_dataset("my", table, target, None, options, source="-")


def test_one_refusal_names_every_column_and_what_settles_it():
    with pytest.raises(UserError) as caught:
        read(TABLE, TableOptions())
    said = str(caught.value)
    for words in (
        "'city' is of words (3 kinds, 'Rome', 'Paris', 'Oslo')",
        "'sex' is of words (2 kinds, 'm', 'f')",
        "'age' has no entry in 2 of 8 points, first in 1",
        "'income' is of numbers, but for '?' in 1 point, first in 2",
        "'when' is of dates ('2020-01-01')",
        "'note' has another text in each of its 8 entries ('text 0')",
    ):
        assert words in said
    assert "label" not in said
    assert "target" not in said
    told = dict(re.findall(r"'dataset\.(\w+)=\[(.*?)\]'", said))
    lists = {name: text.replace('"', "").split(",") for name, text in told.items()}
    assert lists == {"encode": ["city", "sex"], "missing": ["?"], "drop": ["when", "note"]}
    assert "dataset.fill=median (" in said
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


def test_categories_that_differ_by_blanks_at_their_ends_are_one():
    table = pd.DataFrame({"city": ["Rome", "Rome ", " Oslo", "Oslo", "Bari"], "label": [*"abaab"]})
    data = read(table, TableOptions(encode=["city"]))
    assert data.feature_names == ("city=Bari", "city=Oslo", "city=Rome")
    assert data.x.argmax(axis=1).tolist() == [2, 2, 1, 1, 0]


def test_points_with_gaps_are_left_out_and_it_is_said():
    data = read(TABLE, TableOptions(["when", "note"], ["city", "sex"], "drop", ["?"]))
    assert data.x[:, -1].tolist() == [1000, 900, 2000, 1700.5]
    assert data.notes == ("data of my: 4 of 8 points have gaps and are left out",)
    gap = TABLE.assign(label=[None, *TABLE["label"][1:]])
    assert len(read(gap, TableOptions(["when", "note"], ["city", "sex"], "drop", ["?"])).x) == 3


@pytest.mark.parametrize(("first", "noted"), [(0, True), (1, True), (5, False)])
def test_a_column_that_counts_the_points_is_told(first, noted):
    table = pd.DataFrame({"Unnamed: 0": np.arange(first, first + 6), "a": np.arange(6.0) ** 2})
    notes = read(table.assign(label=[0, 1] * 3), TableOptions()).notes
    assert bool(notes) == noted
    if noted:
        assert "'dataset.drop=[\"Unnamed: 0\"]'" in notes[0]


def test_a_target_that_nobody_named_is_told_first():
    with pytest.raises(
        UserError, match=r"column 'label' is the last.* add 'dataset.target=label' '"
    ):
        read(TABLE, TableOptions(), None)
    with pytest.raises(UserError) as caught:
        read(TABLE.drop(columns="label"), TableOptions(), None)
    assert "add 'dataset.target=note' 'dataset.encode=[city,sex]'" in str(caught.value)
    assert "'dataset.drop=[when]'" in str(caught.value)


def test_an_index_is_left_out_by_the_remedy_of_another_trouble():
    counted = TABLE.assign(age=1.0, income=2.0, when=3)
    counted.insert(0, "Unnamed: 0", range(8))
    with pytest.raises(UserError, match=r"'dataset\.drop=\[\"Unnamed: 0\",note\]'"):
        read(counted, TableOptions())


def test_gaps_in_a_column_that_is_encoded_are_told():
    notes = read(TABLE).notes
    assert notes == (
        "data of my: column 'city' has no entry in 1 of 8 points; "
        "they are a category, city=(missing)",
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (TableOptions(encode=["label"]), "dataset.encode=label: is the target"),
        (TableOptions(drop=["sex"], encode=["sex"]), "dataset.encode=sex: is dropped"),
        (TableOptions(encode=["town"]), "dataset.encode=town: no such column"),
        (TableOptions(encode="city"), "dataset.encode=city: must be a list"),
        (TableOptions(missing="?"), "dataset.missing=?: must be a list"),
    ],
)
def test_a_wrong_option_is_told(options, words):
    with pytest.raises(UserError, match=re.escape(words)):
        read(TABLE, options)


@pytest.mark.parametrize(("missing", "written"), [(-999, "-999"), (None, "null"), ("?", "?")])
def test_entries_of_a_csv_file_that_are_no_list_are_told(tmp_path, missing, written):
    TABLE.to_csv(tmp_path / "my.csv", index=False)
    rule = f"dataset.missing={written}: must be a list of entries, such as ['?',-999]"
    with pytest.raises(UserError, match=re.escape(rule)):
        csv(str(tmp_path / "my.csv"), "label", missing=missing)


def test_what_cannot_be_made_numbers_is_told():
    many = pd.DataFrame({"id": [f"p{n}" for n in range(30)], "label": [0, 1] * 15})
    with pytest.raises(UserError, match="each of its 30 entries is another"):
        read(many, TableOptions(encode=["id"]))
    gaps = TABLE[["age", "label"]].assign(age=[None] * 7 + [1.0])
    with pytest.raises(UserError, match="leaves 1 of 8 points"):
        read(gaps, TableOptions(fill="drop"))


@pytest.mark.parametrize("fill", [None, "median"])
@pytest.mark.parametrize("entry", [None, np.nan])
def test_an_empty_column_is_to_be_left_out(entry, fill):
    table = TABLE[["sex", "label"]].assign(age=[entry] * 8, size=[entry] * 8)
    empty = "column 'age' is empty; column 'size' is empty"
    with pytest.raises(UserError, match=rf"{empty}.*'dataset\.drop=\[sex,age,size\]'") as caught:
        read(table, TableOptions(["sex"], fill=fill))
    assert "dataset.fill" not in str(caught.value)


def test_a_column_that_is_empty_in_the_training_part_is_to_be_left_out_beside_others():
    ages = [1.0] + [None] * 11
    table = pd.DataFrame({"id": range(12), "age": ages, "a": range(12), "label": [0, 1] * 6})
    data = read(table, TableOptions(["id"], fill="median"))
    remedy = r"'age' has no number among the training points.*'dataset\.drop=\[id,age\]'"
    with pytest.raises(UserError, match=remedy):
        hold_out(data, np.arange(12) < 2)


def test_messages_count_the_points_of_the_file_where_some_are_left_out():
    table = TABLE[["age", "income", "label"]].assign(age=[None, *range(7)])
    table.index = list("stuvwxyz")
    with pytest.raises(UserError, match=r"'\?' in 1 point, first in 2\.") as caught:
        read(table, TableOptions(fill="drop"))
    assert "dataset.fill=median" not in str(caught.value)  # it would not be left out any more
    # Of the other points, the column has numbers alone.
    numbers = read(table.assign(age=[1, 2, None, *range(5)]), TableOptions(fill="drop"))
    assert numbers.x[:, 1].tolist() == [1000, 1200, 900, 2000, 1500, 1700.5, 1100]


def test_a_way_to_fill_that_there_is_not_is_told():
    with pytest.raises(UserError, match=r"dataset\.fill=mean: must be one of median, drop"):
        TableOptions(fill="mean")


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
    (note,) = data.notes
    assert "column 'a' holds numbers written as text or objects; they are taken as numbers" in note
    remedy = re.search(r"'dataset\.encode=\[(\w+)\]'", note)
    assert read(table, TableOptions(encode=[remedy[1]])).feature_names == ("a=2", "b")
    compare(table[["a", "b"]], table["label"], normalizers=["standard"], iterations=1)


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_gap_in_such_a_column_is_a_gap(kind):
    entries = pd.Series(WRITTEN[kind])
    entries[0] = None
    table = pd.DataFrame({"a": entries, "label": [0, 1] * 4})
    with pytest.raises(UserError, match=r"'a' has no entry in 1 of 8 points.*fill=median"):
        read(table, TableOptions())
    assert len(read(table, TableOptions(fill="drop")).x) == 7


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_target_of_numbers_alone_is_taken_however_it_is_kept(kind):
    """Text names classes; numbers are numbers, of whatever type."""
    data = read(pd.DataFrame({"a": range(5, 13), "label": WRITTEN[kind]}), TableOptions())
    if "text" in kind:
        assert data.class_names == ("1.5", "2")
    else:
        assert data.task == "regression"
        assert data.y.tolist() == [1.5, 2] * 4


@pytest.mark.parametrize("in_blocks", [True, False])
def test_decimals_of_a_parquet_file_are_real_targets(tmp_path, in_blocks):
    table = pd.DataFrame({"a": range(5, 13), "price": [Decimal("1.25"), Decimal("2.50")] * 4})
    table.to_parquet(tmp_path / "my.parquet")
    data = parquet(str(tmp_path / "my.parquet"), "price", in_blocks=in_blocks)
    assert data.task == "regression"
    assert data.y.tolist() == [1.25, 2.5] * 4


def test_a_whole_number_that_no_float_holds_is_told():
    table = pd.DataFrame({"a": [10**400, 1] * 4, "label": [0, 1] * 4})
    with pytest.raises(UserError, match=r"'a' holds a whole number larger than any float.*drop"):
        read(table, TableOptions())


@pytest.mark.parametrize(
    "dtype", ["object", "string", "Int64", pd.ArrowDtype(pa.string())], ids=str
)
def test_gaps_of_pandas_stay_gaps_beside_marked_ones(dtype):
    entries = ["1", "2", pd.NA, "-999", "5", "6", "7", "8"]
    numbers = [entry if entry is pd.NA else int(entry) for entry in entries]
    column = pd.Series(numbers if dtype == "Int64" else entries, dtype=dtype)
    table = pd.DataFrame({"a": column, "label": [0, 1] * 4})
    data = read(table, TableOptions(fill="drop", missing=["-999"]))
    np.testing.assert_array_equal(data.x[:, 0], [1, 2, 5, 6, 7, 8])


@pytest.mark.parametrize("odd", ["?", "err"])
@pytest.mark.parametrize("dtype", ["object", "string"])
def test_a_gap_of_pandas_beside_an_odd_entry_is_told_in_a_line(dtype, odd):
    column = pd.Series([1, 2, pd.NA, odd, 5, 6, 7, 8], dtype=object).astype(dtype)
    table = pd.DataFrame({"a": column, "label": [0, 1] * 4})
    told = f"numbers, but for '{odd}' in 1 point, first in 3"
    with pytest.raises(UserError, match=re.escape(told)):
        read(table, TableOptions())


@pytest.mark.parametrize("dtype", ["float32", "Float32", pd.ArrowDtype(pa.float32()), "float64"])
def test_a_gap_of_a_number_is_marked_in_the_precision_of_its_column(dtype):
    column = pd.Series([1.5, -99.9, 1e20, 0.0, np.inf, 6.0]).astype(dtype)
    table = pd.DataFrame({"a": column, "label": [0, 1] * 3})
    options = TableOptions(fill="drop", missing=[-99.9, "1e20", 1e300, 1e-300, "inf"])
    assert read(table, options).x[:, 0].tolist() == [1.5, 0.0, 6.0]
    infinite = TableOptions(fill="drop", missing=[-99.9, 1e20, 1e300])
    with pytest.raises(UserError, match=r"feature 'a' of point 2 .* is inf"):
        read(table, infinite)  # no number that float32 rounds to infinity marks it


def test_categories_stay_apart_beside_marked_gaps():
    codes = ["01", "1", "?", "02"]
    table = pd.DataFrame({"a": range(5, 13), "code": codes * 2, "label": [0, 1] * 4})
    data = read(table, TableOptions(encode=["code"], missing=["?"]))
    assert data.feature_names == ("a", "code=(missing)", "code=01", "code=02", "code=1")


@pytest.mark.parametrize("mark", [-999, -999.0, "-999", "-999.0", "-9.99e2"])
def test_a_gap_of_a_number_is_marked_however_it_is_written(mark):
    table = pd.DataFrame({"a": [1.5, 2, -999, 4, 5, 6], "label": [0, 1] * 3})
    data = read(table, TableOptions(fill="drop", missing=[mark]))
    np.testing.assert_array_equal(data.x[:, 0], [1.5, 2, 4, 5, 6])
