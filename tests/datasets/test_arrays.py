"""Points in an npy file: the data set of the same arrays, in memory or as a memory map."""

import os
import subprocess
import sys

import numpy as np
import pytest

from normbench.datasets import Sampling, UserError, arrays, label_dataset, make_dataset, split
from normbench.datasets.arrays import choose_dtype, npy
from normbench.datasets.on_disk import points
from normbench.datasets.on_disk.points import check_unchanged, is_in_memory
from normbench.datasets.sampling import draw_subset
from tests.door import mapped

RNG = np.random.default_rng(0)
X = RNG.standard_normal((500, 6))
LABELS = np.arange(500) % 3 - 1
KINDS = ("?", "u1", ">u2", "i4", "i8", "f2", ">f4", "f8", ">f8")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(points, "BLOCK_BYTES", 40 * X[0].nbytes)


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", LABELS)
    return tmp_path / "X.npy"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_number_is_read_as_it_is(tmp_path, kind):
    x = (100 * X).astype(kind) if kind != "u1" else np.arange(3000).reshape(500, 6).astype(kind)
    np.save(tmp_path / "X.npy", x)
    read = npy(str(tmp_path / "X.npy"), in_blocks=True).x
    assert not is_in_memory(read)
    assert read.dtype == choose_dtype(x.dtype)
    assert np.array_equal(read, x.astype(read.dtype))


def test_points_that_are_stored_column_by_column_are_read(tmp_path):
    np.save(tmp_path / "X.npy", np.asfortranarray(X))
    np.save(tmp_path / "T.npy", X.astype(np.float32))
    data = npy(str(tmp_path / "X.npy"), test_path=str(tmp_path / "T.npy"), in_blocks=True)
    assert np.array_equal(data.x, X)
    assert data.x_test.dtype == np.float64  # as the training points


def test_float32_is_read_where_it_holds_every_number():
    single = {kind for kind in KINDS if choose_dtype(np.dtype(kind)) == np.float32}
    assert single == {"?", "u1", ">u2", "f2", ">f4"}


@pytest.mark.parametrize("kind", ["u1", "f4", "f8"])
def test_the_data_set_is_that_of_the_arrays_in_memory_or_not(file, kind):
    x = np.abs(X * 9).astype(kind)
    np.save(file, x)
    np.save(file.with_name("T.npy"), x[:77])
    np.save(file.with_name("t.npy"), LABELS[:77])
    settings = [str(file), str(file.with_name("y.npy"))]
    test = [str(file.with_name("T.npy")), str(file.with_name("t.npy"))]
    blocks, array = (npy(*settings, *test, in_blocks=given) for given in (True, None))
    assert not is_in_memory(blocks.x)
    assert is_in_memory(array.x)
    y = LABELS + 1
    more = {"x_test": x[:77], "y_test": y[:77], "class_names": ["-1", "0", "1"], "source": ""}
    made = make_dataset("X", x, y, precision=str(choose_dtype(x.dtype)), **more)
    for data in (blocks, array):
        assert data.fingerprint == made.fingerprint
        assert data.name == "X"
        assert data.class_names == ("-1", "0", "1")
        assert data.y.tolist() == y.tolist()
    assert not is_in_memory(blocks.x_test)
    assert is_in_memory(array.x_test)
    assert np.array_equal(blocks.x, array.x)


def test_points_are_read_in_blocks_where_a_quarter_of_the_memory_is_less(file, monkeypatch):
    for free, held in ((4 * X.nbytes, True), (4 * X.nbytes - 4, False)):
        monkeypatch.setattr(arrays, "available_bytes", lambda free=free: free)
        assert is_in_memory(npy(str(file)).x) == held
    monkeypatch.setattr("normbench.datasets.values.available_bytes", lambda: 1000)
    with pytest.raises(UserError, match=r"^dataset\.in_blocks=false: takes 2.4e-05 GB of memory"):
        npy(str(file), in_blocks=False)


