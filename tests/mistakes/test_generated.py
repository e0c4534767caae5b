"""Mistakes that nobody thought of: generated words and files, each told in one line.

Every command ends in a mistake of its own, should what was generated be none.
"""

import io
import json
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from normbench.choices import options
from tests.cases import names
from tests.mistakes.bench import answer, emptied

FEW_WORDS, FEW_FILES, MANY = 15, 5, 400  # a file takes 0.4 s, words 0.05
# A last mistake: of a setting, told at once; of the start, told when the data is read.
AT_ONCE, AFTER_THE_DATA = ["cost.l2=-1"], [f"start={[1] * 41}".replace(" ", ""), "record=[]"]
ENDLESS = ("Cc", "Cs")  # characters that are no text; some are added by hand


def bounded(examples, kind):
    """Return a decorator that draws examples of a kind, the same ones at each run."""
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

    def decorate(test):
        drawn = settings(
            max_examples=examples,
            deadline=None,  # of the processor's time `complaints` tells
            derandomize=True,
            database=None,
            suppress_health_check=quiet,
        )
        return drawn(given(kind)(test))

    return decorate


def check(words, files=None):
    """Assert that a command is one line, exit code 2, and leaves nothing."""
    top = Path(tempfile.mkdtemp())
    for name in ("files", "work", "home"):
        (top / name).mkdir()
    for name, content in (files or {}).items():
        (top / "files" / name).write_bytes(content)
    try:
        told = answer([word.replace("FOLDER", str(top / "files")) for word in words], top)
    finally:
        emptied(top)
    assert told.complaints() == [], words


# Words.

LETTERS = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=12)
TEXT = st.text(st.characters(exclude_categories=ENDLESS), max_size=20)
ODD = st.sampled_from(
    ["\udcff", "\x1b[31m", "a\nb", "\u202e", "'", '"', "[", "{", "$", "${", "${a}", "=", ",", "\\"]
)
NUMBERS = st.one_of(
    st.integers(),
    st.integers(min_value=10**20, max_value=10**40),
    st.floats(),
    st.sampled_from(["nan", "inf", "-inf", "1e400", "0x10", "1_000", "null", "true", "???"]),
).map(str)


def nested(inner):
    """Return lists and dictionaries of texts, as a word writes them."""
    return st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{','.join(parts)}]"),
        st.dictionaries(LETTERS, inner, max_size=2).map(
            lambda parts: "{" + ",".join(f"{key}:{value}" for key, value in parts.items()) + "}"
        ),
    )


