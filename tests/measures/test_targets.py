"""Iterations to a target are those of step sizes between the grid's, whatever the grid's offset."""

import json
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_iris

from normbench import names
from normbench.choices import build, options
from normbench.costs import multiclass_softmax, softmax
from normbench.datasets import make_dataset
from normbench.engine import rounds
from normbench.engine.settings import Settings
from normbench.job import Job, PointsCaches, run
from normbench.measures import targets
from normbench.optimizers import gradient_descent
from normbench.verdicts import refinement

SHARED = PointsCaches()  # the least cost, which takes most of a job, is solved for once a scheme


def outcome(sizes, scheme="standard", **more):
    data = load_iris()
    dataset = make_dataset("iris", data.data, data.target, class_names=[*"abc"], source="-")
    settings = Settings(tuple(sizes), theory="auto", **more)
    normalizer = build("normalizer", options("normalizer", scheme))
    job = Job(dataset, multiclass_softmax, normalizer, gradient_descent(), settings)
    return run(job, shared=SHARED)


@cache
def settled(factor=1.0, scheme="standard", **more):
    """Return the outcome of a job on decades times a factor, the same for all tests."""
    return outcome(DECADES * factor, scheme, **more)


def told(found, target="1e-2"):
    metrics = (names.reached(target), names.best_step_for_target(target), names.least(target))
    return [found.findings.metrics[metric.key] for metric in metrics]


DECADES = 10.0 ** np.arange(-3.0, 3.0)


@pytest.mark.slow
def test_the_number_does_not_depend_on_the_offset_of_the_grid():
    factors = [10.0 ** (offset / 16) for offset in range(0, 16, 5)]
    numbers = [told(settled(factor, refine=True))[0] for factor in factors]
    assert len(set(numbers)) == 1, numbers
    coarse = [told(settled(factor, refine=False))[0] for factor in factors]
    assert len(set(coarse)) > 2  # and without them it does


@pytest.mark.parametrize("scheme", ["standard", "pca_sphere"])
def test_what_is_reported_first_is_refined_where_the_grid_misses_it(scheme):
    one, other = (told(settled(factor, scheme)) for factor in (1.0, 10.0**0.5))
    assert one[0] == other[0]


def test_a_number_is_borne_out_by_a_descent_at_its_step_size():
    iterations, size, least = told(settled(refine=True))
    alone = outcome([size], refine=False)
    assert told(alone)[0] <= iterations  # the number is a median of neighbours
    assert least < iterations


def test_the_record_holds_what_was_tried():
    found = outcome(DECADES, refine=True, shadows=False)
    record = json.loads(found.findings.tags[names.REFINED.key])
    arrays = found.arrays[names.DESCENT_ARRAYS]
    assert record["targets"] == sorted(names.TARGETS)
    assert len(record["numbers"]) == len(arrays["refined_step_sizes"])
    assert arrays["refined_cost"].shape == (len(record["numbers"]), 1, 101)
    np.testing.assert_allclose(16 * np.log10(arrays["refined_step_sizes"]), record["numbers"])
    goal = found.findings.metrics[names.target("1e-2").key]
    for cost, count in zip(arrays["refined_cost"][:, 0], record["1e-2"]):
        above = np.flatnonzero(~(cost <= goal))
        first = above[-1] + 1 if len(above) else 0
        assert count == (first if first < len(cost) else None)


@pytest.mark.parametrize("scheme", ["identity", "pca_sphere"])
def test_auto_costs_no_more_than_the_grid(scheme, monkeypatch):
    made = []
    own = rounds.descend

    def counted(*parts, **more):
        histories = own(*parts, **more)
        made.append(np.isfinite(histories.cost[:, 1:]).sum())
        return histories

    monkeypatch.setattr(rounds, "descend", counted)
    monkeypatch.setattr(targets, "FREE_PRODUCTS", 0)
    outcome(DECADES, scheme)
    assert sum(made[1:]) <= made[0]


def test_a_small_problem_is_refined_however_few_its_step_sizes(monkeypatch):
    assert names.REFINED.key in outcome([0.1, 1.0, 10.0]).findings.tags
    monkeypatch.setattr(targets, "FREE_PRODUCTS", 0)
    assert names.REFINED.key not in outcome([0.1, 1.0, 10.0]).findings.tags


@pytest.mark.parametrize(("scheme", "starts"), [("robust", 1), ("pca_sphere", 3)])
def test_runs_that_leave_change_no_number(scheme, starts, monkeypatch):
    more = {"refine": True, "starts": starts, "start": "normal"}
    quick = outcome(DECADES, scheme, **more)
    leave = refinement.EndLateNeighbours.__call__

    def stay(self, k, alive, costs):
        return leave(self, k, alive, costs) & False

    monkeypatch.setattr(refinement.EndLateNeighbours, "__call__", stay)
    whole = outcome(DECADES, scheme, **more)
    tried = [
        len(found.arrays[names.DESCENT_ARRAYS]["refined_step_sizes"]) for found in (quick, whole)
    ]
    assert tried[0] < tried[1]
    for target in names.TARGETS:
        assert told(quick, target) == pytest.approx(told(whole, target), nan_ok=True)


def test_a_scheme_is_not_tried_further_where_no_step_size_could_reach_the_target(monkeypatch):
    steps = 1e-3 * 0.999 ** np.arange(101) + 1.0
    assert refinement.cannot_reach(steps, 1.0, 1.0 + 1e-5)
    assert not refinement.cannot_reach(steps, 1.0, 1.0 + 9e-4)
    assert not refinement.cannot_reach(steps[::-1], 1.0, 1.0)  # it rises: a smaller step may


def test_a_cost_whose_descent_grows_faster_on_its_way_is_tried_further():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 1))
    y = np.array([0, 1])[(x[:, 0] + 0.5 * rng.standard_normal(40) > 0).astype(int)]
    dataset = make_dataset("one", x, y, class_names=["a", "b"], source="-")
    sizes = tuple(10.0 ** (np.arange(-8.0, 0.0) - 0.25))
    settings = Settings(sizes, refine=True, start=(0.0, -20.0))
    normalizer = build("normalizer", options("normalizer", "standard"))
    found = run(Job(dataset, softmax, normalizer, gradient_descent(), settings))
    assert all(np.isnan(step.metrics[names.reached("1e-1").key]) for step in found.steps)
    assert np.isfinite(told(found, "1e-1")[0])


def test_the_grid_stays_what_was_asked():
    found = outcome(DECADES, refine=True)
    assert [step.step_size for step in found.steps] == list(DECADES)
    alone = outcome(DECADES, refine=False)
    for one, other in zip(found.steps, alone.steps):
        assert np.array_equal(one.histories["train/cost"], other.histories["train/cost"])
    assert names.REFINED.key not in alone.findings.tags
