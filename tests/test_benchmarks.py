"""The benchmarks run, check that both sides computed the same, and say what is not there."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from normbench.engine.fast import packed, wrappers
from tests.benchmarks import commands, fit_rows, sides
from tests.benchmarks.__main__ import COMBINATIONS, check_same, judged, line
from tests.conftest import ROOT
from tests.real_data import FOLDER

DIGITS = FOLDER / "t10k-images-idx3-ubyte.gz"


def test_two_sides_that_differ_end_the_benchmark():
    histories = np.ones((2, 3)), np.ones((2, 3), dtype=int)
    check_same(histories, histories, "float64", "a row")
    with pytest.raises(SystemExit, match="a row: the two sides differ"):
        check_same(histories, (histories[0] + 1e-6, histories[1]), "float64", "a row")
    with pytest.raises(SystemExit, match="a row: the two sides differ"):
        check_same(histories, (histories[0], histories[1] + 1), "float64", "a row")


def test_a_row_says_whether_its_target_was_met():
    assert judged("a", 1.2, "at most", 1.25)["met"]
    assert not judged("a", 1.3, "at most", 1.25)["met"]
    assert judged("a", 1.2, "at least", 1.1)["met"]
    assert not judged("a", 1.0, "at least", 1.1)["met"]
    assert "met" not in judged("a", 1.0)


def test_a_row_names_the_kernels_that_ran():
    assert line(judged("a", 1.2, "at most", 1.25) | {"kernels": "Haswell"}).endswith("Haswell")


def test_a_command_is_measured_with_its_modules_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    code = "import sys; sys.stderr.write(str(sys.dont_write_bytecode))"
    assert commands._python(["-c", code], str(tmp_path)) == "False"


@pytest.mark.parametrize("classes", [1, 3])
def test_all_sides_compute_the_same(classes, monkeypatch):
    monkeypatch.setattr(wrappers, "MIN_POINT_ENTRIES", 0)  # small points are merged and packed, too
    monkeypatch.setattr(packed, "MIN_FEATURES", 1)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 4))
    x = np.column_stack([x, x[:, 0]])
    y = rng.integers(0, classes, 50) if classes > 1 else np.sign(x[:, 1])
    start = rng.standard_normal((2, classes, 6))
    work = sides.Work(x, y, start, np.array([0.1, 1.0]), 7)
    expected = sides.textbook(work)
    assert expected[0].shape == expected[1].shape == (2, 8)
    for words in COMBINATIONS:
        if "packed" not in words or packed.is_installed():
            one, other = sides.wrapped(work, words)(), sides.unwrapped(work, words)()
            np.testing.assert_allclose(one[0], other[0], rtol=1e-12)
            np.testing.assert_array_equal(one[1], other[1])
    packings = sides.always_packed, sides.unpacked
    for side in (sides.ours, sides.unmerged, *packings, sides.every_row, sides.at_once):
        check_same(side(work)(), expected, "float64", side.__name__)
    check_same(sides.textbook(work, careful=True), expected, "float64", "careful")


@pytest.mark.slow
@pytest.mark.skipif(not DIGITS.is_file(), reason=f"no {DIGITS.name} in {FOLDER}")
def test_the_table_has_every_row_of_a_size(tmp_path):
    options = ["--turns", "1", "--only", "1 runs, float32", "--json", str(tmp_path / "table.json")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", *options],
        cwd=ROOT,
        env={**os.environ, "NORMBENCH_DATA": str(FOLDER)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads((tmp_path / "table.json").read_text())["rows"]}
    assert list(rows) == [
        "step over the products of C - 1 rows, 1 runs, float32",
        "step over the products of C, 1 runs, float32",
        "packing the points over a step, 1 runs, float32",
        "unpacked over packed, 1 runs, float32",
        "points at once over unpacked, 1 runs, float32",
        "jax over ours, 1 runs, float32",
        "one thread over 2, 1 runs, float32",
        "all threads over those that pay, 1 runs, float32",
    ]
    for name, row in rows.items():
        assert name in done.stdout
        assert (row["ratio"] is None and row["note"]) or row["ratio"] > 0


def test_the_memory_of_a_fit_is_what_it_takes_beside_its_points(monkeypatch):
    class Hungry:
        eigenvalues_ = np.ones(3)

        def fit(self, x):
            np.ones(3 * x.size)
            return self

    monkeypatch.setitem(fit_rows.SIDES, "ours", Hungry)
    np.ones(40_000_000)  # a peak before the fit, which is not of it
    fit = fit_rows.fit_once("ours", 500)  # so large that no freed memory is reused
    assert 2.5 < fit["memory"] < 3.5
    assert fit["seconds"] > 0
    assert fit["variances"] == [1, 1, 1]


def test_fits_with_other_variances_end_the_benchmark(monkeypatch):
    answers = iter([[2.0, 1.0], [2.0, 1.1]])

    def run(*_, **__):
        fit = {"seconds": 1, "memory": 1, "variances": next(answers)}
        return SimpleNamespace(stdout=json.dumps(fit))

    monkeypatch.setattr(fit_rows, "subprocess", SimpleNamespace(run=run))
    with pytest.raises(SystemExit, match="a fit: other variances"):
        list(fit_rows.compare_apart("a fit", 2))


@pytest.mark.slow
def test_a_fit_of_each_side_is_measured_apart():
    seconds, *memories = fit_rows.compare_apart("a fit", 20)
    assert seconds["ratio"] > 0
    assert [row["name"].rpartition(" ")[2] for row in memories] == ["ours", "theirs"]