VALUES = st.recursive(
    st.one_of(NUMBERS, LETTERS, TEXT, ODD),
    lambda inner: st.one_of(
        nested(inner),
        st.lists(inner, min_size=1, max_size=3).map(",".join),
        inner.map(lambda value: f"${{oc.decode:{value}}}"),
        st.lists(inner, max_size=3).map(lambda parts: f"range({','.join(parts)})"),
    ),
    max_leaves=5,
)
GROUPS = ("cost", "dataset", "normalizer", "optimizer", "tracking", "experiment")
SETTING_NAMES = """
    iterations step_sizes shown_step start start_scale starts seed precision record theory reuse
    checkpoint packages data_dir rules search rules.tail rules.last search.width search.critical
    dataset.test_fraction dataset.split_seed dataset._target_ dataset.path cost._target_
    normalizer._target_ normalizer.ridge normalizer.components normalizer.schemes
    optimizer._target_ optimizer.momentum tracking.uri tracking.artifacts
    hydra hydra.mode hydra.sweep.dir hydra.launcher hydra/launcher hydra.launcher.n_jobs
    hydra.launcher.partition hydra.launcher.jobs_per_task +hydra.launcher.setup hydra.callbacks
    hydra.job_logging hydra.job.chdir hydra.sweeper.params hydra/sweeper hydra.searchpath
    hydra.verbose
"""
KEYS = st.sampled_from((*SETTING_NAMES.split(), *GROUPS))
CHOICES = st.sampled_from(GROUPS).flatmap(
    lambda group: st.sampled_from([*names(group), "nothing"]).map(lambda name: f"{group}={name}")
)
PATHS = st.lists(LETTERS, min_size=1, max_size=4).map(".".join)
WORDS = st.one_of(
    st.builds("{}={}".format, KEYS, VALUES),
    st.builds("{}={}".format, PATHS, VALUES),
    st.builds("{}{}={}".format, st.sampled_from(["+", "++", "~"]), st.one_of(KEYS, PATHS), VALUES),
    st.builds("{}._target_={}".format, st.sampled_from(GROUPS), PATHS),
    st.builds("--{}{}".format, st.sampled_from(["zz", "config-", "run"]), LETTERS),
    CHOICES,
    TEXT.filter(lambda text: not text.startswith("-")),
    ODD,
)
COMMANDS = st.builds(
    lambda words, last: [*words, *last],
    st.lists(WORDS, min_size=1, max_size=4),
    st.sampled_from([AT_ONCE, AFTER_THE_DATA]),
)
QUOTED = TEXT.map(lambda text: "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'")
READABLE = st.recursive(st.one_of(NUMBERS, LETTERS, QUOTED), nested, max_leaves=3)
# Every setting of every option, behind the option.
SETTINGS = [
    [f"{group}={name}", f"{group}.{key}"]
    for group in GROUPS
    if group != "experiment"
    for name in names(group)
    for key in options(group, name)
]
WRONG = st.builds(
    lambda setting, value: [*setting[:-1], f"{setting[-1]}={value}", *AFTER_THE_DATA],
    st.one_of(st.sampled_from(SETTINGS), KEYS.map(lambda key: [key])),
    READABLE,
)
READING = st.builds(
    lambda word, flag, value: ["results", word, "--store", "sqlite:///none.db", flag, value],
    st.sampled_from(["show", "list", "table", "figure", "report", "profile", "studies"]),
    st.sampled_from(["--store", "--where", "--format", "--out", "--steps", "--first-iteration"]),
    TEXT,
)
SAID = st.one_of(COMMANDS, WRONG, READING)


def a_bad_command(words):
    check(words)


test_bad_words = pytest.mark.commands(bounded(FEW_WORDS, SAID)(a_bad_command))
test_many_bad_words = pytest.mark.slow(pytest.mark.whole(bounded(MANY // 2, SAID)(a_bad_command)))


# Files.

ENTRIES = st.one_of(
    NUMBERS,
    st.integers(-9, 9).map(str),
    st.floats(-9, 9).map(str),
    TEXT,
    st.sampled_from(["", " ", "NA", "yes", "no", "1,5", '"', '"a', "\0", "2020-01-01", "1j", "﻿"]),
)
TABLES = st.lists(st.lists(ENTRIES, min_size=1, max_size=4), max_size=6)
TARGETS = st.sampled_from(["a", "label", "null", "[1]"])
OPTIONS = {
    "target": st.one_of(st.integers(-5, 5).map(str), TARGETS),
    "header": st.sampled_from(["true", "false", "null"]),
    "points_in": st.sampled_from(["rows", "columns", "planes"]),
    "delimiter": st.sampled_from(["comma", "semicolon", "tab", "space", "pipe", "none"]),
    "drop": st.sampled_from(["[]", "[0]", "[a]", "a", "[[a]]", "null"]),
    "task": st.sampled_from(["null", "classes", "regression", "binary"]),
}


@st.composite
def text_files(draw):
    """Return the words and the file of a csv that is likely to be wrong."""
    mark = draw(st.sampled_from([",", ";", "\t", " ", "|"]))
    rows = [mark.join(row) for row in draw(TABLES)]
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-16", "utf-8-sig"]))
    content = draw(st.sampled_from(["\n", "\r\n", "\r"])).join(rows).encode(encoding, "replace")
    chosen = draw(st.lists(st.sampled_from(sorted(OPTIONS)), max_size=3, unique=True))
    words = [f"dataset.{name}={draw(OPTIONS[name])}" for name in chosen]
    return ["dataset=csv", "dataset.path=FOLDER/my.csv", *words], {"my.csv": content}


@st.composite
def archives(draw):
    """Return the words and the file of an npz archive of any arrays."""
    kinds = st.one_of(hnp.scalar_dtypes(), hnp.array_dtypes(), hnp.unicode_string_dtypes())
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)
    parts = {name: draw(hnp.arrays(kinds, shapes)) for name in ("x", "y")}
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that only newer versions read
        np.savez(file, **parts)
    content = file.getvalue()
    task = draw(OPTIONS["task"])
    words = ["dataset=npz", "dataset.path=FOLDER/my.npz", f"dataset.task={task}"]
    return words, {"my.npz": content}


COLUMNS = st.sampled_from(
    (
        pa.array([1.5, 2.0, None, 4.0]),
        pa.array([1, 2, 3, 4]),
        pa.array([0, 1, 0, 1]),
        pa.array(["a", "b", "a", None]),
        pa.array([[1], [2, 3], [], None]),
        pa.array([{"a": 1}, {"a": 2}, None, {"a": 3}]),
        pa.array([True, False, None, True]),
        pa.array([b"\xff", b"", None, b"a"]),
        pa.array([0, 1, 2, 3], pa.timestamp("ns", "UTC")),
        pa.array([0, 1, 2, 3], pa.duration("s")),
        pa.array([0, 1, 2, 3], pa.date32()),
        pa.array(["a", "b", "a", "b"]).dictionary_encode(),
        pa.nulls(4),
    )
)
PANDAS_KEYS = st.sampled_from(
    ["index_columns", "columns", "name", "kind", "pandas_type", "metadata"]
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), TEXT),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(PANDAS_KEYS, inner, max_size=4),
    ),
    max_leaves=8,
)


