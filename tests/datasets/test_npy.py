"""Points in an npy file: the data set of the same arrays, whatever becomes of the file."""

import os
import subprocess
import sys

import numpy as np
import pytest

from normbench.datasets import UserError, encode_labels, make_dataset
from normbench.datasets.on_disk import points
from normbench.datasets.on_disk.npy import NpyPoints, choose_dtype, npy
from normbench.datasets.on_disk.points import Points
from tests.datasets.reading import wrong_spans

RNG = np.random.default_rng(0)
X = RNG.standard_normal((500, 6))
LABELS = np.arange(500) % 3 - 1
KINDS = ("?", "i1", "u1", "i2", ">u2", "i4", "u4", "i8", "u8", "f2", "f4", ">f4", "f8", ">f8")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(points, "BLOCK_BYTES", 40 * X[0].nbytes)
    monkeypatch.setattr("normbench.datasets.on_disk.npy.CACHE_BYTES", 1000)


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", LABELS)
    return tmp_path / "X.npy"


def opened(file):
    return NpyPoints(f"dataset.path={file}", file)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_number_is_read_as_it_is(tmp_path, kind):
    x = (100 * X).astype(kind) if kind != "u1" else np.arange(3000).reshape(500, 6).astype(kind)
    np.save(tmp_path / "X.npy", x)
    read = opened(tmp_path / "X.npy")
    assert read.shape == (500, 6)
    assert read.dtype == choose_dtype(x.dtype)
    for rows in (slice(0, 500), slice(3, 4), slice(100, 477), slice(7, 7), slice(-5, None)):
        assert np.array_equal(read[rows], x[rows].astype(read.dtype))
    out = np.full((500, 6), -7.0)
    given = read.read(10, 60, out)
    assert given.base is out
    assert np.array_equal(out[:50], x[10:60].astype(np.float64))
    assert (out[50:] == -7).all()
    numbers = np.array([499, 0, 77, 77])
    assert np.array_equal(read[numbers], x[numbers].astype(read.dtype))


def test_float32_is_read_where_it_holds_every_number():
    single = {kind for kind in KINDS if choose_dtype(np.dtype(kind)) == np.float32}
    assert single == {"?", "i1", "u1", "i2", ">u2", "f2", "f4", ">f4"}


@pytest.mark.parametrize("kind", ["u1", "f4", "f8"])
def test_the_data_set_is_that_of_the_arrays_in_memory_or_not(file, kind):
    x = np.abs(X * 9).astype(kind)
    np.save(file, x)
    np.save(file.with_name("T.npy"), x[:77])
    np.save(file.with_name("t.npy"), LABELS[:77])
    settings = [str(file), str(file.with_name("y.npy"))]
    test = [str(file.with_name("T.npy")), str(file.with_name("t.npy"))]
    blocks, array = (npy(*settings, *test, in_blocks=given) for given in (True, None))
    assert isinstance(blocks.x, Points)
    assert isinstance(array.x, np.ndarray)
    y, names = encode_labels("made", LABELS)
    more = {"x_test": x[:77], "y_test": y[:77], "class_names": names, "source": ""}
    made = make_dataset("X", x, y, precision=str(choose_dtype(x.dtype)), **more)
    for data in (blocks, array):
        assert data.fingerprint == made.fingerprint
        assert data.name == "X"
        assert data.class_names == ("-1", "0", "1")
        assert data.y.tolist() == y.tolist()
        assert isinstance(data.x_test, np.ndarray)
    assert np.array_equal(blocks.x[:], array.x)


def test_points_are_read_in_blocks_where_a_quarter_of_the_memory_is_less(file, monkeypatch):
    for free, held in ((4 * X.nbytes, True), (4 * X.nbytes - 4, False)):
        monkeypatch.setattr(
            "normbench.datasets.on_disk.files_on_disk.available_bytes", lambda free=free: free
        )
        assert isinstance(npy(str(file)).x, np.ndarray) == held
    monkeypatch.setattr("normbench.datasets.values.available_bytes", lambda: 1000)
    with pytest.raises(UserError, match=r"^dataset\.in_blocks=false: takes 2.4e-05 GB of memory"):
        npy(str(file), in_blocks=False)


def test_many_threads_read_at_once(file):
    np.save(file, X.astype(np.float32))
    assert wrong_spans(opened(file), X.astype(np.float32), looks=200) == []


def test_short_reads_are_gone_on_with(file, monkeypatch):
    whole = os.preadv
    monkeypatch.setattr(
        os, "preadv", lambda number, rest, place: whole(number, [rest[0][:100]], place)
    )
    assert np.array_equal(opened(file)[3:400], X[3:400])


def written(file, x):
    with file.open("r+b") as stream:
        stream.seek(128)
        stream.write(x.tobytes())


