"""Measures against a second computation in plain numpy, from points and weights that are given."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench import costs, names
from normbench.datasets import UserError, make_dataset
from normbench.datasets.made import gaussian
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.measures import contract
from normbench.measures import points as points_module
from normbench.measures.batches import disturbance
from normbench.measures.contract import FinishedJob, WeightPath
from normbench.measures.curvature import (
    ROUNDED_GRADIENT,
    _normalized,
    _step_positions,
    landing,
)
from normbench.measures.drawings import autoencoder
from normbench.measures.planes import (
    BOUNDARY_SIDE,
    CURVE,
    _choose_directions,
    _direction_of_most_excess,
    _plane,
    _project_slope,
    _window,
    boundary,
    fit,
    predict_classes,
)
from normbench.measures.points import biplot, components, points, projection
from normbench.normalizers import PCARotation, PCASphere
from normbench.normalizers.decomposition import Moments
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
    return FinishedJob(dataset, fitted, z, Moments(x), descent, **more)


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


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_points_of_a_biplot_are_in_standard_deviations_whatever_their_unit(unit):
    arrays = biplot.take(finished(unit * MIXED)).arrays
    assert arrays["points"].std(axis=0) == pytest.approx([1, 1], rel=1e-9)
    assert arrays["points"].mean(axis=0) == pytest.approx([0, 0], abs=1e-9)


def test_of_many_arrows_the_longest_are_kept_in_the_order_of_the_features():
    scale = np.r_[np.full(10, 1e-3), np.ones(65)]
    scale[40] = 1e-4
    x = np.random.default_rng(3).standard_normal((200, 75)) * scale
    arrays = biplot.take(finished(x)).arrays
    assert arrays["entries"].shape == (60, 60)
    assert arrays["deviations"].shape == (60,)
    assert arrays["correlation"].shape == (60, 60)
    numbers = [int(name[1:]) for name in arrays["names"]]
    assert numbers == sorted(numbers)
    deviations, directions = points_module.principal_directions(x)
    lengths = np.hypot(*(directions[:2] * deviations[:2, None]))
    assert set(numbers) == set(np.argsort(-lengths)[:60].tolist())


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


def test_the_plane_of_a_feature_that_does_not_vary_is_a_fifth_wide():
    x = np.column_stack([MIXED[:, 0], np.full(30, 4.0)])
    job = finished(x, np.arange(30) % 2, None, ended([[0.0, 1.0, 1.0]], affine), ["a", "b"])
    arrays = boundary.take(job).arrays
    assert arrays["b"][[0, -1]] == pytest.approx([3.9, 4.1])


def test_a_score_of_0_is_of_the_first_class_and_of_equal_scores_the_first_is_taken():
    assert predict_classes(np.array([[-1.0, 0.0, 1.0]])).tolist() == [0, 0, 1]
    scores = np.array([[1.0, 2.0], [1.0, 3.0], [0.0, 3.0]])
    assert predict_classes(scores).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("features", "classes", "words"),
    [(2, 2, ""), (2, 3, ""), (3, 2, "of 3 features, and 2 classes"), (2, 0, "real targets")],
)
def test_a_boundary_is_of_classes_in_two_features(features, classes, words):
    x = RNG.standard_normal((12, features))
    named = list("abc")[:classes] or None
    data = make_dataset("made", x, np.arange(12) % classes if classes else x[:, 0], source="-")
    data = make_dataset(
        "made", x, data.y if not classes else data.y.astype(int), class_names=named, source="-"
    )
    refusal = pytest.raises(UserError, match=f"needs classes and 2 features; made has .*{words}")
    with refusal if words else nullcontext():
        boundary.check(data, None)


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
    silent = FinishedJob(named.dataset, object(), MIXED, Moments(MIXED))
    assert points_module.coordinate_names(silent) == ("x0", "x1", "x2")
    fewer = FinishedJob(named.dataset, object(), MIXED[:, :2], Moments(MIXED))
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


def test_a_projection_loses_what_its_reconstruction_lacks():
    job = finished(MIXED, scheme=PCARotation(components=2))
    found = projection.take(job)
    values = np.linalg.eigvalsh(np.cov(MIXED.T, bias=True))
    assert found.metrics[names.VARIANCE_LOST.key] == pytest.approx(values[0] / values.sum())
    assert found.arrays["kept"] == 2
    assert list(found.arrays["names"]) == ["x0", "x1", "x2"]
    constant = finished(np.ones((5, 2)), scheme=StandardScaler())
    assert projection.take(constant).arrays["lost"] == 0


def test_an_autoencoders_counts_are_those_of_a_descent_of_one_start():
    x = MIXED - MIXED.mean(axis=0)
    job = finished(MIXED, scheme=StandardScaler(with_std=False))
    arrays = autoencoder.take(job).arrays
    assert arrays["features"] == 3
    z = x / np.abs(x).max()
    moments = z.T @ z / 30
    values, vectors = np.linalg.eigh(moments)

    def cost(c):
        return np.mean(((z - np.outer(z @ c, c)) ** 2).sum(axis=1))

    starts = 0.1 * np.random.default_rng(0).standard_normal((100, 3))
    for number in (0, 57):
        c, first, count = starts[number].copy(), cost(starts[number]), None
        for k in range(500):
            if count is None and cost(c) - values[:2].sum() <= 0.01 * (first - values[:2].sum()):
                count = k
            image = moments @ c
            slope = -4 * image + 2 * (image * (c @ c) + c * (c @ image))
            c = c - 0.1 / values[-1] * slope
        assert arrays["iterations"][number] == count
        assert arrays["lost"][number] == pytest.approx(cost(c) / values.sum(), rel=1e-9)
        turn = (c @ vectors[:, -1] / np.linalg.norm(c)) ** 2
        assert arrays["overlap"][number] == pytest.approx(turn, rel=1e-9)


def test_an_autoencoder_of_points_that_are_all_0_loses_nothing_and_is_there_at_once():
    arrays = autoencoder.take(finished(np.zeros((6, 2)))).arrays
    assert arrays["lost"].tolist() == arrays["iterations"].tolist() == [0] * 100


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


def test_a_disturbance_is_of_the_first_fifty_batches():
    tried = []
    many = SimpleNamespace(
        updates_per_pass=60,
        points_of=lambda update: np.arange(1),
        of_batch=lambda update: tried.append(update),
    )
    plan = SimpleNamespace(batches=many, statistics=many)
    descent = SimpleNamespace(plan=plan, settings=SimpleNamespace(statistics="batch"))
    disturbance.take(SimpleNamespace(descent=descent, z=np.ones((1, 1))))
    assert tried == list(range(50))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_step_has_a_place_while_its_gradient_is_above_rounding(dtype):
    """A cost of one weight: its gradients are given, one an iteration."""
    limit = ROUNDED_GRADIENT[dtype]
    assert limit == {"float64": 1e-8, "float32": 1e-3}[dtype]
    slopes = np.array([4.0, -2.0, 4 * 1.1 * limit, 4 * 0.9 * limit, 1.0])
    weights = np.arange(5.0)
    train = SimpleNamespace(
        evaluate=lambda w: SimpleNamespace(gradient=slopes[w[:, 0].astype(int)][:, None])
    )

    descent = SimpleNamespace(
        train=train,
        start=np.zeros((1, 1), dtype),
        path=WeightPath(np.arange(5), weights[:, None], np.zeros(5)),
    )
    iteration, position = _step_positions(descent)
    # The fourth gradient is below the share; the fifth has no step.
    assert iteration.tolist() == [0, 1, 2]
    np.testing.assert_allclose(position, 1 - slopes[1:4] / slopes[:3], rtol=1e-12)


def test_soft_directions_are_those_of_which_a_step_goes_less_than_a_tenth():
    size = 0.5
    directions = SimpleNamespace(curvature=np.array([4.0, 0.21, 0.19, 0.01]), multiplicity=3)
    descent = SimpleNamespace(
        plain=True,
        theory=SimpleNamespace(threshold=0.5),
        at_start=SimpleNamespace(directions=directions),
        best_step=SimpleNamespace(step_size=size),
        train=SimpleNamespace(evaluate=lambda w: SimpleNamespace(gradient=w)),
        path=WeightPath(np.zeros(1, int), np.zeros((1, 1)), np.zeros(1)),
        start=np.zeros((1, 1)),
    )
    found = landing.take(SimpleNamespace(descent=descent))
    assert found.metrics == {names.LANDING_SOFT.key: 0.5}
    np.testing.assert_allclose(found.arrays["direction"], size * directions.curvature)
    assert found.arrays["times"] == 3
    descent.plain = False
    assert "direction" not in landing.take(SimpleNamespace(descent=descent)).arrays


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


def test_shares_of_layers_add_up_to_one_or_are_unknown():
    shares = _normalized(np.array([[1.0, 3.0], [np.inf, 1.0], [0.0, 0.0]]))
    assert shares.dtype == np.float32
    assert shares[0].tolist() == [0.25, 0.75]
    assert np.isnan(shares[1:]).all()


def test_the_stiffest_of_equal_directions_is_along_the_slope():
    space = np.eye(3)[:, :2]
    assert _project_slope(space, np.array([3.0, 4.0, 9.0])).tolist() == [0.6, 0.8, 0]
    assert _project_slope(space, np.array([0.0, 0.0, 9.0])).tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("curved", "halves"),
    [
        ((100.0, 1.0), (0.65, 0.65)),  # not yet too elongated for a square
        ((144.0, 1.0), (0.65, 0.78)),  # of the second axis a tenth of twelve times the first
        ((1.0, 400.0), (0.65, 0.65 * 0.1 / 20)),
        ((1.0, 0.0), (0.65, 0.65)),
    ],
)
def test_a_path_along_one_axis_has_a_window_by_the_curvatures(curved, halves):
    path = np.array([[0.0, 0.0], [1.0, 0.0]])
    a, b = _window(path, np.diag(curved), max(curved) / (min(curved) or np.nan), 5)
    assert (a[-1] - 0.5, b[-1]) == pytest.approx(halves)
    assert (a[0] - 0.5, b[0]) == pytest.approx((-halves[0], -halves[1]))


def contoured(costs_along, reached=False, **more):
    """Return a descent of two weights with a Hessian that is given, without a least cost."""
    walk = SimpleNamespace(cost=np.array(costs_along, dtype=float))
    return SimpleNamespace(
        recorded_path=walk,
        least=SimpleNamespace(is_solved=reached),
        judging_context=SimpleNamespace(minimum=0.0),
        start=np.zeros((1, 1, 4)),
        **more,
    )


class Diagonal:
    """The Hessian of `1/2 sum h w^2`, as a matrix or by its products."""

    shape, is_zero = (1, 4), False

    def __init__(self, *values):
        self.values = np.array(values)
        self.size = len(values)

    def matrix(self):
        return np.diag(self.values)

    def times(self, weights):
        return self.values * weights

    def krylov_eigenpairs(self, slope):
        order = np.argsort(self.values)[1:]
        return self.values[order], np.eye(self.size)[:, order]


MOST_LEFT = "direction with most excess cost left"


@pytest.mark.parametrize(
    ("values", "name", "second", "most"),
    [
        ((4.0, 2.0, 1.0, 0.5), MOST_LEFT, [0, 0, 1, 0], 4),
        ((4.0, 2.0, 1.0, 0.5), MOST_LEFT, [0, 0, 1, 0], 3),  # too many for a matrix
        ((4.0, 4.0, 4.0, 4.0), "another direction, as stiff", None, 4),
        ((4.0, 3.999, 0.0, 0.0), "another direction, as stiff", None, 4),
        ((4.0, 0.0, 0.0, 0.0), "a direction without curvature", None, 4),
    ],
)
def test_directions_of_contours_are_orthogonal_units_of_the_curvature(
    monkeypatch, values, name, second, most
):
    """Of the weights at the end, 0.1, 1, 3 and 1, the third direction has the most excess."""
    monkeypatch.setattr("normbench.measures.planes.MAX_DENSE_SIZE", most)
    path = np.array([[1.0, 1.0, 9.0, 9.0], [0.1, 1.0, 3.0, 1.0]])
    descent = contoured([9.0, 1.0], reached=True)
    directions, (first_name, told) = _choose_directions(
        descent, Diagonal(*values), path, np.zeros(4)
    )
    assert directions @ directions.T == pytest.approx(np.eye(2), abs=1e-12)
    assert (first_name, told) == ("most curved direction", name)
    curvature = [direction**2 @ values for direction in directions]
    assert curvature[0] == pytest.approx(4.0, rel=1e-3)
    if second:
        assert directions.tolist() == [[1, 0, 0, 0], second]
    else:
        assert curvature[1] == pytest.approx(0.0 if "without" in name else 4.0, rel=1e-3)


def test_where_nothing_is_left_the_directions_are_those_of_the_start():
    path = np.array([[0.5, 9.0, 1.0, 1.0], [0.0, 0.0, 1e-9, 0.0]])
    descent = contoured([9.0, 1e-18], reached=True)
    directions, told = _choose_directions(descent, Diagonal(4.0, 2.0, 1.0, 0.5), path, np.zeros(4))
    assert told[1] == "direction with most excess cost at the start"
    assert directions.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]


@pytest.mark.parametrize("size", [2, 3])
def test_of_few_weights_the_plane_is_that_of_the_features(size):
    weights = np.arange(2.0 * size).reshape(2, size) + 1
    plane = _plane(None, weights, None, ("one", "two")[: size - 1])
    if size == 2:
        assert plane.origin.tolist() == [0, 0]
        assert plane.directions.tolist() == [[1, 0], [0, 1]]
        assert plane.names == ("bias", "weight of one")
        assert plane.held == ""
        return
    assert plane.origin.tolist() == [4, 0, 0]  # the bias of the end
    assert plane.directions.tolist() == [[0, 1, 0], [0, 0, 1]]
    assert plane.names == ("weight of one", "weight of two")
    assert plane.held == "bias held at 4"
    least = np.array([0.12345, 7.0, 7.0])
    assert _plane(None, weights, least, ("one", "two")).held == "bias held at 0.123"
    for tiny, told in ((7e-12, "7e-12"), (5e-12, "0")):  # of the largest weight, which is 6
        at = np.array([tiny, 0.0, 0.0])
        assert _plane(None, weights, at, ("one", "two")).held == f"bias held at {told}"


def test_the_direction_of_most_excess_is_by_the_squared_slope_over_the_curvature():
    directions = np.eye(3)
    values, slope = np.array([4.0, 1.0, 0.25]), np.array([4.0, 2.5, 1.0])
    found = _direction_of_most_excess(None, directions, values, slope, None)
    assert found.tolist() == [0, 1, 0]  # 2, 3.125 and 2
