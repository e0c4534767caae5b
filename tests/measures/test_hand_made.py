"""Measures of descents that are made by hand: their bounds, their reasons, what they ask for."""

from types import SimpleNamespace

import numpy as np
import pytest

from normbench import costs, names, optimizers
from normbench.datasets.bundled import breast_cancer
from normbench.engine.batches import CYCLIC
from normbench.engine.descent import Histories
from normbench.engine.rounds import Rounds
from normbench.engine.settings import Settings
from normbench.job import run
from normbench.measures import (
    batch_limits,
    batches,
    biplot,
    by_layer,
    components,
    covariance,
    critical_step,
    curvature,
    exemplars,
    formulas,
    hessian,
    histories,
    inputs,
    judged,
    layers,
    least_cost,
    parts,
    path,
    predictions,
    ridge,
    sharpness,
    spectrum,
    targets,
    thresholds,
    weight_norms,
    windows,
    windows_at_best,
)
from normbench.measures.contract import JudgedDescent
from normbench.measures.judged import judge_descent
from normbench.models import Mlp
from normbench.names import ATTAINED
from normbench.normalizers.decomposition import Surrogate
from normbench.theory import batches as theory
from normbench.theory import shared, spectra
from normbench.theory.analysis import Theory
from normbench.theory.budget import Work
from normbench.verdicts.convergence import Rules
from normbench.verdicts.convergence import targets as goals_between
from normbench.verdicts.refinement import Fewest
from normbench.verdicts.search import Critical, Search
from tests.measures.test_closed_forms import finished
from tests.measures.test_layers import job as layered
from tests.measures.test_layers import kept
from tests.measures.test_measures import Bowl, data, job
from tests.measures.test_network_measures import outcome

__all__ = ["data"]  # a fixture

RNG = np.random.default_rng(21)
EPS = np.finfo(float).eps


