"""Who knows what of a Problem: traits and parts decide, and surrogates are no points."""

import ast

import numpy as np
import pytest

from normbench import costs
from normbench.engine.problem import Objective
from normbench.normalizers.decomposition import Surrogate, mean_and_covariance
from tests.test_rooms import TEXTS, imported, room_of

IMPLEMENTATIONS = {"Objective", "Blocked", "Triangle"}
# Second-order statistics, and what is affine in the points, under a surrogate of theirs.
SECOND_ORDER = {
    "normbench.engine.fast.triangle",
    "normbench.engine.scheme.sparse",
    "normbench.engine.scheme.under",
    "normbench.job",
    "normbench.normalizers.decomposition",
}
ROOMS = {"theory", "measures"}


def trees():
    for name, file in TEXTS.items():
        yield name, ast.parse(file.read_text())


@pytest.mark.commands
def test_nobody_outside_the_engine_knows_a_problems_class():
    knowing = {
        name
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("normbench.engine")
        and IMPLEMENTATIONS & {alias.name for alias in node.names}
    }
    outside = {name for name in knowing if not room_of(name).startswith("engine")}
    assert not outside
    assert any(list(imported(TEXTS[name])) for name in knowing)


def test_a_surrogates_rows_are_read_by_statistics_alone():
    reading = {
        name
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "moment_rows"
    }
    assert reading
    assert {name for name in reading if room_of(name) not in ROOMS} == SECOND_ORDER


def test_a_surrogate_is_no_points():
    rng = np.random.default_rng(0)
    surrogate = Surrogate(rng.standard_normal((9, 4)))
    with pytest.raises((TypeError, AttributeError)):
        Objective(costs.softmax, surrogate, np.ones(9), True).evaluate(np.zeros((1, 1, 5)))
    with pytest.raises(TypeError):
        surrogate[:3]


def test_a_surrogate_has_the_moments_of_its_rows():
    rows = np.random.default_rng(1).standard_normal((9, 4)) + 3
    mean, covariance = mean_and_covariance(rows)
    surrogate, turn = Surrogate(rows), np.arange(8.0).reshape(2, 4)
    np.testing.assert_allclose(surrogate.mean, mean, rtol=1e-14)
    np.testing.assert_allclose(surrogate.variances, np.diag(covariance), rtol=1e-13)
    np.testing.assert_allclose(surrogate.mapped(turn).mean, turn @ mean, rtol=1e-13)
    some = np.array([3, 1])
    np.testing.assert_allclose(surrogate.features(some).mean, surrogate.mean[some], rtol=1e-14)
