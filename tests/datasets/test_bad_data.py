"""Every kind of bad data is told in one line; legal data that looks bad runs."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from normbench.choices import build, options
from normbench.costs import softmax
from normbench.datasets import UserError, make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from tests import forks
from tests.datasets.bad_data import CASES, NO_NETWORK, seen

ROOT = Path(__file__).resolve().parents[2]
NAMES = [case.kind for case in CASES]


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    for variable in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(variable, NO_NETWORK)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_user_reads_what_is_wrong(case, tmp_path):
    line = seen(case, tmp_path)
    for fragment in case.fragments:
        assert fragment in line


@pytest.mark.commands
@pytest.mark.parametrize("case", [case for case in CASES if case.process], ids=lambda c: c.kind)
def test_a_process_ends_with_one_line_and_code_2(case, tmp_path):
    (tmp_path / "data").mkdir()
    work = tmp_path / "work"
    work.mkdir()
    attempt = case.make(tmp_path / "data")
    assert isinstance(attempt, partial)
    option, settings, cost = (*attempt.args, "softmax")[:3]
    done = forks.run([f"dataset={option}", f"cost={cost}", "tracking=none", *given(settings)], work)
    assert done.returncode == 2
    assert done.stderr.startswith("normbench: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    for fragment in case.fragments:
        assert fragment in done.stderr
    assert [path for path in work.rglob("*") if path.is_file()] == []


def given(settings):
    """Return settings as a user types them."""
    for name, value in settings.items():
        key = name if name == "data_dir" else f"dataset.{name}"
        yield f"{key}={'null' if value is None else str(value).replace(chr(39), '')}"


def legal():
    """Yield kinds of data that are legal though they look bad: points (P, N) of 2 classes."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((40, 3))
    yield "a constant feature", np.column_stack([points, np.full(40, 0.1)])
    yield "a feature of zeros", np.column_stack([points, np.zeros(40)])
    yield "duplicated columns", np.column_stack([points, points])
    yield "fewer points than features", rng.standard_normal((8, 20))
    yield "duplicated points", np.repeat(points[:4], 10, axis=0)
    yield "huge offsets", points + 1e6
    yield "points of float32", points.astype(np.float32) + np.float32(1e4)
    yield "whole numbers", rng.integers(0, 10, (40, 3))
    yield "one feature", points[:, :1]
    yield "features of very different ranges", points * [1e-12, 1, 1e12]


LEGAL = dict(legal())


def descended(points, scheme, **settings):
    """Return the costs of the first step size in 20 iterations."""
    labels = np.arange(len(points)) % 2
    data = make_dataset("made", points, labels, source="made", class_names=["a", "b"])
    assert data.x.dtype == np.float64
    normalizer = build("normalizer", options("normalizer", scheme))
    optimizer = build("optimizer", options("optimizer", "gradient_descent"))
    job = Job(data, softmax, normalizer, optimizer, Settings(iterations=20, **settings))
    return run(job).steps[0].histories["train/cost"]


@pytest.mark.parametrize("number", range(len(LEGAL)), ids=LEGAL)
def test_legal_data_descends(number):
    points = [*LEGAL.values()][number]
    scheme = ("identity", "standard", "pca_sphere")[number % 3]
    precision = ("float64", "float32")[number % 2]
    costs = descended(points, scheme, step_sizes=(1e-30, 1e-3), precision=precision)
    assert len(costs) == 21
    assert costs[0] == pytest.approx(np.log(2), rel=1e-6)
    assert np.isfinite(costs).all()


def final_cost(points, scheme, precision):
    return descended(points, scheme, step_sizes=(1.0,), precision=precision)[-1]


def test_huge_offsets_leave_a_scheme_in_float32_as_good_as_in_float64():
    points = LEGAL["huge offsets"]
    costs = [final_cost(points, "pca_sphere", precision) for precision in ("float64", "float32")]
    assert costs[1] == pytest.approx(costs[0], rel=1e-6)  # measured: 1e-8


def test_entries_beyond_float32_are_told_and_a_scheme_that_rescales_helps():
    points = LEGAL["one feature"] * 1e100
    with pytest.raises(UserError, match=r"precision=float32: .* use precision=float64"):
        final_cost(points, "identity", "float32")
    assert final_cost(points, "standard", "float32") < np.log(2)