@st.composite
def parquets(draw):
    """Return the words and the file of a Parquet table of any columns."""
    columns = draw(st.lists(COLUMNS, min_size=1, max_size=4))
    called = [draw(st.sampled_from(["a", "b", "label", "", "__index_level_0__"])) for _ in columns]
    table = pa.Table.from_arrays(columns, names=called)
    if draw(st.booleans()):
        told = json.dumps(draw(JSON)).encode()
        table = table.replace_schema_metadata({b"pandas": told})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    words = [f"dataset.{name}={draw(OPTIONS[name])}" for name in ("target", "drop")]
    content = sink.getvalue().to_pybytes()
    return ["dataset=parquet", "dataset.path=FOLDER/my.parquet", *words], {"my.parquet": content}


@st.composite
def damaged(draw, kind):
    """Return words and file of a kind, with some of its bytes changed, cut off or doubled."""
    words, files = draw(kind)
    ((name, content),) = files.items()
    content = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(content)))
        action = draw(st.sampled_from(["set", "cut", "add"]))
        if action == "cut":
            del content[place : place + draw(st.integers(1, 64))]
        elif action == "add":
            content[place:place] = draw(st.binary(min_size=1, max_size=64))
        elif place < len(content):
            content[place] = draw(st.integers(0, 255))
    return words, {name: bytes(content)}


HEADERS = {
    "descr": ["<f8", "|O", "<U0", "|V0", "<f99", "x", "[('a','<f8')]"],
    "fortran_order": ["True", "False", "None", "3"],
    "shape": ["(4, 2)", "(-1, 2)", "(10**9, 9)", "()", "4", "(2**62,)"],
}


@st.composite
def lying(draw):
    """Return the words and the file of an archive whose headers say what they like."""
    header = {key: draw(st.sampled_from(values)) for key, values in HEADERS.items()}
    version = draw(st.sampled_from([b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x00"]))
    text = "{" + ", ".join(f"'{key}': {value!r}" for key, value in header.items()) + "}\n"
    text = text.replace("'(", "(").replace(")'", ")") if draw(st.booleans()) else text
    size = len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY" + version + size + text.encode() + bytes(64))
    words = ["dataset=npz", "dataset.path=FOLDER/my.npz", "dataset.y=null"]
    return words, {"my.npz": file.getvalue()}


FILES = st.one_of(
    text_files(),
    archives(),
    parquets(),
    lying(),
    damaged(text_files()),
    damaged(archives()),
    damaged(parquets()),
)


def a_bad_file(drawn):
    words, files = drawn
    check([*words, *AFTER_THE_DATA], files)


test_bad_files = pytest.mark.commands(bounded(FEW_FILES, FILES)(a_bad_file))
test_many_bad_files = pytest.mark.slow(pytest.mark.whole(bounded(MANY // 2, FILES)(a_bad_file)))
