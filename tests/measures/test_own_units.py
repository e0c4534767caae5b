"""Costs and errors in the own units of targets, against the same predictions made here."""

from types import SimpleNamespace

import numpy as np
import pytest

from normbench import names
from normbench.datasets.dataset import OwnTargets
from normbench.measures.judged import own_units

RNG = np.random.default_rng(5)
Z, Z_TEST = RNG.standard_normal((7, 2)), RNG.standard_normal((4, 2))
Y, Y_TEST = 50 + 3 * RNG.standard_normal(7), 50 + 3 * RNG.standard_normal(4)
WEIGHTS = RNG.standard_normal((6, 1, 3))  # of two step sizes, each from three starts
KEYS = [
    metric.key
    for metric in (names.OWN_COST, names.OWN_ERROR, names.OWN_TEST_COST, names.OWN_TEST_ERROR)
]


class Linear:
    """Scores of points, and the fourth powers of what they are off."""

    def scores(self, weights, points):
        return weights[:, :1] + weights[:, 1:] @ points.T

    def cost(self, scores, targets):
        return ((scores[:, 0] - targets) ** 4).sum(axis=1)


class Shifted:
    """A scheme of targets: less 50, over 3."""

    def inverse_transform(self, y):
        return 3 * y + 50


SCHEME = Shifted()


def finished(diverged_at=(-1,) * 6, z_test=Z_TEST, linear=True, scheme=SCHEME):
    descent = SimpleNamespace(
        start=WEIGHTS[:3],
        histories=SimpleNamespace(weights=WEIGHTS, diverged_at=np.array(diverged_at)),
        train=SimpleNamespace(linear=Linear() if linear else None),
    )
    own = None if scheme is None else OwnTargets(Y, Y_TEST, scheme)
    return SimpleNamespace(
        dataset=SimpleNamespace(own_targets=own), descent=descent, z=Z, z_test=z_test
    )


def told(job):
    found = own_units.take(job)
    assert not found.metrics
    return found.of_steps


def expected(step):
    """Return the medians over the starts of a step size, by their keys."""
    rows = []
    for weights in WEIGHTS[3 * step : 3 * step + 3, 0]:
        off = 50 + 3 * (weights[0] + Z @ weights[1:]) - Y
        off_test = 50 + 3 * (weights[0] + Z_TEST @ weights[1:]) - Y_TEST
        rows.append(
            [value for d in (off, off_test) for value in (np.mean(d**4), np.sqrt(np.mean(d**2)))]
        )
    return dict(zip(KEYS, np.median(rows, axis=0)))


def test_costs_and_errors_are_the_medians_over_the_starts_of_each_step_size():
    found = told(finished())
    assert [*found] == [0, 1]
    for step in (0, 1):
        assert found[step] == pytest.approx(expected(step), rel=1e-12)


@pytest.mark.parametrize(
    ("diverged_at", "steps"),
    [
        ((-1, -1, -1, -1, 7, -1), [0]),
        ((0, -1, -1, -1, -1, -1), [1]),
        ((3, 3, 3, -1, -1, -1), [1]),
        ((-1, -1, 9, 9, -1, -1), []),
    ],
)
def test_a_step_size_with_a_run_that_stopped_being_finite_has_none(diverged_at, steps):
    assert [*told(finished(diverged_at))] == steps


@pytest.mark.parametrize("z_test", [None, Z_TEST[:0]])
def test_without_test_points_those_of_training_are_told(z_test):
    found = told(finished(z_test=z_test))
    assert found[0] == pytest.approx({key: expected(0)[key] for key in KEYS[:2]}, rel=1e-12)