def of_batches(**changed):
    """Return a job of least squares in batches, of which some things may be changed."""
    given = {"batch": 5, "linear": True, "l2": 0.0, "plain": True, "spectrum": True, **changed}
    x = RNG.standard_normal((40, 3)) + np.array([1.0, 0.0, -2.0])
    traits = SimpleNamespace(squares=given.get("squares", True), curvature=given.get("curvature"))
    shape = (given.get("scores", 1), 4)
    linear = SimpleNamespace(l2=given["l2"], surrogate=Surrogate(x), traits=traits, shape=shape)
    linear.points, linear.targets = x, np.zeros(40)
    descent = SimpleNamespace(
        train=SimpleNamespace(linear=linear if given["linear"] else None),
        settings=SimpleNamespace(batch=given["batch"], batch_order=given.get("order", "shuffled")),
        optimizer=SimpleNamespace(plain=given["plain"]),
        theory=SimpleNamespace(
            spectrum=SimpleNamespace(largest=6.0) if given["spectrum"] else None
        ),
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
    assert not batch_limits.MEASURE.applies(of_batches(**changed)[1])


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
    for measure in (batches.MEASURE, batch_limits.MEASURE):
        assert measure.applies(of_batches()[1])
        assert not measure.applies(of_batches(**changed)[1])


def test_the_exact_limit_is_of_few_weights_and_of_points_in_memory():
    def has(width, points):
        return batch_limits._has_exact_limit(SimpleNamespace(shape=(1, width), points=points))

    points = np.ones((2, 2))
    assert has(61, points)
    assert not has(62, points)
    assert not has(61, points.astype(np.float32))
    assert not has(61, "a file")


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
    made.descent.bench = SimpleNamespace(minimum=0.25)
    made.descent.steps = [SimpleNamespace(step_size=size) for size in (0.1, 9.0, 0.2)]
    found = batch_limits.take(made)
    assert found.metrics == {names.BATCH_STEP_EXACT.key: limit}
    floors = {number: one.metrics[names.NOISE_FLOOR.key] for number, one in found.of_steps.items()}
    assert floors == {0: 0.7, 2: 0.9}  # at the second step size the descent is not stable
    np.testing.assert_array_equal(given[0][0], np.column_stack([np.ones(40), x]))
    assert given[0][1] == 5
    trace = pytest.approx(1 + (x**2).sum() / 40)
    assert given[1:] == [(size, 0.25, trace, 5, 3.0) for size in (0.1, 9.0, 0.2)]


COUPLED = np.array([[2.0, 0.3, 1.0], [0.3, 1.0, -1.0], [1.0, -1.0, 3.0]])


class Quadratic:
    """A network of two layers, of two weights and of one, with two running statistics."""

    layout = SimpleNamespace(
        groups=[SimpleNamespace(layer=n, size=size) for n, size in ((0, 2), (1, 1), (1, 2))],
        trained=3,
    )

    def evaluate(self, weights):
        gradient = np.column_stack([weights[:, :3] @ COUPLED, np.zeros((len(weights), 2))])
        return SimpleNamespace(gradient=gradient)


def test_a_layers_cosine_is_between_its_gradients_before_and_after_the_others_moved():
    network = Quadratic()
    assert by_layer.find_owners(network).tolist() == [0, 0, 1, -1, -1]
    before, after = np.array([1.0, 2.0, 3.0, 0, 0]), np.array([3.0, -1.0, 0.5, 9, 9])
    first = COUPLED @ before[:3]
    others = [COUPLED @ [1.0, 2.0, 0.5], COUPLED @ [3.0, -1.0, 3.0]]
    wanted = [
        first[:2] @ others[0][:2] / np.linalg.norm(first[:2]) / np.linalg.norm(others[0][:2]),
        np.sign(first[2] * others[1][2]),
    ]
    assert by_layer.measure_cosines(network, before, after) == pytest.approx(wanted)
    assert np.isnan(by_layer.measure_cosines(network, np.zeros(5), after)).all()


@pytest.mark.parametrize(("records", "measured"), [(9, 10), (59, 60), (900, 60)])
def test_the_work_by_layer_of_no_network_has_no_cosines(monkeypatch, records, measured):
    monkeypatch.setattr(by_layer, "network_of", lambda train: None)
    settings = SimpleNamespace(iterations=records, records=records)
    made = SimpleNamespace(descent=SimpleNamespace(settings=settings, train=None))
    assert by_layer.MEASURE.work(made) == Work(records + 4 * measured)


def test_of_many_coordinates_so_many_are_counted_and_the_last_are_all():
    x = np.random.default_rng(2).standard_normal((80, 70)) * np.linspace(1, 3, 70)
    found = components.MEASURE.take(finished(x)).arrays
    assert found["count"].tolist() == sorted({0, *(round(70 ** (n / 23)) for n in range(24))})
    variances = np.sort(x.var(axis=0))[::-1]
    shares = np.concatenate([[0.0], np.cumsum(variances)]) / variances.sum()
    assert found["share"] == pytest.approx(shares[found["count"]])
    # Each feature is a coordinate, and those of the largest variance come first.
    order = np.argsort(-x.var(axis=0))
    for count, built in zip(found["count"], found["built"]):
        wanted = np.zeros(70)
        wanted[order[:count]] = x[0, order[:count]]
        np.testing.assert_allclose(built, wanted, rtol=1e-6)


def test_a_component_that_adds_nothing_is_0():
    class Forgetful:
        def inverse_transform(self, z):
            return z @ np.diag([2.0, 0.0])

    x = RNG.standard_normal((9, 2))
    made = finished(x)
    object.__setattr__(made, "scheme", Forgetful())
    found = components.MEASURE.take(made).arrays
    assert found["components"].tolist() == [[1, 0], [0, 0]]
    assert found["weights"] == pytest.approx([2 * x[0, 0], 0])


@pytest.mark.parametrize(
    ("measure", "features", "applies"),
    [
        (covariance, spectra.MAX_SPECTRUM_FEATURES - 1, True),
        (covariance, spectra.MAX_SPECTRUM_FEATURES, False),
        (parts, spectra.MAX_SPECTRUM_FEATURES, True),
        (parts, spectra.MAX_SPECTRUM_FEATURES + 1, False),
    ],
)
def test_what_takes_a_matrix_of_the_features_is_of_so_many(measure, features, applies):
    dataset = SimpleNamespace(x=np.broadcast_to(0.0, (3, features)))
    descent = SimpleNamespace(theory=SimpleNamespace(may_grow=True))
    made = SimpleNamespace(dataset=dataset, descent=descent)
    assert measure.MEASURE.applies(made) == applies
    descent.theory.may_grow = False
    assert measure.MEASURE.applies(made) == (applies and measure is parts)


@pytest.mark.parametrize(
    ("threshold", "first"), [(8.0, 4.0), (None, 0.15), (0.0, 0.15), (np.inf, 0.15)]
)
@pytest.mark.parametrize(
    ("lower", "upper", "censored"), [(1.0, 2.0, "false"), (3.0, None, "true"), (None, 2.0, "false")]
)
def test_the_critical_step_is_looked_for_from_half_of_a_threshold_that_there_is(
    monkeypatch, threshold, first, lower, upper, censored
):
    """Of two starts, judged together: each step size fails here by the first cost of the second."""
    answers = []

    def look(fails, start, width):
        answers.append((fails([0.5, 2.0, 4.0]), start, width))
        return Critical(lower, upper, 9)

    def judge(costs_of_step, diverged_at, size):
        assert costs_of_step.shape == (2, 3)
        assert diverged_at.tolist() == [int(10 * size), int(10 * size) + 1]
        return SimpleNamespace(fails=bool(costs_of_step[1, 0] > 3)), ("word", "word")

    def descend_runs(sizes, start):
        assert len(start) == 2
        cost = np.arange(6.0)[:, None] + np.zeros(3)
        diverged_at = [int(10 * size) + n for size in sizes for n in (0, 1)]
        return SimpleNamespace(cost=cost, diverged_at=np.array(diverged_at))

    monkeypatch.setattr(critical_step, "critical_step", look)
    descent = SimpleNamespace(
        descend_runs=descend_runs,
        start=np.zeros((2, 1, 3)),
        bench=SimpleNamespace(judge_starts=judge),
        theory=SimpleNamespace(threshold=threshold),
        settings=SimpleNamespace(step_sizes=(0.3, 0.7)),
        search=SimpleNamespace(width=0.02),
    )
    found = critical_step.take(SimpleNamespace(descent=descent))
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
        found = curvature.measure_curvature(Curved(*values))
        assert found == pytest.approx(told, nan_ok=True), values
    monkeypatch.setattr(curvature, "extreme_curvatures", lambda hessian: (7.0, -1.0))
    assert curvature.measure_curvature(Curved(*np.full(600, 3.0))) == (3, 3, 1)
    found = curvature.measure_curvature(Curved(*np.full(601, 3.0)))
    assert found == pytest.approx((7, -1, nan), nan_ok=True)


@pytest.mark.parametrize(("size", "is_dense"), [(600, True), (601, False)])
def test_curvatures_are_measured_at_25_iterations_and_series_have_the_finite_ones(size, is_dense):
    """The eigenvalues at iteration k are k - 50 and -60; the run stops being finite at 90."""

    def descend_runs(sizes, start, observe):
        assert (sizes, len(start)) == ([0.5], 1)
        for k in range(101):
            observe(k, np.arange(k < 90), np.full((int(k < 90), 1, 2), float(k)))

    descent = SimpleNamespace(
        settings=SimpleNamespace(records=100),
        train=SimpleNamespace(shape=(1, size), hessian=lambda w: Curved(w[0, 0] - 50, -60.0)),
        best_step=SimpleNamespace(step_size=0.5),
        start=np.zeros((3, 1, 2)),
        descend_runs=descend_runs,
    )
    found = curvature.take(SimpleNamespace(descent=descent))
    measured = [k for k in inputs.spread_iterations(100, 25).tolist() if k < 90]
    assert found.arrays["iteration"].tolist() == measured
    assert found.arrays["largest"].tolist() == [k - 50 for k in measured]
    assert found.arrays["smallest"].tolist() == [-60] * len(measured)
    above = [k for k in measured if k > 50]
    told = found.series[names.CURVATURE_CONDITION.key]
    assert (told[0].tolist(), told[1].tolist()) == (above, [1] * len(above))
    assert np.isnan(found.arrays["condition"]).sum() == len(measured) - len(above) > 0
    assert found.series[names.CURVATURE_LARGEST.key][0].tolist() == measured
    assert found.notes == (() if is_dense else (curvature.ALL_EIGENVALUES,))


def test_a_series_without_a_finite_number_is_left_out():
    descent = SimpleNamespace(
        settings=SimpleNamespace(records=0),
        train=SimpleNamespace(shape=(2,), hessian=lambda w: Curved(-1.0, -2.0)),
        best_step=SimpleNamespace(step_size=0.5),
        start=np.zeros((1, 2)),
        descend_runs=lambda sizes, start, observe: observe(0, np.arange(1), np.zeros((1, 2))),
    )
    found = curvature.take(SimpleNamespace(descent=descent))
    assert {*found.series} == {names.CURVATURE_LARGEST.key, names.CURVATURE_SMALLEST.key}


def test_each_exemplar_is_the_nearest_point_in_standard_deviations_that_is_left():
    x = np.random.default_rng(6).standard_normal((60, 2)) * [100.0, 0.1]
    found = exemplars.MEASURE.take(finished(x)).arrays
    left = list(range(60))
    for wanted, place in zip(found["wanted"], found["place"]):
        away = [np.sum(((x[n] - wanted) / x.std(axis=0)) ** 2) for n in left]
        assert left.pop(int(np.argmin(away))) == place


@pytest.mark.parametrize(
    ("points", "features", "fits"), [(25, 2, True), (24, 2, False), (25, 1, False)]
)
def test_exemplars_are_of_25_points_and_of_two_features_at_least(points, features, fits):
    dataset = SimpleNamespace(x=np.zeros((points, features)), name="made")
    told = exemplars.MEASURE.unfit(dataset)
    words = f"takes 25 points of 2 features at least; made has {points} of {features}"
    assert told == ("" if fits else words)


def test_a_descent_that_does_not_arrive_takes_as_many_iterations_as_are_made():
    z = np.tile([1e-3, -1e-3], 10)[:, None]
    y = 1e3 * z[:, 0]
    # Beside the bias, of curvature 1, a step leaves all but a millionth of what y lacks.
    assert formulas._iterations(z, y, float(np.sum(y**2))) == 1000
    assert formulas._iterations(1e3 * z, y, float(np.sum(y**2))) == 1


@pytest.mark.parametrize(
    ("features", "classes", "size"),
    [(1999, 0, None), (2000, 0, 2001), (999, 2, None), (1000, 2, 2002), (499, 4, None)],
)
def test_a_hessian_is_decomposed_of_2000_weights_at_most(features, classes, size):
    x = np.broadcast_to(0.0, (3, features))
    told = hessian.MEASURE.unfit(SimpleNamespace(x=x, classes=classes, name="made"))
    assert told == (
        f"made has up to {size} weights, and a matrix of more than 2000 takes minutes"
        if size
        else ""
    )


@pytest.mark.parametrize(
    ("size", "options", "seconds", "batch"),
    [
        (0.1, {}, 12 / 2, 0),
        (0.1, {"batch": 4, "records_per_pass": 3}, 12 * 3 / 6, 4),
        (1e300, {}, 12.0, 0),  # no step was made
    ],
)
def test_the_seconds_of_a_step_are_those_of_a_pass(data, size, options, seconds, batch):
    settings = Settings(step_sizes=(size,), iterations=2, **options)
    train, start = Bowl(), np.ones((1, 2, 3))
    rule = optimizers.gradient_descent()
    rounds = Rounds(train, None, start, lambda weights: weights, rule, settings.records, True)
    given = (settings, Rules(), Search(), start, rounds, rounds.descend([size]))
    here, _ = judge_descent(train, rule, *given, shared.PointsCache(data.x), (3.0, 12.0))
    assert here.bench.seconds_a_step == seconds
    assert here.bench.fit_seconds == 3
    assert (here.bench.batch, here.bench.points) == (batch, 0)
    assert here.bench.reference == 0  # the cost at zero weights


def layered_descent(**changed):
    given = {
        **{"gridless": False, "iterations": 5, "convex": True, "linear": "scores"},
        **{"threshold": 0.5, "curvature": np.ones(2), "indefinite": False, **changed},
    }
    directions = SimpleNamespace(curvature=given["curvature"], indefinite=given["indefinite"])
    return SimpleNamespace(
        optimizer=SimpleNamespace(gridless=given["gridless"]),
        settings=SimpleNamespace(iterations=given["iterations"]),
        train=SimpleNamespace(convex=given["convex"], linear=given["linear"]),
        theory=SimpleNamespace(threshold=given["threshold"]),
        at_start=SimpleNamespace(
            directions=None if given["curvature"] is None else directions,
            work=lambda points: Work(9.0, 9.0),
        ),
    )


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, ""),
        ({"gridless": True}, layers.NO_STEP_SIZES),
        ({"iterations": 0}, layers.NO_ITERATIONS),
        ({"convex": False}, layers.NOT_CONVEX),
        ({"convex": False, "linear": None}, layers.NOT_LINEAR),
        ({"threshold": None}, layers.NO_START_CURVATURE),
        ({"curvature": None}, layers.TOO_MANY_WEIGHTS),
        ({"curvature": np.ones(0)}, layers.NO_START_CURVATURE),
        ({"indefinite": True}, layers.NOT_CONVEX),
    ],
)
def test_a_descent_without_layers_has_a_reason(changed, reason):
    assert layers.reason_against(layered_descent(**changed)) == reason


