"""Measures against a second computation in plain numpy, from points and weights that are given."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench import costs, names
from normbench.datasets import make_dataset
from normbench.datasets.made import gaussian
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.measures import contract
from normbench.measures import points as points_module
from normbench.measures.contract import FinishedJob
from normbench.measures.descents import (
    disturbance,
)
from normbench.measures.planes import (
    BOUNDARY_SIDE,
    CURVE,
    boundary,
    fit,
)
from normbench.measures.points import biplot, components, points
from normbench.normalizers import PCARotation, PCASphere
from normbench.normalizers.decomposition import PointsCache
from normbench.optimizers import gradient_descent
from normbench.theory import batches
from tests.measures.test_batches_measure import found as found_of_batches

RNG = np.random.default_rng(12)
MIXED = RNG.standard_normal((30, 3)) @ np.array([[5.0, 1.0, 0.1], [0.0, 2.0, 0.1], [0.0, 0.0, 0.2]])
MIXED += np.array([1.0, -2.0, 3.0])


def finished(x, y=None, scheme=None, descent=None, classes=None, **more):
    """Return a finished job of points and a scheme, whose descent may be made by hand."""
    dataset = make_dataset("made", x, y, class_names=classes, source="-")
    fitted = (scheme or FunctionTransformer(inverse_func=None)).fit(x)
    z = np.asarray(fitted.transform(x))
    return FinishedJob(dataset, fitted, z, PointsCache(x), descent, **more)


def ended(weights, scores):
    """Return a descent whose last weights are given, with a function for the scores."""
    weights = np.asarray(weights, dtype=float)
    return SimpleNamespace(
        best=0,
        best_run=0,
        best_weights=weights,
        histories=SimpleNamespace(misclassifications=np.zeros((1, 1))),
        start=weights[None],
        recorded_path=SimpleNamespace(weights=weights[None]),
        train=SimpleNamespace(scores=scores, linear=None),
    )


def affine(weights, z):
    """Return the scores of weights (C, 1 + M), bias first."""
    return weights[:, :1] + weights[:, 1:] @ z.T


def test_correlations_of_a_biplot_are_those_of_the_features_whatever_their_scales():
    flat = np.column_stack([MIXED, np.full(30, 7.0)])
    arrays = biplot.take(finished(flat)).arrays
    wanted = np.zeros((4, 4))
    wanted[:3, :3] = np.corrcoef(MIXED.T)
    np.testing.assert_allclose(arrays["correlation"], wanted, atol=1e-12)
    np.testing.assert_allclose(
        arrays["loadings"], arrays["entries"][:, :2] * arrays["deviations"][:2], rtol=1e-12
    )
    values = np.linalg.eigvalsh(np.cov(MIXED.T, bias=True))[::-1]
    np.testing.assert_allclose(arrays["deviations"][:3] ** 2, values, rtol=1e-9)
    np.testing.assert_allclose(arrays["shares"], values[:2] / values.sum(), rtol=1e-9)
    # The points in standard deviations, times the arrows, are the points but for one direction.
    rest = np.cov(flat.T, bias=True) - arrays["loadings"] @ arrays["loadings"].T
    assert np.linalg.matrix_rank(rest, tol=1e-9) == 1
    rebuilt = arrays["points"] @ arrays["loadings"].T + flat.mean(axis=0)
    assert ((rebuilt - flat) ** 2).sum() / 30 == pytest.approx(values[2], rel=1e-9)


@pytest.mark.parametrize("scores", ["one", "each"])
def test_the_boundary_is_the_class_of_the_scores_at_each_cell(scores):
    x = MIXED[:, :2]
    y = (x[:, 0] > 1).astype(int) if scores == "one" else np.arange(30) % 3
    weights = [[0.3, 1.0, -2.0]] if scores == "one" else RNG.standard_normal((3, 3))
    scheme = StandardScaler()
    job = finished(x, y, scheme, ended(weights, affine), list("abc")[: y.max() + 1])
    arrays = boundary.take(job).arrays
    for n, axis in enumerate("ab"):
        low, high = x[:, n].min(), x[:, n].max()
        assert len(arrays[axis]) == BOUNDARY_SIDE
        assert arrays[axis][0] == pytest.approx(low - 0.1 * (high - low))
        assert arrays[axis][-1] == pytest.approx(high + 0.1 * (high - low))
        np.testing.assert_allclose(np.diff(arrays[axis], 2), 0, atol=1e-12)
    for row, column in ((0, 0), (0, -1), (-1, 0), (80, 40), (17, 133)):
        place = np.array([[arrays["a"][column], arrays["b"][row]]])
        own = affine(np.asarray(weights, dtype=float), scheme.transform(place))[:, 0]
        wanted = own[0] > 0 if len(own) == 1 else np.argmax(own)
        assert arrays["predicted"][row, column] == wanted
    assert len(np.unique(arrays["predicted"])) == y.max() + 1
    np.testing.assert_array_equal(arrays["points"], x)
    np.testing.assert_array_equal(arrays["target"], y)
    assert list(arrays["names"]) == ["x0", "x1"]


@pytest.mark.parametrize("kind", ["real", "one", "squares", "two"])
def test_a_fit_is_the_score_or_the_mean_label_of_the_model(kind):
    x = np.linspace(-1.0, 3.0, 9)[:, None]
    y = x[:, 0] ** 2 if kind == "real" else (x[:, 0] > 0).astype(int)
    weights = np.array([[0.2, 1.5], [-0.1, 0.7]][: 2 if kind == "two" else 1])
    named = None if kind == "real" else ["a", "b"]
    descent = ended(weights, affine)
    descent.train.traits = SimpleNamespace(squares=kind == "squares")
    arrays = fit.take(finished(x, y, None, descent, named)).arrays
    assert arrays["x"].shape == (CURVE,)
    assert arrays["x"][[0, -1]] == pytest.approx([-1.2, 3.2])
    scores = weights[:, :1] + weights[:, 1:] * arrays["x"]
    between = scores[1] - scores[0] if kind == "two" else scores[0]
    wanted = between if kind in ("real", "squares") else 2 / (1 + np.exp(-between)) - 1
    np.testing.assert_allclose(arrays["prediction"], wanted, atol=1e-12)
    np.testing.assert_array_equal(arrays["points"][:, 0], x[:, 0])
    np.testing.assert_array_equal(arrays["points"][:, 1], y if kind == "real" else 2 * y - 1)


def test_the_exact_limits_of_a_batch_are_of_the_points_with_a_bias():
    outcome = found_of_batches()
    metrics = outcome.findings.metrics
    z = PCASphere(ridge=0).fit_transform(gaussian(200, 5, task="regression", noise=0.1).x)
    ones = np.column_stack([np.ones(200), z])
    shuffled, replaced = batches.mean_square_steps(ones, 4)
    assert metrics[names.BATCH_STEP_EXACT.key] == pytest.approx(shuffled, rel=1e-9)
    again = found_of_batches(batch_order="replacement").findings.metrics
    assert again[names.BATCH_STEP_EXACT.key] == pytest.approx(replaced, rel=1e-9)
    floor = batches.noise_floor(
        0.01, metrics[names.MINIMUM.key], (ones**2).sum() / 200, 4, replaced
    )
    assert outcome.steps[0].metrics[names.NOISE_FLOOR.key] == pytest.approx(floor, rel=1e-6)


def test_at_few_iterations_all_are_measured_and_of_many_some_close_together_at_first():
    assert contract.spread_iterations(4, 5).tolist() == [0, 1, 2, 3, 4]
    # Below the count: 0, and powers of the fourth root of 1000.
    assert contract.spread_iterations(1000, 6).tolist() == [0, 1, 6, 32, 178, 1000]
    for last in (5, 17, 60, 999):
        spread = contract.spread_iterations(last, 5)
        assert len(spread) <= 5
        assert (spread[0], spread[-1]) == (0, last)


def test_coordinates_have_the_names_of_the_scheme_or_of_the_features_or_numbers():
    named = finished(MIXED, scheme=PCARotation(components=2))
    assert points_module.coordinate_names(named) == tuple(
        named.scheme.get_feature_names_out(["x0", "x1", "x2"])
    )
    silent = FinishedJob(named.dataset, object(), MIXED, PointsCache(MIXED))
    assert points_module.coordinate_names(silent) == ("x0", "x1", "x2")
    fewer = FinishedJob(named.dataset, object(), MIXED[:, :2], PointsCache(MIXED))
    assert points_module.coordinate_names(fewer) == ("coordinate 1", "coordinate 2")


def test_a_sample_of_points_is_as_large_as_it_may_be_and_in_order():
    most = points_module.MAX_DRAWN_POINTS
    few, many = (make_dataset("x", np.ones((n, 1)), source="-") for n in (most, most + 500))
    np.testing.assert_array_equal(points_module.sample(few)[0], np.arange(most))
    indices, arrays = points_module.sample(many)
    assert (arrays["target"] == 0).all()
    assert len(set(indices.tolist())) == len(indices) == most
    assert (np.diff(indices) > 0).all()
    assert indices[-1] > most


@pytest.mark.parametrize("scheme", [StandardScaler(), PCARotation()])
def test_points_of_more_features_are_drawn_in_their_plane_and_not_centred(scheme):
    job = finished(MIXED, np.arange(30) % 2, scheme, classes=["a", "b"])
    z = job.z + 5.0
    arrays = points.take(FinishedJob(job.dataset, job.scheme, z, job.points_cache)).arrays
    plane = np.linalg.eigh(np.cov(z.T, bias=True))[1][:, ::-1][:, :2]
    np.testing.assert_allclose(np.abs(arrays["points"]), np.abs(z @ plane), atol=1e-9)
    np.testing.assert_allclose(arrays["mean"], arrays["points"].mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(
        arrays["axes"].T @ arrays["axes"], np.cov(arrays["points"].T, bias=True), atol=1e-9
    )
    assert list(arrays["names"]) == list(names.PRINCIPAL)
    assert list(arrays["class_names"]) == ["a", "b"]


@pytest.mark.parametrize("targets", [True, False])
def test_points_of_one_feature_are_drawn_over_their_target(targets):
    x, y = MIXED[:, :1], np.arange(30) % 2
    job = finished(x, y, classes=["a", "b"]) if targets else finished(x)
    arrays = points.take(job).arrays
    np.testing.assert_array_equal(arrays["points"][:, 0], x[:, 0])
    np.testing.assert_array_equal(arrays["points"][:, 1], y if targets else np.zeros(30))
    assert list(arrays["names"]) == ["x0", "target" if targets else ""]
    assert arrays["axes"].shape == (0, 2)
    np.testing.assert_allclose(arrays["mean"], arrays["points"].mean(axis=0), atol=1e-12)


def test_components_are_what_a_unit_along_a_coordinate_adds():
    job = finished(MIXED, scheme=PCASphere(ridge=0), shown_point=4)
    arrays = components.take(job).arrays
    origin = job.scheme.inverse_transform(np.zeros((1, 3)))[0]
    shifts = job.scheme.inverse_transform(np.eye(3)) - origin
    lengths = np.linalg.norm(shifts, axis=1)
    order = np.argsort(-lengths)  # the variance of each coordinate is 1
    units = shifts[order] / lengths[order, None]
    np.testing.assert_allclose(arrays["components"], units, atol=1e-6)
    share = lengths[order] ** 2 / (lengths**2).sum()
    np.testing.assert_allclose(arrays["variance"], share, rtol=1e-9)
    np.testing.assert_allclose(arrays["share"], np.r_[0, np.cumsum(share)], atol=1e-9)
    np.testing.assert_allclose(arrays["weights"], (job.z[4] * lengths)[order], rtol=1e-9)
    for count in range(4):
        built = origin + arrays["weights"][:count] @ units[:count]
        np.testing.assert_allclose(arrays["built"][count], built, atol=1e-5)
    assert not arrays["pixels"]


class Halves:
    """Batches of the first points and of the last, normalized on their own."""

    updates_per_pass = 2

    def __init__(self, x, shifts):
        self.x, self.shifts = x, shifts

    def points_of(self, update):
        return np.arange(3) + 3 * update

    def of_batch(self, update):
        shift = self.shifts[update]
        return None if shift is None else self.x[self.points_of(update)] + shift


@pytest.mark.parametrize("shifts", [(0.5, 2.0), (None, 2.0), (None, None)])
def test_a_batch_disturbs_by_the_squares_of_what_it_moves(shifts):
    x = RNG.standard_normal((6, 2))
    plan = SimpleNamespace(batches=Halves(x, shifts), statistics=Halves(x, shifts))
    settings = SimpleNamespace(statistics="batch")
    job = SimpleNamespace(descent=SimpleNamespace(plan=plan, settings=settings), z=x)
    moved = sum(6 * (shift or 0.0) ** 2 for shift in shifts)
    found = disturbance.take(job).metrics
    assert found[names.DISTURBANCE.key] == pytest.approx(moved / (x**2).sum())
    job.z = np.zeros((6, 2))
    assert not disturbance.take(job).metrics


def test_the_plane_of_one_feature_is_all_of_its_weights():
    x = MIXED[:, :1]
    data = make_dataset("line", x, 2 * x[:, 0] + 1, source="-")
    chosen = Settings((0.01,), iterations=9, record=("contours", "path"), refine=False)
    arrays = run(
        Job(data, costs.least_squares, FunctionTransformer(), gradient_descent(), chosen)
    ).arrays
    np.testing.assert_allclose(
        arrays["contours"]["path"], arrays["path"]["weights"][:, 0], rtol=1e-12
    )
    assert arrays["contours"]["minimum"] == pytest.approx([1, 2], rel=1e-9)
    assert list(arrays["contours"]["names"]) == ["bias", "weight of x0"]
    assert arrays["contours"]["held"] == ""
