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
from normbench.engine.settings import Settings
from normbench.job import Job, PointsCaches, run
from normbench.measures.contract import JudgedDescent
from normbench.optimizers import gradient_descent
from normbench.verdicts import search

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


def finer_numbers(found):
    """Return the lattice numbers of the finer step sizes, and the targets that they are of."""
    record = json.loads(found.findings.tags[names.REFINED.key])
    return set(record["numbers"]), record["targets"]


def test_coarse_step_sizes_and_then_fine_ones_lie_around_the_best():
    numbers, refined = finer_numbers(settled())
    assert refined == ["1e-2"]
    best = search.lattice_number(told(settled(refine=False))[1])
    coarse = {*search.coarse_numbers(10 ** (best / 16))}
    fine = {*range(min(numbers - coarse), max(numbers - coarse) + 1)}
    grid = {round(16 * np.log10(size)) for size in DECADES}
    assert numbers == (coarse | fine) - grid
    assert len(fine) <= 2 * search.FINE_RADIUS + 1
    centre = told(settled())[1]
    assert min(fine) - 1 <= search.lattice_number(centre) <= max(fine) + 1


@pytest.mark.parametrize(
    ("refine", "sizes", "refined"),
    [
        ("auto", [1e-5, 1e-4], ["1e-1", "1e-2"]),  # a grid that misses both
        ("auto", DECADES, ["1e-2"]),
        (True, DECADES, ["1e-1", "1e-2", "1e-3"]),
    ],
)
def test_the_reported_targets_are_refined_or_all(refine, sizes, refined):
    found = outcome(sizes, refine=refine)
    assert finer_numbers(found)[1] == refined


def test_a_target_that_a_large_grid_misses_is_not_refined(monkeypatch):
    monkeypatch.setattr("normbench.measures.targets.MAX_SMALL_PRODUCTS", 150 * 15 * 2 * 100 - 1)
    assert names.REFINED.key not in outcome([1e-5, 1e-4]).findings.tags
    assert names.REFINED.key in outcome([1e-5]).findings.tags
    assert names.REFINED.key in outcome([1.0, 10.0]).findings.tags  # which reaches it


def test_where_no_coarse_step_size_reaches_a_target_there_are_no_fine_ones():
    found = outcome([1e-6], iterations=5)
    numbers, refined = finer_numbers(found)
    assert refined == ["1e-1", "1e-2"]
    assert numbers == {*search.coarse_numbers(1e-6)} - {-96}
    assert np.isnan(told(found)).all()


def test_finer_step_sizes_are_two_descents_for_all_targets(monkeypatch):
    descend, sizes = JudgedDescent.descend_finer, []
    monkeypatch.setattr(
        JudgedDescent, "descend_finer", lambda *of: sizes.append(of[1]) or descend(*of)
    )
    outcome(DECADES, refine=True)
    assert len(sizes) == 2
    assert len({*sizes[0], *sizes[1], *DECADES}) == len(sizes[0]) + len(sizes[1]) + len(DECADES)