@pytest.mark.parametrize("changed", [{"gridless": True}, {"threshold": None}, {"convex": False}])
def test_where_there_are_no_layers_there_is_no_work(changed):
    made = SimpleNamespace(descent=layered_descent(**changed), z=range(3))
    assert layers.MEASURE.work(made) == Work()


def test_layers_of_several_starts_are_those_of_the_first():
    parts_of = kept(layered(breast_cancer(), costs.softmax, starts=2, start="normal"))
    best = np.flatnonzero(parts_of["step_sizes"] == parts_of["layer_step"])[0]
    np.testing.assert_allclose(parts_of["layer_ends"][best], parts_of["layer_path"][-1], atol=1e-6)


@pytest.mark.parametrize(("most", "sizes"), [(1, [1] * 5), (24, [2, 2, 1]), (10**9, [5])])
def test_layers_are_measured_of_so_many_weights_at_a_time(monkeypatch, most, sizes):
    """Three scores of four points: 12 numbers for each of five models."""
    evaluated = []
    weights = RNG.standard_normal((5, 3, 2))

    def evaluate(models):
        evaluated.append(len(models))
        return SimpleNamespace(gradient=models)

    directions = SimpleNamespace(
        along=lambda gradient: gradient[:, 0] ** 2, curvature=np.array([4.0, 0.5])
    )
    descent = SimpleNamespace(
        train=SimpleNamespace(shape=(3, 2), evaluate=evaluate),
        at_start=SimpleNamespace(directions=directions),
    )
    monkeypatch.setattr(layers, "MAX_SCORES", most)
    found = layers._measure_layers(SimpleNamespace(descent=descent, z=range(4)), weights)
    np.testing.assert_allclose(found, weights[:, 0] ** 2 / [8.0, 1.0])
    assert evaluated == sizes


