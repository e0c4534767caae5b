"""Files and data that are damaged, hostile, or beyond what a machine holds."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.mistakes.bench import Case, typed

BLOCKS = "dataset.in_blocks=true"
SPARSE = 200 << 30  # bytes, of which the file system keeps none
CLAIMED = 10**15  # entries, in the header of an array
ENDINGS = ("zip", "tar.gz", "zst")
LISTS = {"a": [1.0, 2, 3, 4], "label": [[1], [2], [1], [2]]}
METADATA = (
    3,
    {"index_columns": ["none"], "columns": 7},
    {"columns": [{"name": []}], "index_columns": [{"kind": "range"}]},
)


def csv(name: str, content: str, *words: str) -> Callable[[Path], list[str]]:
    def made(folder: Path) -> list[str]:
        (folder / name).write_text(content)
        return ["dataset=csv", f"dataset.path={folder / name}", "dataset.target=label", *words]

    return made


def sparse(option: str, name: str) -> Callable[[Path], list[str]]:
    def made(folder: Path) -> list[str]:
        with (folder / name).open("wb") as file:
            file.truncate(SPARSE)
        return [f"dataset={option}", f"dataset.path={folder / name}"]

    return made


def header(shape: tuple[int, ...], kind: str) -> bytes:
    """Return the head of a file of one array that claims a shape."""
    told = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    told += " " * (-(len(told) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(told).to_bytes(2, "little") + told.encode()


def claims(shape: tuple[int, ...], kind: str) -> Callable[[Path], list[str]]:
    def made(folder: Path) -> list[str]:
        with zipfile.ZipFile(folder / "my.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", header(shape, kind))
            archive.writestr("y.npy", header((2,), "|i1") + b"\0\1")
        return ["dataset=npz", f"dataset.path={folder / 'my.npz'}"]

    return made


def npy(x: np.ndarray, *words: str) -> Callable[[Path], list[str]]:
    def made(folder: Path) -> list[str]:
        np.save(folder / "X.npy", x)
        np.save(folder / "y.npy", np.arange(len(x)) % 2)
        paths = [f"dataset.path={folder / 'X.npy'}", f"dataset.targets={folder / 'y.npy'}"]
        return ["dataset=npy", *paths, *words]

    return made


def arrays(*words: str, **parts: np.ndarray) -> Callable[[Path], list[str]]:
    def made(folder: Path) -> list[str]:
        np.savez(folder / "my.npz", **parts)
        return ["dataset=npz", f"dataset.path={folder / 'my.npz'}", *words]

    return made


def parquet(columns: dict, metadata: object = None) -> Callable[[Path], list[str]]:
    def made(folder: Path) -> list[str]:
        import pyarrow as pa

        table = pa.table(columns)
        if metadata is not None:
            told = {b"pandas": json.dumps(metadata).encode()}
            table = table.replace_schema_metadata(told)
        return written(folder, table)

    return made


def doubled(folder: Path) -> list[str]:
    import pyarrow as pa

    columns = [pa.array([1.0, 2, 3, 4]), pa.array([0, 1, 0, 1]), pa.array([1, 1, 0, 0])]
    return written(folder, pa.Table.from_arrays(columns, names=["a", "label", "label"]))


def written(folder: Path, table: object) -> list[str]:
    import pyarrow.parquet as pq

    pq.write_table(table, folder / "my.parquet")
    words = ["dataset.target=label", "cost=multiclass_softmax"]
    return ["dataset=parquet", f"dataset.path={folder / 'my.parquet'}", *words]


def path(value: str, kind: str) -> Case:
    return Case(kind, typed("dataset=csv", f"dataset.path={value}"), ("dataset.path=",))


POINTS = np.eye(4)
TWO = np.array([0, 1, 0, 1])
RECORDS = np.zeros(4, dtype=[("a", "i4"), ("b", "i4")])
DAYS = np.array(["2020", "2021"] * 2, dtype="M8[D]")

CASES = (
    Case(
        "points beyond memory",
        typed("dataset=gaussian", "dataset.points=100000000000"),
        ("dataset.points=100000000000", "GB"),
    ),
    Case(
        "features beyond memory",
        typed("dataset=gaussian", "dataset.features=10000000"),
        ("dataset.features=10000000", "GB"),
    ),
    Case("an array that claims", claims((CLAIMED,), "<f8"), ("my.npz",)),
    Case("a shape below zero", claims((-1, 4), "<f8"), ("my.npz",)),
    *(
        Case(f"a csv named .{ending}", csv(f"my.csv.{ending}", "a\0b" * 9), ("my.csv",))
        for ending in ENDINGS
    ),
    path("null", "a path that is none"),
    path("a" * 5000 + ".csv", "a path of 5,000 characters"),
    path("~nouser/my.csv", "a path of nobody's"),
    path("/proc/self/mem", "a path to the memory"),
    path("/dev/zero", "a path to zeros"),
    Case("data of nobody's", typed("dataset=span_2d", "data_dir=~nouser"), ("data_dir=~nouser",)),
    Case("data nowhere", typed("dataset=span_2d", "data_dir=/proc/none/none"), ("data_dir=",)),
    Case("no network", typed("dataset=span_2d", "data_dir=a/b/c"), ("data_dir=a/b/c",)),
    Case(
        "no network for OpenML",
        typed("dataset=openml", "dataset.name=x"),
        ("dataset.name=x", "cannot be had from openml.org"),
    ),
    Case("data too far", typed("dataset=span_2d", f"data_dir={'a' * 5000}"), ("data_dir=",)),
    *(
        Case(f"pandas metadata {told}", parquet(LISTS, told), ("my.parquet: cannot be read",))
        for told in METADATA
    ),
    Case("lists for targets", parquet(LISTS), ("targets are of type ndarray",)),
    Case(
        "records for targets",
        parquet({"a": [1.0, 2], "label": [{"b": 1}, {"b": 2}]}),
        ("targets are of type dict",),
    ),
    Case("a doubled target in parquet", doubled, ("my.parquet: cannot be read", "label")),
    Case("complex targets", arrays(x=POINTS, y=TWO * 1j), ("targets are of type complex128",)),
    Case("dates for targets", arrays(x=POINTS, y=DAYS), ("targets are of type datetime64",)),
    Case(
        "spans for targets",
        arrays(x=POINTS, y=DAYS - DAYS[0]),
        ("targets are of type timedelta",),
    ),
    Case("a record for a target", arrays(x=POINTS, y=RECORDS), ("targets are of type void",)),
    Case("dates for points", arrays(x=DAYS[:, None], y=TWO), ("feature must be a number",)),
    Case("complex points", arrays(x=POINTS * 1j, y=TWO), ("feature must be a number",)),
    Case("a csv of 200 GB", sparse("csv", "my.csv"), ("my.csv: takes 215 GB",)),
    Case("an npy file of 200 GB", sparse("npy", "my.npy"), ("my.npy",)),
    Case("points of objects", npy(np.eye(9).astype(object)), ("X.npy", "objects in dtype")),
    Case("an infinite point", npy(np.full((9, 2), np.nan)), ("data of X", "nan")),
    Case("folds of points in a file", npy(np.eye(9), BLOCKS, "dataset.folds=3"), ("folds=3",)),
    Case("copies of points in a file", npy(np.eye(9), BLOCKS, "dataset.augment=round"), ("round",)),
    Case("an npz file of 200 GB", sparse("npz", "my.npz"), ("my.npz",)),
    Case("a parquet file of 200 GB", sparse("parquet", "my.parquet"), ("my.parquet",)),
)
