"""Curvatures, sharpness, spectra, windows and critical steps of Hessians that are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from normbench import names
from normbench.measures.contract import WeightPath, spread_iterations
from normbench.measures.curvature import (
    ALL_EIGENVALUES,
    curvature,
    hessian,
    measure_curvature,
    sharpness,
    windows,
)
from normbench.measures.drawings import judge_formula
from normbench.measures.networks import weight_norms
from normbench.measures.points import spectrum
from normbench.measures.targets import critical
from normbench.optimizers import lbfgs
from normbench.verdicts.search import Critical
from tests.measures.test_closed_forms import finished

EPS = np.finfo(float).eps


def path_of(weights):
    """Return a path whose every iteration is kept."""
    return WeightPath(np.arange(len(weights)), weights, np.zeros(len(weights)))


@pytest.mark.parametrize(
    ("threshold", "first"), [(8.0, 4.0), (None, 0.15), (0.0, 0.15), (np.inf, 0.15)]
)
@pytest.mark.parametrize(
    ("lower", "upper", "censored"), [(1.0, 2.0, "false"), (3.0, None, "true"), (None, 2.0, "false")]
)
def test_the_critical_step_is_looked_for_from_half_of_a_threshold_that_there_is(
    monkeypatch, threshold, first, lower, upper, censored
):
    answers = []

    def look(fails, start, width):
        answers.append((fails([0.5, 2.0, 4.0]), start, width))
        return Critical(lower, upper, 9)

    def descend_finer(sizes):
        judgements = [SimpleNamespace(fails=size > 3) for size in sizes]
        return [SimpleNamespace(judgement=judgement) for judgement in judgements], "costs"

    monkeypatch.setattr("normbench.measures.targets.critical_step", look)
    descent = SimpleNamespace(
        descend_finer=descend_finer,
        theory=SimpleNamespace(threshold=threshold),
        settings=SimpleNamespace(step_sizes=(0.3, 0.7)),
        search=SimpleNamespace(critical=True, width=0.02),
    )
    found = critical.take(SimpleNamespace(descent=descent))
    assert answers == [([False, False, True], first, 0.02)]
    metrics = (names.CRITICAL, names.CRITICAL_UPPER, names.CRITICAL_DESCENTS)
    wanted = [np.nan if bound is None else bound for bound in (lower, upper)]
    told = [found.metrics[metric.key] for metric in metrics]
    assert told == pytest.approx([*wanted, 9], nan_ok=True)
    assert found.tags == {names.CENSORED_CRITICAL.key: censored}


class Curved:
    """A Hessian of given eigenvalues."""

    def __init__(self, *values):
        self.values, self.size = values, len(values)

    def matrix(self):
        return np.diag(np.array(self.values))


def test_the_condition_of_a_curvature_is_of_its_live_part(monkeypatch):
    nan = np.nan
    for values, told in (
        ((4.0, 2.0, -3.0), (4, -3, 2)),
        ((4.0, 1e-17, 8.0), (8, 1e-17, 2)),
        ((-1.0, -2.0), (-1, -2, nan)),
        ((4.0, nan, 2.0), (nan, nan, nan)),
    ):
        found = measure_curvature(Curved(*values))
        assert found == pytest.approx(told, nan_ok=True), values
    monkeypatch.setattr(Curved, "extremes", lambda hessian: (7.0, -1.0), raising=False)
    assert measure_curvature(Curved(*np.full(600, 3.0))) == (3, 3, 1)
    found = measure_curvature(Curved(*np.full(601, 3.0)))
    assert found == pytest.approx((7, -1, nan), nan_ok=True)


@pytest.mark.parametrize(("size", "is_dense"), [(600, True), (601, False)])
def test_curvatures_are_measured_at_25_iterations_and_series_have_the_finite_ones(size, is_dense):
    """The eigenvalues at iteration k are k - 50 and -60; the run stops being finite at 90."""
    descent = SimpleNamespace(
        settings=SimpleNamespace(records=100),
        train=SimpleNamespace(shape=(1, size), hessian=lambda w: Curved(w - 50, -60.0)),
        path=path_of(np.arange(90.0)),
    )
    found = curvature.take(SimpleNamespace(descent=descent))
    measured = [k for k in spread_iterations(100, 25).tolist() if k < 90]
    assert found.arrays["iteration"].tolist() == measured
    assert found.arrays["largest"].tolist() == [k - 50 for k in measured]
    assert found.arrays["smallest"].tolist() == [-60] * len(measured)
    above = [k for k in measured if k > 50]
    told = found.series[names.CURVATURE_CONDITION.key]
    assert (told[0].tolist(), told[1].tolist()) == (above, [1] * len(above))
    assert np.isnan(found.arrays["condition"]).sum() == len(measured) - len(above) > 0
    assert found.series[names.CURVATURE_LARGEST.key][0].tolist() == measured
    assert found.notes == (() if is_dense else (ALL_EIGENVALUES,))


def test_a_series_without_a_finite_number_is_left_out():
    descent = SimpleNamespace(
        settings=SimpleNamespace(records=0),
        train=SimpleNamespace(shape=(2,), hessian=lambda w: Curved(-1.0, -2.0)),
        path=path_of(np.zeros((1, 2))),
    )
    found = curvature.take(SimpleNamespace(descent=descent))
    assert {*found.series} == {names.CURVATURE_LARGEST.key, names.CURVATURE_SMALLEST.key}


@pytest.mark.parametrize(
    ("features", "classes", "size"),
    [(1999, 0, None), (2000, 0, 2001), (999, 2, None), (1000, 2, 2002), (499, 4, None)],
)
def test_a_hessian_is_decomposed_of_2000_weights_at_most(features, classes, size):
    x = np.broadcast_to(0.0, (3, features))
    assert hessian.suits(SimpleNamespace(x=x, classes=classes)) == (size is None)


def sharp_descent(records, **more):
    settings = SimpleNamespace(
        theory="auto", records=records, step_schedule=(2, 0.5), records_per_pass=1
    )
    train = SimpleNamespace(shape=(2, 4))
    optimizer = SimpleNamespace(gridless=False)
    return SimpleNamespace(settings=settings, train=train, optimizer=optimizer, **more)


@pytest.mark.parametrize("plain", [True, False])
def test_the_sharpness_is_half_of_the_step_times_the_curvature_where_there_is_one(
    monkeypatch, plain
):
    monkeypatch.setattr(
        "normbench.measures.curvature.stretched_iterations", lambda *of: np.array([0, 2, 3, 5])
    )
    monkeypatch.setattr(
        "normbench.measures.curvature.largest_curvature",
        lambda train, w: (None if w[0] == 2 else w[0] + 4, "why"),
    )

    descent = sharp_descent(5, plain=plain, best_step=SimpleNamespace(step_size=0.5))
    descent.path = path_of(np.arange(5.0)[:, None])
    found = sharpness.take(SimpleNamespace(descent=descent, z=range(9)))
    iteration, values = found.series[names.SHARPNESS.key]
    assert (iteration.tolist(), values.tolist()) == ([0, 3], [1.0, 1.75 / 2])  # by the schedule
    assert found.notes == (() if plain else (found.notes[0],))
    monkeypatch.setattr(
        "normbench.measures.curvature.largest_curvature", lambda train, w: (None, "why")
    )
    nothing = sharpness.take(SimpleNamespace(descent=descent, z=range(9)))
    assert (nothing.series, nothing.notes) == ({}, ())


def test_an_optimizer_that_finds_its_own_step_sizes_has_no_sharpness():
    """Its step size of 1 is a placeholder."""
    descent = SimpleNamespace(optimizer=lbfgs())
    found = sharpness.take(SimpleNamespace(descent=descent, z=range(9)))
    assert (found.series, found.notes) == (
        {},
        ("sharpness: the optimizer finds its own step sizes",),
    )


def test_dead_directions_of_a_spectrum_are_at_the_level_of_rounding(monkeypatch):
    before = np.array([4.0, 1.0, 17 * EPS, 15 * EPS])  # four of 4: below 16 eps
    monkeypatch.setattr(
        "normbench.measures.points.principal_directions", lambda rows: (np.sqrt(before), None)
    )
    made = finished(np.eye(2))
    for scheme, told in ((SimpleNamespace(ridge=0.5), 0.5), (object(), np.nan)):
        object.__setattr__(made, "scheme", scheme)
        found = spectrum.take(made).arrays
        assert found["dead"] == 1
        assert found["ridge"] == pytest.approx(told, nan_ok=True)


@pytest.mark.parametrize(
    ("most", "sets", "records", "measured"),
    [(200_000, 1, 600, 500), (40, 4, 600, 10), (40, 400, 600, 2), (40, 4, 9, 10)],
)
def test_norms_are_taken_at_so_many_iterations(monkeypatch, most, sets, records, measured):
    monkeypatch.setattr("normbench.measures.networks.MAX_NORMS", most)
    pairs = [(n % 3, np.array([0, n % 2])) for n in range(sets)]
    mlp = SimpleNamespace(scale_invariant_weights=lambda layout: pairs)
    model = SimpleNamespace(mlp=mlp, layout=lambda train: None)
    descent = SimpleNamespace(
        train=SimpleNamespace(model=model, linear=None),
        settings=SimpleNamespace(records=records, step_schedule=None, records_per_pass=1),
        best_step=SimpleNamespace(step_size=0.5),
        path=path_of(np.array([[3.0 + k, 4.0] for k in range(records + 1)])),
    )
    found = weight_norms.take(SimpleNamespace(descent=descent)).arrays
    wanted = spread_iterations(records, measured)
    assert found["iteration"].tolist() == wanted.tolist()
    assert found["layer"].tolist() == [n % 3 for n in range(sets)]
    lengths = found[names.WEIGHT_NORM.key]
    np.testing.assert_allclose(lengths[:, 0], np.sqrt(2) * (3.0 + wanted))  # twice the first
    np.testing.assert_allclose(found[names.EFFECTIVE_STEP.key], 0.5 / lengths**2)


@pytest.mark.parametrize("curved", [None, np.ones(0)])
def test_without_directions_there_are_no_windows(curved):
    directions = None if curved is None else SimpleNamespace(curvature=curved, multiplicity=1)
    descent = SimpleNamespace(at_start=SimpleNamespace(directions=directions), plain=True)
    descent.theory = SimpleNamespace(threshold=1.0)
    assert windows.take(SimpleNamespace(descent=descent)).arrays == {}


@pytest.mark.parametrize(("small", "rank"), [(500 * EPS, 1), (2000 * EPS, 2)])
def test_a_direction_of_rounding_is_promised_nothing(small, rank):
    """Of 1000 points the second feature is so much smaller than the first, at right angles."""
    first, second = np.tile([1.0, -1.0], 500), np.tile([1.0, 1.0, -1.0, -1.0], 250)
    x, y = np.column_stack([first, small * second]), first + second
    whole = [np.column_stack([first, kept_of_it * second]) for kept_of_it in (0.0, 1.0)]
    off = [judge_formula(lambda x, z=sphered: z, x, y, False)[2] for sphered in whole]
    assert off == pytest.approx([1, 0] if rank == 2 else [0, 1], abs=1e-12)