def test_a_ridge_is_told_of_a_scheme_that_has_one():
    values = np.array([3.0, 1.0, 0.0])
    for scheme in (
        SimpleNamespace(),
        SimpleNamespace(ridge=0.1),
        SimpleNamespace(eigenvalues_=values),
        SimpleNamespace(ridge="auto", eigenvalues_=values),
        SimpleNamespace(ridge=0.1, eigenvalues_=values, dropped_=[True] * 3),
    ):
        assert not ridge.take(SimpleNamespace(scheme=scheme)).metrics
    flat = SimpleNamespace(ridge=0.5, eigenvalues_=np.zeros(2))
    found = ridge.take(SimpleNamespace(scheme=flat))
    assert np.isnan(found.metrics[names.RIDGE_SHARE.key])
    kept_two = SimpleNamespace(ridge=1, eigenvalues_=values, dropped_=[False, False, True])
    found = ridge.take(SimpleNamespace(scheme=kept_two))
    assert found.metrics[names.LIVE_DIRECTIONS.key] == 2
    assert found.metrics[names.RIDGE_SMALLEST.key] == 1 / (1 + 1)
    assert found.metrics[names.RIDGE_TOUCHED.key] == 2
    assert found.metrics[names.RIDGE_SHARE.key] == pytest.approx(1 / 3)
    np.testing.assert_allclose(found.series[names.RIDGE_VARIANCE.key][1], [3 / 4, 1 / 2])


def sharp_descent(records, **more):
    settings = SimpleNamespace(
        **{"iterations": 50, "step_sizes": (1, 2, 3), "starts": 2, "theory": "auto"},
        records=records,
    )
    train = SimpleNamespace(shape=(2, 4), effort=SimpleNamespace(largest=10.0))
    return SimpleNamespace(settings=settings, train=train, **more)


