"""The benchmarks run, check that both sides computed the same, and say what is not there."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from normbench.engine import smaller
from tests.benchmarks import commands, sides
from tests.benchmarks.__main__ import check_same
from tests.benchmarks.turns import judged, line
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


def test_a_row_says_whether_its_target_was_met_and_names_the_kernels():
    assert judged("a", 1.2, "at most", 1.25)["met"]
    assert not judged("a", 1.3, "at most", 1.25)["met"]
    assert judged("a", 1.2, "at least", 1.1)["met"]
    assert not judged("a", 1.0, "at least", 1.1)["met"]
    assert "met" not in judged("a", 1.0)
    assert line(judged("a", 1.2, "at most", 1.25) | {"kernels": "Haswell"}).endswith("Haswell")


def test_a_command_is_measured_with_its_modules_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    code = "import sys; sys.stderr.write(str(sys.dont_write_bytecode))"
    assert commands._python(["-c", code], str(tmp_path)) == "False"
    with pytest.raises(SystemExit, match="broken"):
        commands._python(["-c", "raise SystemExit('broken')"], str(tmp_path))


@pytest.mark.parametrize("classes", [1, 3])
def test_all_sides_compute_the_same(classes, monkeypatch):
    monkeypatch.setattr(smaller, "MIN_POINT_ENTRIES", 0)  # columns of few points, too
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 4))
    x = np.column_stack([x, 0 * x[:, 0]])
    y = rng.integers(0, classes, 50) if classes > 1 else np.sign(x[:, 1])
    start = rng.standard_normal((2, classes, 6))
    start[:, :, 5] = 0
    work = sides.Work(x, y, start, np.array([0.1, 1.0]), 7)
    expected = sides.textbook(work)
    assert expected[0].shape == expected[1].shape == (2, 8)
    check_same(sides.ours(work)(), expected, "float64", "ours")


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
    sides_of_row = [name.partition(" over ")[0] for name in rows]
    assert sides_of_row == ["pytorch", "jax", "one thread"]
    for name, row in rows.items():
        assert name in done.stdout
        assert (row["ratio"] is None and row["note"]) or row["ratio"] > 0