CHANGES = {
    "other content": lambda file: np.save(file, X + 1),
    "a newer time": lambda file: os.utime(file, ns=(1, 1)),
    "gone": lambda file: file.unlink(),
    "cut short": lambda file: os.truncate(file, 9000),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_is_told(file, change):
    data = npy(str(file), in_blocks=True)
    check_unchanged(data.x)
    CHANGES[change](file)
    with pytest.raises(UserError, match=rf"^dataset.path={file}: was changed .*; run it again$"):
        check_unchanged(data.x)


@pytest.mark.parametrize(
    ("targets", "settings", "room"),
    [
        (LABELS, {"points": 300}, True),
        (X[:, 0], {"test_fraction": 0.25}, False),
        (np.array(["no", "yes"])[LABELS % 2], {"points": 400, "test_fraction": 0.4}, False),
    ],
)
def test_the_same_seed_takes_the_same_rows_as_in_memory(file, monkeypatch, targets, settings, room):
    np.save(file.with_name("y.npy"), targets)
    blocks = npy(str(file), str(file.with_name("y.npy")), in_blocks=True)
    whole = label_dataset("X", X, targets, source=str(file))
    if not room:
        monkeypatch.setattr(points, "available_bytes", lambda: 0)
    blocks, whole = (Sampling(**settings, split_seed=3).apply(data) for data in (blocks, whole))
    assert not is_in_memory(blocks.x)
    assert is_in_memory(blocks.x_test) == ("test_fraction" not in settings)
    for name in ("x", "x_test", "y", "y_test"):
        assert np.array_equal(getattr(blocks, name), getattr(whole, name))
    assert blocks.fingerprint == whole.fingerprint


def test_few_points_of_a_large_file_are_held(file, monkeypatch):
    for module in (arrays, points):
        monkeypatch.setattr(module, "available_bytes", lambda: X.nbytes)
    large = npy(str(file), str(file.with_name("y.npy")))
    assert not is_in_memory(large.x)
    assert is_in_memory(draw_subset(large, len(X) // 4, 0).x)
    assert not is_in_memory(draw_subset(large, len(X) // 4 + 1, 0).x)
    for fraction, is_held in ((1 / 4.2, True), (1 / 3.8, False)):
        assert is_in_memory(split(large, fraction, 0).x_test) == is_held


@pytest.mark.parametrize("part", ["", "test "])
@pytest.mark.parametrize("value", [np.nan, -np.inf, 1e151])
def test_what_is_no_finite_number_is_told_as_of_an_array(value, part):
    bad = X.copy()
    bad[[300, 301], [1, 2]] = value
    told = []
    for kind in (np.asarray, mapped):
        given = {"x": kind(bad)} if not part else {"x": X, "x_test": kind(bad)}
        with pytest.raises(UserError, match=f"feature 'x1' of {part}point 300 ") as error:
            make_dataset("made", source="made", **given)
        told.append(str(error.value))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"folds": 5}, "dataset.folds=5"),
        ({"augment": "round"}, "dataset.augment=round"),
        ({"fit_on": "all"}, "dataset.fit_on=all"),
    ],
)
def test_what_takes_points_in_memory_is_refused(settings, told):
    data = make_dataset("made", mapped(X), source="made", x_test=X[:5])
    with pytest.raises(UserError, match=f"^{told}: takes points that are held in memory") as error:
        Sampling(**settings).apply(data)
    assert "\n" not in str(error.value)


def cut(file, size):
    np.save(file, X)
    os.truncate(file, size)


WRONG = {
    "flat.npy": (X[0], r"shape \(6,\); it takes numbers of shape \(P, N\)"),
    "complex.npy": (X.astype(complex), "type complex128 .*it takes numbers"),
    "words.npy": (X.astype(str), "type <U32"),
    "objects.npy": (X.astype(object), "cannot be read as a NumPy array .*objects"),
    "archive.npz": (None, "cannot be read as a NumPy array .*dataset=npz"),
    "cut.npy": (1000, "cannot be read as a NumPy array"),
    "nothing.npy": (None, "no such file"),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_told_in_one_line(tmp_path, name):
    content, told = WRONG[name]
    if isinstance(content, int):  # bytes of the file of all points
        cut(tmp_path / name, content)
    elif content is not None:
        np.save(tmp_path / name, content)
    elif name == "archive.npz":
        np.savez(tmp_path / name, X)
    with pytest.raises(UserError, match=told) as error:
        npy(str(tmp_path / name))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"path": None}, r"^dataset\.path=null: must be a path; write dataset\.path=X\.npy"),
        ({"targets": "no.npy"}, r"^dataset\.targets=no\.npy: no such file"),
        ({"targets": "X.npy"}, r"targets have shape \(500, 6\)"),
        ({"targets": "objects.npy"}, r"^dataset\.targets=.*: cannot be read as a NumPy array"),
        ({"targets": "few.npy"}, "targets have shape .*it takes one target for each of 500"),
        ({"targets": "y.npy", "test_path": "X.npy"}, "test targets are missing"),
        ({"in_blocks": "yes"}, r"^dataset\.in_blocks=yes: must be true or false"),
    ],
)
def test_a_wrong_setting_is_told_in_one_line(file, settings, told, monkeypatch):
    monkeypatch.chdir(file.parent)
    np.save("few.npy", LABELS[:9])
    np.save("objects.npy", LABELS.astype(object))
    with pytest.raises(UserError, match=told) as error:
        npy(**{"path": "X.npy"} | settings)
    assert "\n" not in str(error.value)


LOADED = """
import sys
from pathlib import Path
import numpy as np
from normbench.datasets.arrays import npy
from normbench.datasets.values import resident_bytes
before = resident_bytes()
data = npy(sys.argv[1], sys.argv[2], in_blocks=True)
lines = Path("/proc/self/status").read_text().splitlines()
most = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))  # KiB
print(1024 * most - before, data.y.nbytes, len(data.x))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is counted elsewise")
def test_points_are_not_held(tmp_path):
    """256 MB of points take 60 MB of blocks and targets at most (measured: 39)."""
    x = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, (1 << 20, 64))
    x[::1000, 0] = 1
    del x
    np.save(tmp_path / "y.npy", np.arange(1 << 20) % 10)
    words = [sys.executable, "-c", LOADED, str(tmp_path / "X.npy"), str(tmp_path / "y.npy")]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert int(told[2]) == 1 << 20
    assert int(told[0]) < 60e6