@pytest.mark.parametrize(
    ("records", "allowed", "stretches"),
    [
        (29, 300.0, None),  # ten stretches of three iterations, each of ten passes
        (30, 300.0, 10),
        (30, 329.0, 10),
        (32, 330.0, None),
        (20, 0.0, None),  # seven at least
        (21, 0.0, 7),
        (1000, 0.0, 7),
        (1000, 600.0, 20),
    ],
)
def test_the_sharpness_is_taken_at_as_many_stretches_of_three_as_are_allowed(
    monkeypatch, records, allowed, stretches
):
    asked = []
    monkeypatch.setattr(sharpness, "allowance", lambda *of: asked.append(of) or Work(allowed, 1e9))
    found = sharpness._sampled(sharp_descent(records), 77)
    assert asked == [("auto", 50 * 3 * 2, 77, 8)]
    if stretches is None:
        assert found.tolist() == list(range(records + 1))
        return
    first = [round(n * (records - 2) / (stretches - 1)) for n in range(stretches)]
    assert found.tolist() == sorted({k + n for k in first for n in range(3)})
    assert found[-1] == records


@pytest.mark.parametrize("plain", [True, False])
def test_the_sharpness_is_half_of_the_step_times_the_curvature_where_there_is_one(
    monkeypatch, plain
):
    monkeypatch.setattr(sharpness, "_sampled", lambda descent, points: np.array([0, 2, 3, 5]))
    monkeypatch.setattr(
        sharpness, "largest_curvature", lambda train, w: (None if w[0] == 2 else w[0] + 4, "why")
    )

    def descend_runs(sizes, start, observe):
        assert (sizes, len(start)) == ([0.5], 1)
        for k in range(6):
            observe(k, np.arange(k < 5), np.full((int(k < 5), 1), float(k)))

    descent = sharp_descent(5, plain=plain, best_step=SimpleNamespace(step_size=0.5))
    descent.descend_runs, descent.start = descend_runs, np.zeros((2, 1))
    found = sharpness.take(SimpleNamespace(descent=descent, z=range(9)))
    iteration, values = found.series[names.SHARPNESS.key]
    assert (iteration.tolist(), values.tolist()) == ([0, 3], [1.0, 1.75])
    assert found.notes == (() if plain else (sharpness.OTHER_RULE,))
    monkeypatch.setattr(sharpness, "largest_curvature", lambda train, w: (None, "why"))
    nothing = sharpness.take(SimpleNamespace(descent=descent, z=range(9)))
    assert (nothing.series, nothing.notes) == ({}, ())


def test_dead_directions_of_a_spectrum_are_at_the_level_of_rounding(monkeypatch):
    before = np.array([4.0, 1.0, 17 * EPS, 15 * EPS])  # four of 4: below 16 eps
    monkeypatch.setattr(spectrum, "_eigenvalues", lambda surrogate: before)
    made = finished(np.eye(2))
    for scheme, told in ((SimpleNamespace(ridge=0.5), 0.5), (object(), np.nan)):
        object.__setattr__(made, "scheme", scheme)
        found = spectrum.take(made).arrays
        assert found["dead"] == 1
        assert found["ridge"] == pytest.approx(told, nan_ok=True)


@pytest.mark.parametrize(("schedule", "sizes"), [(None, [4.0] * 4), ((2, 0.5), [4, 4, 2, 1])])
def test_a_step_size_shrinks_after_so_many_passes(schedule, sizes):
    settings = SimpleNamespace(step_schedule=schedule, records_per_pass=3)
    descent = SimpleNamespace(settings=settings, best_step=SimpleNamespace(step_size=4.0))
    at = np.array([0, 5, 6, 13])
    found = weight_norms._step_sizes(SimpleNamespace(descent=descent), at)
    assert found.tolist() == sizes


@pytest.mark.parametrize(
    ("most", "sets", "records", "measured"),
    [(200_000, 1, 600, 500), (40, 4, 600, 10), (40, 400, 600, 2), (40, 4, 9, 10)],
)
def test_norms_are_taken_at_so_many_iterations(monkeypatch, most, sets, records, measured):
    monkeypatch.setattr(weight_norms, "MAX_NORMS", most)
    pairs = [(n % 3, np.array([0, n % 2])) for n in range(sets)]
    model = SimpleNamespace(scale_invariant_weights=lambda layout: pairs)
    monkeypatch.setattr(
        weight_norms, "network_of", lambda train: SimpleNamespace(model=model, layout=None)
    )

    def descend_runs(sizes, start, observe):
        assert (sizes, len(start)) == ([0.5], 1)
        for k in range(records + 1):
            observe(k, np.arange(1), np.array([[3.0 + k, 4.0]]))

    descent = SimpleNamespace(
        train=None,
        settings=SimpleNamespace(records=records, step_schedule=None, records_per_pass=1),
        best_step=SimpleNamespace(step_size=0.5),
        start=np.zeros((2, 2)),
        descend_runs=descend_runs,
    )
    found = weight_norms.take(SimpleNamespace(descent=descent)).arrays
    wanted = inputs.spread_iterations(records, measured)
    assert found["iteration"].tolist() == wanted.tolist()
    assert found["layer"].tolist() == [n % 3 for n in range(sets)]
    lengths = found[names.WEIGHT_NORM.key]
    np.testing.assert_allclose(lengths[:, 0], np.sqrt(2) * (3.0 + wanted))  # twice the first
    np.testing.assert_allclose(found[names.EFFECTIVE_STEP.key], 0.5 / lengths**2)


