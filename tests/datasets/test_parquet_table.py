"""Parquet files of a few bytes that stand for more than memory holds."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from normbench.datasets import UserError, values
from normbench.datasets.files import parquet

ROWS = 20_000
WORD = "x" * 2000  # 40 MB in all
ONE_WORD = pa.DictionaryArray.from_arrays(np.zeros(ROWS, np.int32), [WORD])
COLUMNS = {
    "repeated words": ONE_WORD.dictionary_decode(),
    "categories": ONE_WORD,
    "bytes": ONE_WORD.dictionary_decode().cast(pa.binary()),
    "dates": pa.array([datetime.date(2000, 1, 1)] * ROWS),
    "wide bytes": pa.array([b"x" * 2000] * ROWS, pa.binary(2000)),
}
FREE_BYTES = 4_000_000  # numbers of both columns take a tenth


@pytest.fixture
def free_memory(monkeypatch):
    monkeypatch.setattr(values, "_free_memory", lambda: FREE_BYTES)


def write(folder, column, **options):
    table = pa.table({"a": np.arange(ROWS) % 7, "w": column, "label": np.arange(ROWS) % 2})
    pq.write_table(table, folder / "my.parquet", compression="zstd", **options)
    return str(folder / "my.parquet")


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_words_larger_than_memory_are_refused_undecoded(
    tmp_path, monkeypatch, free_memory, kind, use_dictionary
):
    file = write(tmp_path, COLUMNS[kind], use_dictionary=use_dictionary)
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_: pytest.fail("decoded"))
    with pytest.raises(UserError, match=r"^dataset.path=.*: takes .* dataset.drop") as refusal:
        parquet(file, "label")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("column", [*COLUMNS.values(), pa.array([[1.0, 2.0]] * ROWS)])
def test_a_column_that_is_dropped_is_not_read(tmp_path, free_memory, column):
    file = write(tmp_path, column)
    for drop in (["w"], [1]):
        data = parquet(file, -1, drop)
        assert data.feature_names == ("a",)
        assert data.x[:, 0].tolist() == (np.arange(ROWS) % 7).tolist()
        assert data.y.tolist() == (np.arange(ROWS) % 2).tolist()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1.0, 2.0], [3.0]]),
        pa.array([{"b": 1}, {"b": 2}]),
        pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)),
    ],
)
@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        ({}, "path="),
        ({"target": "w"}, "target=w"),
    ],
)
def test_lists_and_records_are_refused_from_the_schema(tmp_path, column, settings, setting):
    pq.write_table(pa.table({"a": [1, 2], "b": [3, 4], "w": column}), tmp_path / "my.parquet")
    rule = (
        rf"^dataset.{setting}.*: column 'w' holds lists or records \(.*must be one number or word"
    )
    with pytest.raises(UserError, match=rule):
        parquet(str(tmp_path / "my.parquet"), **settings)


def test_names_that_begin_with_another_and_an_index_keep_their_columns(tmp_path):
    frame = pd.DataFrame({"b": [1, 2, 3], "b.c": ["x", "y", "z"], "a": [4, 5, 6]})
    frame.set_index(pd.Index(["p", "q", "r"], name="id")).to_parquet(tmp_path / "my.parquet")
    data = parquet(str(tmp_path / "my.parquet"), drop=["b.c"])
    assert data.feature_names == ("b", "a")
    assert data.x.tolist() == [[1, 4], [2, 5], [3, 6]]
