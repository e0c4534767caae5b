"""What costs declare of themselves, against what they do."""

from itertools import pairwise

import numpy as np
import pytest

from normbench.costs.declaration import COST_TASKS, traits
from tests.cases import COSTS
from tests.cases import FEW_CASES as CASES

POINTS = 200


def drawn(classes, seed=0):
    """Return scores (1, C, P) and targets, real where there is one score and no class."""
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((1, classes, POINTS))
    targets = rng.integers(0, classes, POINTS) if classes > 1 else rng.choice([-1.0, 1.0], POINTS)
    return scores, targets, rng


def separating(targets, classes):
    """Return scores that leave no point misclassified, by a margin."""
    rng = np.random.default_rng(1)
    if classes == 1:
        return targets * rng.uniform(0.1, 1, (1, 1, POINTS))
    scores = rng.uniform(0, 1, (1, classes, POINTS))
    scores[0, targets, np.arange(POINTS)] = 1 + rng.uniform(0.1, 1, POINTS)
    return scores


def test_nothing_but_convexity_is_relied_on_in_a_cost_without_a_declaration():
    defaults = vars(traits(lambda scores, targets: scores.sum()))
    assert defaults.pop("tasks") == COST_TASKS
    assert defaults.pop("convex")
    assert not any(defaults.values())


@pytest.mark.parametrize(("name", "classes"), CASES)
def test_quadratic_means_that_third_differences_vanish(name, classes):
    cost = COSTS[name]
    scores, targets, rng = drawn(classes)
    step = rng.standard_normal(scores.shape)
    third = sum(sign * cost(scores + k * step, targets)[0] for k, sign in enumerate((-1, 3, -3, 1)))
    size = abs(cost(scores + 3 * step, targets)[0])
    assert traits(cost).quadratic == (abs(third) < 1e-10 * size)


@pytest.mark.parametrize(("name", "classes"), [case for case in CASES if case[1] > 1])
def test_shift_invariant_means_that_a_number_added_to_all_scores_changes_nothing(name, classes):
    cost = COSTS[name]
    scores, targets, rng = drawn(classes)
    moved = cost(scores + rng.standard_normal((1, 1, POINTS)), targets)[0]
    same = abs(moved - cost(scores, targets)[0]) < 1e-11 * moved
    assert traits(cost).shift_invariant == same


@pytest.mark.parametrize(("name", "classes"), CASES)
def test_positively_homogeneous_means_that_the_cost_scales_with_the_scores(name, classes):
    cost = COSTS[name]
    scores, targets, _ = drawn(classes)
    here = cost(scores, targets)[0]
    scaled = all(
        abs(cost(t * scores, targets)[0] - t * here) < 1e-11 * t * here for t in (1e-3, 0.5, 40.0)
    )
    assert traits(cost).positively_homogeneous == scaled


@pytest.mark.parametrize(("name", "classes"), CASES)
def test_separable_means_above_zero_everywhere_and_towards_zero_far_out(name, classes):
    cost = COSTS[name]
    scores, targets, _ = drawn(classes)
    right = separating(targets, classes)
    path = [cost(t * right, targets)[0] for t in (0.0, 1.0, 10.0, 100.0, 4000.0)]
    above = min(path[:4]) > 0 and cost(scores, targets)[0] > 0
    falls = all(later < before for before, later in pairwise(path))
    towards_zero = falls and path[-1] < 1e-9
    assert traits(cost).separable == (above and towards_zero)


@pytest.mark.parametrize(("name", "classes"), CASES)
def test_convex_means_that_a_cost_lies_below_its_chords(name, classes):
    cost = COSTS[name]
    for seed in range(20):
        one, targets, rng = drawn(classes, seed)
        other = one + 3 * rng.standard_normal(one.shape)
        below = cost((one + other) / 2, targets)[0]
        above = (cost(one, targets)[0] + cost(other, targets)[0]) / 2
        assert traits(cost).convex == (below <= above * (1 + 1e-12))