@pytest.mark.parametrize(
    ("changed", "applies"),
    [
        ({}, True),
        ({"plain": False}, False),
        ({"best": None}, False),
        ({"threshold": None}, False),
        ({"exact": True}, False),
        ({"shape": (2, 1001)}, False),
    ],
)
def test_curvatures_at_the_best_weights_are_of_plain_descent_whose_curvature_moves(
    changed, applies
):
    given = {
        **{"plain": True, "best": 0, "threshold": 0.5, "exact": False, "shape": (2, 1000)},
        **changed,
    }
    descent = SimpleNamespace(
        plain=given["plain"],
        best=given["best"],
        theory=SimpleNamespace(threshold=given["threshold"], exact=given["exact"]),
        train=SimpleNamespace(shape=given["shape"]),
    )
    assert windows_at_best.MEASURE.applies(SimpleNamespace(descent=descent)) == applies


@pytest.mark.parametrize(
    ("changed", "applies"),
    [
        ({}, True),
        ({"exact": False}, False),
        ({"plain": False}, False),
        ({"threshold": None}, False),
        ({"spectrum": False}, False),
        ({"is_complete": False}, False),
        ({"condition": 1.01 * spectra.MAX_PREDICTED_CONDITION}, False),
        ({"condition": spectra.MAX_PREDICTED_CONDITION}, True),
    ],
)
def test_a_history_is_predicted_of_plain_descent_on_a_quadratic_that_is_resolved(changed, applies):
    given = {
        **{"exact": True, "plain": True, "threshold": 0.5, "spectrum": True},
        **{"is_complete": True, "condition": 9.0, **changed},
    }
    known = SimpleNamespace(is_complete=given["is_complete"], condition_number=given["condition"])
    theory_of_scheme = SimpleNamespace(
        exact=given["exact"],
        threshold=given["threshold"],
        spectrum=known if given["spectrum"] else None,
    )
    descent = SimpleNamespace(plain=given["plain"], theory=theory_of_scheme)
    assert predictions.MEASURE.applies(SimpleNamespace(descent=descent)) == applies


@pytest.mark.parametrize(
    ("refine", "iterations", "gridless", "in_memory", "refines"),
    [
        ("auto", 5, False, True, True),
        ("auto", 5, False, False, False),
        (True, 5, False, False, True),
        (False, 5, False, True, False),
        (True, 0, False, True, False),
        (True, 5, True, True, False),
    ],
)
def test_finer_step_sizes_are_tried_where_there_are_some_and_the_points_are_near(
    refine, iterations, gridless, in_memory, refines
):
    descent = SimpleNamespace(
        settings=SimpleNamespace(refine=refine, iterations=iterations),
        optimizer=SimpleNamespace(gridless=gridless),
    )
    dataset = SimpleNamespace(x=np.ones((2, 2)) if in_memory else "a file")
    made = SimpleNamespace(judged_descent=descent, dataset=dataset)
    assert targets._refines(made) == refines


@pytest.mark.parametrize("starts", [1, 2])
def test_a_target_that_is_not_reached_has_quartiles_of_several_starts_alone(starts):
    bench = SimpleNamespace(fit_seconds=2.0, seconds_a_step=0.5)
    descent = SimpleNamespace(bench=bench, start=np.zeros((starts, 1)))
    found = targets._target_metrics(descent, {}, "1e-2", None)
    quartiles = {
        names.quartile(names.reached("1e-2", measure), quartile).key
        for measure in names.MEASURES
        for quartile in names.QUARTILES
    }
    plain = {
        *(names.own_step("1e-2").key, names.least("1e-2").key),
        *(names.reached("1e-2").key, names.reached("1e-2", "seconds").key),
    }
    assert {*found} == (plain | quartiles if starts > 1 else plain)
    assert np.isnan([*found.values()]).all()


def test_quartiles_of_a_target_are_those_of_its_step_size():
    low = names.quartile(names.reached("1e-2"), names.QUARTILES[0]).key
    tried = {16: SimpleNamespace(metrics={low: 7.0}), 32: SimpleNamespace(metrics={low: 9.0})}
    bench = SimpleNamespace(fit_seconds=2.0, seconds_a_step=0.5)
    descent = SimpleNamespace(bench=bench, start=np.zeros((1, 1)))
    found = targets._target_metrics(descent, tried, "1e-2", Fewest(8.0, 100.0, 3.0))
    assert found == {
        names.own_step("1e-2").key: 100,
        names.reached("1e-2").key: 8,
        names.reached("1e-2", "seconds").key: 2 + 8 * 0.5,
        names.least("1e-2").key: 3,
        low: 9,
    }


def test_of_equal_counts_the_smallest_step_size_is_the_first():
    assert targets._first({32: 5.0, 16: 4.0, 0: 4.0, 48: 9.0}) == 0
    assert [targets._json_number(count) for count in (3.0, np.inf, np.nan)] == [3, None, None]


def test_measures_along_the_best_path_descend_the_first_start_alone(data, monkeypatch):
    starts, again = [], JudgedDescent.descend_runs
    monkeypatch.setattr(
        JudgedDescent, "descend_runs", lambda *of: starts.append(len(of[2])) or again(*of)
    )
    record = ("contours", "curvature", "landing")
    made = run(job(data, start="normal", starts=3, record=record, iterations=3, refine=False))
    assert {*record} <= {*made.arrays}
    assert starts == [1] * 3  # the path of contours, and one each
    starts.clear()
    outcome(Mlp([3], normalize="batch"), "by_layer", "curvature", "weight_norms", starts=2)
    assert starts == [1] * 3


