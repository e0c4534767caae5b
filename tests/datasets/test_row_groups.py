"""Points of a Parquet file written to a memory map: the data set that is held in memory."""

import numpy as np
import pandas as pd
import pytest

from normbench.datasets import Sampling, UserError, files
from normbench.datasets.files import parquet
from normbench.datasets.on_disk import points
from normbench.datasets.on_disk.points import is_in_memory

RNG = np.random.default_rng(0)
X = RNG.standard_normal((500, 4))
TABLE = pd.DataFrame(X, columns=["a", "b.c", "b", "d"]).assign(
    whole=np.arange(500) - 250,
    truth=np.arange(500) % 3 == 0,
    single=X[:, 0].astype(np.float32),
    label=np.array(["no", "yes", "maybe"])[np.arange(500) % 3],
    real=X[:, 1],
)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for module in (points, files):
        monkeypatch.setattr(module, "BLOCK_BYTES", 40 * 8 * 7)


@pytest.fixture
def file(tmp_path):
    return written(tmp_path, TABLE)


def written(folder, table, size=77):
    table.to_parquet(folder / "my.parquet", row_group_size=size)
    return folder / "my.parquet"


@pytest.mark.parametrize(
    "settings",
    [
        {"target": "label", "drop": ["real"]},
        {"target": -1, "drop": ["label"]},
        {"target": "truth", "drop": ["label", 0], "task": "classes"},
        {"target": None, "drop": ["label"]},
    ],
)
def test_the_data_set_is_that_of_the_table_in_memory(file, settings):
    blocks, whole = (parquet(str(file), **settings, in_blocks=given) for given in (True, None))
    assert not is_in_memory(blocks.x)
    assert np.array_equal(blocks.x, whole.x)
    assert np.array_equal(blocks.y, whole.y)
    for name in ("name", "task", "feature_names", "class_names", "fingerprint"):
        assert getattr(blocks, name) == getattr(whole, name)
    drawn = Sampling(points=400, test_fraction=0.3, split_seed=2)
    assert drawn.apply(blocks).fingerprint == drawn.apply(whole).fingerprint


def test_an_index_of_pandas_is_no_feature(tmp_path):
    table = TABLE[["a", "d", "real"]].set_index(TABLE.index[::-1] * 2)
    data = parquet(str(written(tmp_path, table)), "real", in_blocks=True)
    assert data.feature_names == ("a", "d")


def test_a_table_is_read_by_row_groups_where_a_quarter_of_the_memory_is_less(file, monkeypatch):
    size = 8 * TABLE.size
    for free, held in ((4 * size, True), (4 * size - 4, False)):
        monkeypatch.setattr(files, "available_bytes", lambda free=free: free)
        data = parquet(str(file), "label")
        assert is_in_memory(data.x) == held


def test_a_file_that_is_damaged_is_told(file):
    with file.open("r+b") as stream:
        stream.write(bytes(file.stat().st_size - 2000))
    with pytest.raises(UserError, match=r"my\.parquet: cannot be read as .*check the file"):
        parquet(str(file), "label", in_blocks=True)


GAPS = TABLE.assign(d=TABLE.whole.astype("Int64").where(TABLE.whole != 100))
NESTED = TABLE.assign(d=[[1, 2]] * 500)
DATES = TABLE.assign(d=pd.Timestamp("2020-01-01"))


@pytest.mark.parametrize(
    ("table", "settings", "told"),
    [
        (TABLE, {"target": "real"}, "columns of numbers, and 'label' is none"),
        (NESTED, {"target": "label"}, "'d' is none"),
        (GAPS, {"target": "label"}, "feature 'd' of point 350 .* is nan; .* fill the gaps"),
        (
            DATES.rename(columns={"d": "my d, x"}),
            {"target": "label", "drop": ["b", 4]},
            r"leave it out with 'dataset\.drop=\[b,4,\"my d, x\"\]'",
        ),
        (TABLE, {"target": "label", "fill": "median"}, "as they are; leave out dataset.encode, "),
        (TABLE, {"target": "none"}, r"^dataset\.target=none: no such column"),
        (DATES, {"target": "d", "drop": ["label"]}, "targets are of type datetime64"),
    ],
)
def test_what_is_no_table_of_numbers_is_told_in_one_line(tmp_path, table, settings, told):
    with pytest.raises(UserError, match=told) as error:
        parquet(str(written(tmp_path, table)), **settings, in_blocks=True)
    assert "\n" not in str(error.value)