def test_a_file_that_is_written_again_with_the_same_points_is_the_same(file):
    data = npy(str(file), in_blocks=True)
    data.x.check()
    os.utime(file, ns=(1, 1))
    data.x.check()
    file.with_name("other.npy").write_bytes(file.read_bytes())
    os.replace(file.with_name("other.npy"), file)
    before = data.x.opened.stamp
    data.x.check()
    assert data.x.opened.stamp != before
    assert np.array_equal(data.x[:], X)


def other(x):
    changed = x.copy()
    changed[300, 2] += 1e-9
    return changed


CHANGES = {
    "first in rows 280 to 319": lambda file: written(file, other(X)),
    "first in rows 280 to 319, ": lambda file: np.save(file, other(X)),
    "it cannot be read: No such file": lambda file: file.unlink(),
    "announces 500 x 6 entries": lambda file: os.truncate(file, 9000),
    "from (500, 6) float64 to (499, 6) float64": lambda file: np.save(file, X[:499]),
    "from (500, 6) float64 to (500, 6) float32": lambda file: np.save(file, X.astype("f4")),
    "cannot be read as a NumPy array": lambda file: file.write_bytes(b"nothing"),
}


@pytest.mark.parametrize("told", CHANGES)
def test_a_file_that_changes_is_told_with_its_rows(file, told):
    data = npy(str(file), in_blocks=True)
    CHANGES[told](file)
    os.utime(file, ns=(1, 1)) if file.exists() else None
    with pytest.raises(UserError) as error:
        data.x.check()
    assert str(error.value).startswith(f"dataset.path={file}: was changed while the sweep ran (")
    assert told in str(error.value)
    assert str(error.value).endswith("; run it again")
    assert "\n" not in str(error.value)


def test_a_file_that_is_cut_off_while_it_is_read_is_told_and_ends_no_process(file):
    read = opened(file)
    os.truncate(file, 128 + 100 * X[0].nbytes + 5)
    assert np.array_equal(read[:100], X[:100])
    with pytest.raises(UserError, match=r"was changed .* ends before row 149, counted from 0"):
        read[90:150]


def cut(file, size):
    np.save(file, X)
    os.truncate(file, size)


WRONG = {
    "flat.npy": (X[0], r"shape \(6,\); points are \(P, N\)"),
    "none.npy": (X[:0], r"shape \(0, 6\)"),
    "columns.npy": (np.asfortranarray(X), "column by column .*ascontiguousarray"),
    "complex.npy": (X.astype(complex), "type complex128; every feature must be a number"),
    "words.npy": (X.astype(str), "type <U32"),
    "dates.npy": (X.astype("M8[s]"), "type datetime64"),
    "objects.npy": (X.astype(object), "type object"),
    "records.npy": (np.zeros(3, dtype=[("a", float)]), "type .*; every feature"),
    "archive.npz": (None, "cannot be read as a NumPy array .*dataset=npz"),
    "head.npy": (40, "cannot be read as a NumPy array"),
    "cut.npy": (1000, "announces 500 x 6 entries of 8 bytes and holds 872 bytes"),
    "long.npy": (24136, "announces 500 x 6 entries of 8 bytes and holds 24008 bytes"),
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
    assert str(error.value).startswith(f"dataset.path={tmp_path / name}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"path": "a\0.npy"}, r"is no path to be read \(it holds a null character\)"),
        ({"path": None}, r"^dataset\.path=null: must be a path; write dataset\.path=X\.npy"),
        ({"targets": "no.npy"}, r"^dataset\.targets=no\.npy: no such file"),
        ({"targets": "X.npy"}, r"targets have shape \(500, 6\)"),
        ({"targets": "objects.npy"}, r"^dataset\.targets=.*: cannot be read as a NumPy array"),
        ({"targets": "few.npy"}, "targets have shape .*it takes one target for each of 500"),
        ({"targets": "y.npy", "test_path": "X.npy"}, "test targets are missing"),
        ({"test_path": "single.npy"}, "is read as float32 and the training points as float64"),
        ({"in_blocks": "yes"}, r"^dataset\.in_blocks=yes: must be true or false"),
    ],
)
def test_a_wrong_setting_is_told_in_one_line(file, settings, told, monkeypatch):
    monkeypatch.chdir(file.parent)
    np.save("few.npy", LABELS[:9])
    np.save("objects.npy", LABELS.astype(object))
    np.save("single.npy", X.astype(np.float32))
    with pytest.raises(UserError, match=told) as error:
        npy(**{"path": "X.npy"} | settings)
    assert "\n" not in str(error.value)


LOADED = """
import sys
from pathlib import Path
import numpy as np
from normbench.datasets.on_disk.npy import npy
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