@pytest.mark.parametrize(("tie", "told"), [(0.5, 0.5), (None, np.nan), (0.0, np.nan)])
def test_all_that_a_descent_is_judged_by_is_kept_by_step_size_and_start(tie, told):
    """Of two step sizes from three starts; the first run has two shadows, the last one has one."""
    cost = np.arange(24.0).reshape(6, 4)
    diverged_at = np.array([-1, -1, -1, -1, 2, -1])
    shadows = {0: np.array([[9.0, 5.0, 2.0, 1.0], [9.0, 8.0, 7.0, 6.0]]), 5: np.full((1, 4), 4.0)}
    made = Histories(cost, None, None, None, diverged_at, np.zeros((6, 1)), shadows)
    goals = dict(zip(names.TARGETS, (5.5, 2.5, 1.5)))
    numbers = {name: 0.25 * n for n, name in enumerate(histories.BENCH)}
    counts = {name: n for n, name in enumerate(histories.COUNT_FIELDS)}
    descent = SimpleNamespace(
        steps=[SimpleNamespace(step_size=size) for size in (0.1, 2.0)],
        start=np.zeros((3, 1)),
        histories=made,
        bench=SimpleNamespace(targets=goals, tie=tie, **numbers, **counts),
        optimizer=SimpleNamespace(gridless=tie is None),
    )
    found = histories.take(SimpleNamespace(judged_descent=descent))
    assert found.tags == ({names.GRIDLESS.key: "true"} if tie is None else {})
    kept_arrays = found.arrays
    assert kept_arrays["step_sizes"].tolist() == [0.1, 2.0]
    np.testing.assert_array_equal(kept_arrays[names.TRAIN_COST.key], cost.reshape(2, 3, 4))
    assert kept_arrays["diverged_at"].tolist() == [[-1, -1, -1], [-1, 2, -1]]
    nan, inf = np.nan, np.inf
    ends = [[[1, 6], [nan, nan], [nan, nan]], [[nan, nan], [nan, nan], [4, nan]]]
    np.testing.assert_array_equal(kept_arrays["shadows"], ends)
    reached = kept_arrays["shadows_reached"]
    assert reached.shape == (2, 3, 2, len(names.TARGETS))
    np.testing.assert_array_equal(reached[0, 0], [[1, 2, 3], [inf] * 3])
    np.testing.assert_array_equal(reached[1, 2], [[0, inf, inf], [nan] * 3])
    assert kept_arrays["tie"] == pytest.approx(told, nan_ok=True)
    assert {name: kept_arrays[name] for name in numbers | counts} == numbers | counts


@pytest.mark.parametrize("points", [0, 40])
def test_targets_follow_from_the_least_cost_or_are_counts_of_points(points):
    least = SimpleNamespace(
        value=1.0, gradient_norm=0.5, source="here", reached=True, at_infinity=False, case="case"
    )
    counts = dict.fromkeys(names.TARGETS, 7.0)
    bench = SimpleNamespace(points=points, reference=11.0, targets=counts)
    found = least_cost.take(SimpleNamespace(descent=SimpleNamespace(least=least, bench=bench)))
    wanted = counts if points else goals_between(1.0, 11.0)
    assert {name: found.metrics[names.target(name).key] for name in counts} == wanted
    assert found.metrics[names.MINIMUM.key] == 1
    assert found.metrics[names.MINIMUM_GRADIENT.key] == 0.5
    assert (found.tags.get(names.COMPARED.key) == names.MISCLASSIFICATIONS) == bool(points)
    told = [names.MINIMUM_SOURCE, names.MINIMUM_REACHED, names.AT_INFINITY, names.MINIMUM_CASE]
    assert [found.tags[tag.key] for tag in told] == ["here", "true", "false", "case"]


def test_without_a_best_step_size_there_is_no_path():
    assert path.take(SimpleNamespace(descent=SimpleNamespace(best=None))).arrays == {}


@pytest.mark.parametrize(
    ("exact", "plain", "full_batch", "tie"),
    [
        (True, True, True, 0.5),
        (False, True, True, None),
        (True, False, True, None),
        (True, True, False, None),
    ],
)
def test_a_tie_is_of_plain_descent_on_a_quadratic(data, monkeypatch, exact, plain, full_batch, tie):
    monkeypatch.setattr(judged, "theorize", lambda *of: Theory(lipschitz=4.0, exact=exact))
    settings = Settings(step_sizes=(0.1,), iterations=2)
    train, start = Bowl(), np.ones((1, 2, 3))
    train.full_batch = full_batch
    rule = optimizers.gradient_descent() if plain else optimizers.momentum()
    rounds = Rounds(Bowl(), None, start, lambda weights: weights, rule, 2, True)
    given = (settings, Rules(), Search(), start, rounds, rounds.descend([0.1]))
    here, _ = judge_descent(train, rule, *given, shared.PointsCache(data.x), (3.0, 12.0))
    assert here.bench.tie == tie


@pytest.mark.parametrize("curved", [None, np.ones(0)])
def test_without_directions_there_are_no_windows(curved):
    directions = None if curved is None else SimpleNamespace(curvature=curved, times=1)
    descent = SimpleNamespace(at_start=SimpleNamespace(directions=directions))
    assert windows.take(SimpleNamespace(descent=descent)).arrays == {}


