"""Batches: their knee, the limit of a step size, and notes, of descents made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from normbench import names
from normbench.measures.batches import batches
from normbench.measures.curvature import BATCHES, MOVING, NETWORK_BATCHES, thresholds
from normbench.theory import batches as theory
from normbench.theory.analysis import Theory

RNG = np.random.default_rng(21)


def of_batches(**changed):
    """Return a job of least squares in batches, of which some things may be changed."""
    given = {"batch": 5, "linear": True, "l2": 0.0, "plain": True, "spectrum": True, **changed}
    x = RNG.standard_normal((40, 3)) + np.array([1.0, 0.0, -2.0])
    traits = SimpleNamespace(squares=given.get("squares", True), curvature=given.get("curvature"))
    shape = (given.get("scores", 1), 4)
    linear = SimpleNamespace(l2=given["l2"], traits=traits, shape=shape)
    linear.points, linear.targets = x, np.zeros(40)
    descent = SimpleNamespace(
        train=SimpleNamespace(linear=linear if given["linear"] else None),
        settings=SimpleNamespace(
            batch=given["batch"], batch_order=given.get("order", "shuffled"), theory="auto"
        ),
        optimizer=SimpleNamespace(plain=given["plain"]),
        theory=SimpleNamespace(
            spectrum=SimpleNamespace(largest=6.0) if given["spectrum"] else None
        ),
        judging_context=SimpleNamespace(minimum=0.25),
        steps=[],
    )
    return x, SimpleNamespace(descent=descent)


@pytest.mark.parametrize(("bound", "largest"), [(None, 6.0), (2.0, 3.0), (0.25, 24.0)])
def test_the_knee_is_the_mean_squared_length_over_the_largest_eigenvalue(bound, largest):
    x, job = of_batches(curvature=bound)
    length = 1 + (x**2).sum() / 40
    found = batches.take(job).metrics
    knee = length / largest
    assert found[names.KNEE.key] == pytest.approx(knee, rel=1e-12)
    assert found[names.BATCH_STEP.key] == pytest.approx(1 / largest * 5 / (knee + 4), rel=1e-12)


@pytest.mark.parametrize("changed", [{"squares": False}, {"scores": 3}])
def test_the_limit_of_a_batch_is_of_squares_of_one_score(changed):
    assert [*batches.take(of_batches(**changed)[1]).metrics] == [names.KNEE.key]


@pytest.mark.parametrize(
    "changed",
    [
        {"batch": None},
        {"linear": False},
        {"l2": 0.1},
        {"l2": np.array([0.0, 0.0, 0.1])},
        {"plain": False},
        {"spectrum": False},
    ],
)
def test_batches_have_theory_in_plain_descent_without_a_penalty(changed):
    assert batches.take(of_batches()[1]).metrics
    assert not batches.take(of_batches(**changed)[1]).metrics


@pytest.mark.parametrize(("order", "limit"), [("shuffled", 5.0), ("replacement", 3.0)])
def test_the_limit_is_that_of_the_order_and_floors_are_of_draws_with_replacement(
    monkeypatch, order, limit
):
    given = []

    def mean_square_steps(points, batch):
        given.append((points, batch))
        return 5.0, 3.0

    def noise_floor(*of):
        given.append(of)
        return {0.1: 0.7, 9.0: np.inf, 0.2: 0.9}[of[0]]

    monkeypatch.setattr(theory, "mean_square_steps", mean_square_steps)
    monkeypatch.setattr(theory, "noise_floor", noise_floor)
    x, made = of_batches(order=order)
    made.descent.steps = [SimpleNamespace(step_size=size) for size in (0.1, 9.0, 0.2)]
    found = batches.take(made)
    assert found.metrics[names.BATCH_STEP_EXACT.key] == limit
    floors = {number: one.metrics[names.NOISE_FLOOR.key] for number, one in found.of_steps.items()}
    assert floors == {0: 0.7, 2: 0.9}  # at the second step size the descent is not stable
    np.testing.assert_array_equal(given[0][0], np.column_stack([np.ones(40), x]))
    assert given[0][1] == 5
    trace = pytest.approx(1 + (x**2).sum() / 40)
    assert given[1:] == [(size, 0.25, trace, 5, 3.0) for size in (0.1, 9.0, 0.2)]


@pytest.mark.parametrize(
    ("changed", "notes", "tag"),
    [
        ({}, [BATCHES], "true"),
        ({"order": ""}, [], None),
        ({"plain": False}, [BATCHES], "false"),
        ({"linear": False}, [BATCHES], "true"),  # a convex cost of another model
        ({"linear": False, "convex": False}, [NETWORK_BATCHES], "true"),
        *(
            (
                {"statistics": kind},
                [BATCHES, MOVING.format(statistics=kind)],
                "true",
            )
            for kind in ("running", "window")
        ),
        ({"statistics": "batch"}, [BATCHES], "true"),
    ],
)
def test_notes_of_a_job_in_batches_say_what_a_step_sees(changed, notes, tag):
    given = {
        **{"order": "shuffled", "plain": True, "linear": True, "convex": True},
        **{"statistics": "fitted", **changed},
    }
    traits = SimpleNamespace(curvature=0.25)
    linear = SimpleNamespace(traits=traits)
    descent = SimpleNamespace(
        theory=Theory(),
        plain=False,
        train=SimpleNamespace(
            linear=linear if given["linear"] else None,
            convex=given["convex"],
        ),
        plan=SimpleNamespace(order=given["order"], batches=batches),
        optimizer=SimpleNamespace(note="", plain=given["plain"]),
        settings=SimpleNamespace(batch_order=given["order"], statistics=given["statistics"]),
    )
    found = thresholds.take(SimpleNamespace(descent=descent))
    assert [*found.notes] == notes
    assert found.tags.get(names.BATCHED.key) == tag
    assert found.tags[names.BASIS.key] == "none"
    assert found.metrics.get(names.COST_CURVATURE.key) == (0.25 if given["linear"] else None)
    unknown = [found.metrics[metric.key] for metric in (names.LIPSCHITZ, names.THRESHOLD)]
    assert np.isnan(unknown).all()
    assert names.LIPSCHITZ_START.key not in found.metrics