def test_windows_of_equal_curvature_are_one():
    values = np.array([4.0, 4.0 * (1 - 5e-10), 4.0 * (1 - 3e-9), 1.0, 1.0, 1.0])
    shares = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    found = windows._grouped(values, shares, 3).arrays
    assert found["window_curvature"].tolist() == [4.0, values[2], 1.0]
    assert found["window_share"].tolist() == [3, 4, 56]
    assert found["window_times"].tolist() == [6, 3, 9]


@pytest.mark.parametrize(
    ("changed", "notes", "tag"),
    [
        ({}, [thresholds.BATCHES], "true"),
        ({"order": ""}, [], None),
        ({"plain": False}, [thresholds.BATCHES], "false"),
        ({"linear": False}, [thresholds.BATCHES], "true"),  # a convex cost of another model
        ({"linear": False, "convex": False}, [thresholds.NETWORK_BATCHES], "true"),
        ({"in_blocks": True}, [thresholds.BATCHES, thresholds.WITHIN_BLOCKS], "true"),
        ({"in_blocks": True, "order": CYCLIC}, [thresholds.BATCHES], "true"),
        ({"in_blocks": True, "linear": False}, [thresholds.BATCHES], "true"),
        *(
            (
                {"statistics": kind},
                [thresholds.BATCHES, thresholds.MOVING.format(statistics=kind)],
                "true",
            )
            for kind in ("running", "window")
        ),
        ({"statistics": "batch"}, [thresholds.BATCHES], "true"),
    ],
)
def test_notes_of_a_job_in_batches_say_what_a_step_sees(monkeypatch, changed, notes, tag):
    given = {
        **{"order": "shuffled", "plain": True, "linear": True, "convex": True},
        **{"in_blocks": False, "statistics": "fitted", **changed},
    }
    monkeypatch.setattr(thresholds, "reads_blocks", lambda points: points == "blocks")
    traits = SimpleNamespace(curvature=0.25)
    linear = SimpleNamespace(traits=traits, points="blocks" if given["in_blocks"] else "array")
    descent = SimpleNamespace(
        theory=Theory(),
        plain=False,
        train=SimpleNamespace(
            linear=linear if given["linear"] else None,
            order=given["order"],
            convex=given["convex"],
        ),
        optimizer=SimpleNamespace(note="", plain=given["plain"]),
        settings=SimpleNamespace(batch_order=given["order"], statistics=given["statistics"]),
    )
    found = thresholds.take(SimpleNamespace(judged_descent=descent))
    assert [*found.notes] == notes
    assert found.tags.get(names.BATCHED.key) == tag
    assert found.tags[names.BASIS.key] == "none"
    assert found.metrics.get(names.COST_CURVATURE.key) == (0.25 if given["linear"] else None)
    unknown = [found.metrics[metric.key] for metric in (names.LIPSCHITZ, names.THRESHOLD)]
    assert np.isnan(unknown).all()
    assert names.LIPSCHITZ_START.key not in found.metrics


@pytest.mark.parametrize(("small", "rank"), [(500 * EPS, 1), (2000 * EPS, 2)])
def test_a_direction_of_rounding_is_promised_nothing(small, rank):
    """Of 1000 points the second feature is so much smaller than the first, at right angles."""
    first, second = np.tile([1.0, -1.0], 500), np.tile([1.0, 1.0, -1.0, -1.0], 250)
    x, y = np.column_stack([first, small * second]), first + second
    whole = [np.column_stack([first, kept_of_it * second]) for kept_of_it in (0.0, 1.0)]
    off = [formulas._judge(x, sphered, y, False)[2] for sphered in whole]
    assert off == pytest.approx([1, 0] if rank == 2 else [0, 1], abs=1e-12)


@pytest.mark.parametrize(
    ("case", "has_scores", "is_linear", "known"),
    [
        (ATTAINED, True, True, True),
        ("another", True, True, False),
        (ATTAINED, False, True, False),
        (ATTAINED, True, False, False),
    ],
)
def test_weights_of_the_least_cost_are_those_of_its_scores(case, has_scores, is_linear, known):
    x, weights = RNG.standard_normal((9, 2)), np.array([[0.5, 2.0, -1.0]])
    scores = weights[:, :1] + weights[:, 1:] @ x.T
    linear = SimpleNamespace(surrogate=Surrogate(x, holds_all_points=True))
    descent = SimpleNamespace(
        least=SimpleNamespace(case=case, scores=scores if has_scores else None),
        train=SimpleNamespace(linear=linear if is_linear else None),
    )
    found = inputs.least_weights(descent)
    assert (found is not None) == known
    if known:
        assert found == pytest.approx(weights[0], rel=1e-9)


@pytest.mark.parametrize(("width", "has_two"), [(1, False), (2, True), (3, True)])
def test_a_plane_takes_two_coordinates_and_a_biplot_two_features(width, has_two):
    x = np.zeros((4, width))
    assert inputs.has_plane(SimpleNamespace(z=x)) == has_two
    told = biplot.MEASURE.unfit(SimpleNamespace(x=x, name="made"))
    assert told == ("" if has_two else "is of two features and more; made has one")


def test_points_of_a_biplot_that_do_not_vary_are_in_its_middle():
    arrays = biplot.MEASURE.take(finished(np.full((5, 2), 3.0))).arrays
    for name in ("points", "loadings", "shares", "correlation"):
        assert not arrays[name].any()


def test_points_are_drawn_alike_each_time():
    drawn = np.random.default_rng(0).choice(3000, 2000, replace=False)
    assert inputs.sample_indices(3000).tolist() == sorted(drawn.tolist())
