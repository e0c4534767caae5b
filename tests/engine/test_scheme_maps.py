"""The map of a fitted scheme: found by trying it, in a penalty on features, as a preconditioner."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench import costs, optimizers
from normbench.choices import build, options, preconditioned
from normbench.datasets import UserError, make_dataset
from normbench.datasets.bundled import breast_cancer, diabetes, iris
from normbench.engine.scheme import Effects, find_effects, fit_scheme, probe
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.normalizers import PCARotation, PCASphere
from normbench.optimizers import gradient_descent
from normbench.rehearsal import rehearse
from normbench.settings import powers_of_ten
from tests import door
from tests.cases import names

POINTS = np.random.default_rng(3).standard_normal((80, 3)) @ np.triu(np.ones((3, 3))) * 5 + 7


def probed(scheme):
    made = build("normalizer", options("normalizer", scheme)) if isinstance(scheme, str) else scheme
    z = made.fit(POINTS).transform(POINTS)
    return probe(made, POINTS, z), z


@pytest.mark.parametrize(
    ("scheme", "effect"),
    [
        ("identity", Effects(False, False, False, False)),
        ("centre", Effects(True, True, False, False)),
        ("standard", Effects(True, True, True, False)),
        ("minmax", Effects(False, True, True, False)),
        ("maxabs", Effects(False, False, True, False)),
        ("pca", Effects(True, True, False, True)),
        ("pca_sphere", Effects(True, True, True, True)),
        ("zca_sphere", Effects(True, True, True, True)),
        (PCARotation(components=2), Effects(True, True, False, True)),
        (ColumnTransformer([("kept", "passthrough", [2, 0])]), Effects(False, False, False, False)),
        (
            ColumnTransformer([("s", StandardScaler(), [2])], remainder="passthrough"),
            Effects(False, True, True, False),
        ),
    ],
)
def test_a_map_gives_the_points_and_is_told_by_what_it_does(scheme, effect):
    found, z = probed(scheme)
    assert found.matrix.shape == (z.shape[1], 3)
    np.testing.assert_allclose((POINTS - found.centre) @ found.matrix.T + found.image, z, atol=1e-9)
    assert find_effects(found, z) == effect


def test_a_direction_that_is_scaled_down_is_no_dropped_one():
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
    for factor, scales in ((1e-6, True), (0.0, False)):
        small = FunctionTransformer(lambda x, by=factor: (x @ turn) * [1.0, 1.0, by])
        assert find_effects(*probed(small)) == Effects(False, False, scales, True)


@pytest.mark.parametrize("bent", [0, 1, 2])
def test_a_scheme_that_bends_one_feature_is_not_affine(bent):
    def bend(x):
        return np.where(np.arange(3) == bent, x**3, x)

    assert probed(FunctionTransformer(bend))[0] is None
    assert probed("quantile")[0] is None


class Affine:
    """A scheme that is a map; broken: what it gives in its place for the points that it sees."""

    def __init__(self, matrix, offset=0.0, broken=None):
        self.matrix, self.offset, self.broken = matrix, offset, broken

    def transform(self, x):
        z = x @ self.matrix.T + self.offset
        return z if self.broken is None else self.broken(z)


MATRIX = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 3.0]])


def fitted(scheme, z=None, spread=(1.0, 2.0, 0.5), centre=(5.0, -1.0, 0.0)):
    x = np.random.default_rng(14).standard_normal((7, 3)) * spread + centre
    z = x @ MATRIX.T + [7.0, 0.1] if z is None else z(x)
    return probe(scheme, x, z), x, z


@pytest.mark.parametrize("spread", [(1.0, 2.0, 0.5), (0.0, 0.0, 0.0)])
def test_a_map_is_found_by_a_step_along_each_feature(spread):
    """A constant feature gets a step of its own size, or 1."""
    found, x, _ = fitted(Affine(MATRIX, np.array([7.0, 0.1])), spread=spread)
    np.testing.assert_allclose(found.matrix, MATRIX, atol=1e-9)
    np.testing.assert_allclose(found.centre, x.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(found.image, MATRIX @ found.centre + [7.0, 0.1], rtol=1e-14)


def refuse(z):
    raise ValueError("unseen points")


@pytest.mark.parametrize(
    "broken",
    [
        refuse,
        lambda z: z[:, :1],
        lambda z: z[1:],
        lambda z: np.where(np.arange(len(z))[:, None] == 2, np.inf, z),
        lambda z: np.full(z.shape, np.nan),
    ],
)
def test_a_scheme_that_fails_on_the_steps_has_no_map(broken):
    assert fitted(Affine(MATRIX, np.array([7.0, 0.1]), broken))[0] is None


@pytest.mark.parametrize(("error", "is_map"), [(0.0, True), (1e-10, True), (1e-7, False)])
@pytest.mark.parametrize("feature", [0, 1])
def test_a_map_gives_the_points_to_a_share_of_their_size(error, is_map, feature):
    def with_error(x):
        z = x @ MATRIX.T + [7.0, 0.1]
        z[3, feature] += error * np.abs(z).max()
        return z

    found, _, _ = fitted(Affine(MATRIX, np.array([7.0, 0.1])), with_error)
    assert (found is not None) == is_map


@pytest.mark.parametrize(("error", "is_map"), [(1e-6, True), (1e-3, False)])
def test_points_of_single_precision_may_be_as_far_off_as_their_rounding(error, is_map):
    def rounded(x):
        z = x @ MATRIX.T + [7.0, 0.1]
        z[3] *= 1 + error
        return z.astype(np.float32)

    found, _, _ = fitted(Affine(MATRIX, np.array([7.0, 0.1])), rounded)
    assert (found is not None) == is_map


# A penalty on the weights of the features: all affine schemes minimize the same function.

L2, FEATURES = 0.01, "features"
SCHEMES = names("normalizer")


def scheme(name):
    found = options("normalizer", name)
    return build("normalizer", found | {"schemes": ["standard"]} if name == "chain" else found)


def overlap():
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, 80)
    x = rng.standard_normal((80, 3)) + y[:, None]
    return make_dataset("two", x, y, class_names=["no", "yes"], source="-")


def job(data, cost, one, l2_in=FEATURES, **settings):
    sizes = settings.pop("step_sizes", (0.1,))
    asked = Settings(sizes, **settings)
    return Job(data, cost, one, gradient_descent(), asked, l2=L2, l2_in=l2_in)


def is_taken(name):
    """Whether a scheme is an affine map: of others no such penalty is taken."""
    try:
        rehearse(job(overlap(), costs.softmax, scheme(name)))
    except UserError:
        return False
    return True


AFFINE = [name for name in SCHEMES if is_taken(name)]


@pytest.fixture
def overlapping():
    return overlap()


def on_inputs(weights, one, features):
    """Return weights on mapped points as weights on the inputs, of the same scores.

    Bias first: `w0 + w (A x + b) = (w0 + w b) + (A' w) x`.
    """
    offset = one.transform(np.zeros((1, features)))
    matrix = (one.transform(np.eye(features)) - offset).T
    bias, slopes = weights[..., :1], weights[..., 1:]
    return np.concatenate([bias + slopes @ offset.T, slopes @ matrix], axis=-1)


@pytest.mark.parametrize("name", AFFINE)
def test_the_same_feature_weights_have_the_same_cost_under_every_affine_scheme(name, overlapping):
    x, y = overlapping.x, 2.0 * overlapping.y - 1
    one = scheme(name).fit(x)
    z = np.asarray(one.transform(x), dtype=float)
    here = door.problem(costs.softmax, z, y, True, door.penalty(L2, one, x))
    there = door.problem(costs.softmax, x, y, True, L2)
    weights = np.random.default_rng(1).standard_normal((3, 1, z.shape[1] + 1))
    # Measured: 2e-14.
    wanted = there.evaluate(on_inputs(weights, one, x.shape[1])).costs
    np.testing.assert_allclose(here.evaluate(weights).costs, wanted, rtol=1e-11)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(
    ("load", "cost"),
    [
        (breast_cancer, costs.softmax),
        (diabetes, costs.least_squares),
        (iris, costs.multiclass_softmax),
    ],
)
def test_the_least_cost_and_the_threshold_are_those_of_one_function(load, cost):
    data = load()
    found = {
        name: run(job(data, cost, scheme(name), theory="full", iterations=1)).findings.metrics
        for name in ("identity", "standard", "minmax", "pca", "pca_sphere", "zca_sphere")
    }
    least = [metrics["theory/minimum"] for metrics in found.values()]
    # Measured: 2e-11, of breast cancer, where the condition number is 2e12.
    assert least == pytest.approx([least[0]] * len(least), rel=1e-9)
    own = run(job(data, cost, scheme("standard"), "transformed", theory="full", iterations=1))
    assert own.findings.metrics["theory/minimum"] != pytest.approx(least[0], rel=1e-3)
    same = [found[name]["theory/step_threshold"] for name in ("pca_sphere", "zca_sphere")]
    assert same[0] == pytest.approx(same[1], rel=1e-9)  # rotations of one another


@pytest.mark.parametrize("one", [StandardScaler(), PCASphere()])
def test_descent_falls_up_to_its_threshold_and_as_predicted(one):
    asked = job(
        diabetes(), costs.least_squares, one, step_sizes=powers_of_ten(-3, 1, 4), iterations=300
    )
    outcome = run(asked)
    threshold = outcome.findings.metrics["theory/step_threshold"]
    largest = outcome.findings.metrics["final/largest_falling_step"]
    sizes = sorted(asked.settings.step_sizes)
    below, above = next(pair for pair in pairwise(sizes) if pair[0] < threshold <= pair[1])
    assert below == largest < threshold <= above
    errors = [step.metrics.get("theory/prediction_error", 0.0) for step in outcome.steps]
    # Measured: 2e-13.
    assert max(errors) < 1e-9


@pytest.mark.parametrize("name", ["quantile", "power", "unit_norm", "contrast"])
def test_a_scheme_that_is_no_affine_map_is_refused(name, overlapping):
    with pytest.raises(UserError, match=r"cost.l2_in=features: normalizer .* is no affine map"):
        run(job(overlapping, costs.softmax, scheme(name)))
    asked = job(overlapping, costs.softmax, scheme(name), "transformed", iterations=2)
    assert run(asked).steps


# Preconditioned gradient descent: the scheme in the steps, the same costs as in the points.

PRECONDITIONERS = [
    "identity",
    "centre",
    "standard",
    "minmax",
    "pca",
    "pca_sphere",
    "zca_sphere",
    "cholesky",
]
PLAIN = optimizers.gradient_descent()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(8)
    x = rng.standard_normal((80, 4)) @ rng.standard_normal((4, 4)) * [1, 5, 0.2, 1] + [3, -9, 0, 1]
    classes = np.argmax(x[:, :3] + rng.standard_normal((80, 3)), axis=1)
    return make_dataset("made", x, classes, class_names=["a", "b", "c"], source="-")


def descent_costs(data, scheme, optimizer, cost=costs.multiclass_softmax, precision="float64"):
    settings = Settings((0.01, 0.1), 30, precision=precision, refine=False, shadows=False)
    normalizer = build("normalizer", options("normalizer", scheme))
    steps = run(Job(data, cost, normalizer, optimizer, settings)).steps
    return np.array([step.histories["train/cost"] for step in steps])


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("cost", [costs.multiclass_softmax, costs.least_squares])
@pytest.mark.parametrize("scheme", PRECONDITIONERS)
def test_it_descends_as_gradient_descent_does_under_the_scheme(data, scheme, cost):
    within = descent_costs(data, "identity", preconditioned(scheme), cost)
    # Measured: 2e-12, where sphering multiplies rounding.
    np.testing.assert_allclose(within, descent_costs(data, scheme, PLAIN, cost), rtol=1e-9)


def test_it_learns_from_the_points_that_fit_on_names(data):
    held_out = replace(data, x=data.x[:50], y=data.y[:50], x_test=data.x[50:], y_test=data.y[50:])
    of_train, of_all = (
        [
            descent_costs(points, *pair)
            for pair in (("identity", preconditioned()), ("pca_sphere", PLAIN))
        ]
        for points in (held_out, replace(held_out, fit_on="all"))
    )
    np.testing.assert_allclose(*of_train, rtol=1e-9)
    np.testing.assert_allclose(*of_all, rtol=1e-9)
    assert abs(of_all[0] / of_train[0] - 1).max() > 1e-3


def test_the_seconds_of_its_fit_are_those_of_fitting(data, monkeypatch):
    class Clock:
        seconds = 0.0

        @classmethod
        def perf_counter(cls):
            return cls.seconds

    def fit(scheme, x, *_):
        Clock.seconds += 7.0
        fit_scheme(scheme, x, *_)

    monkeypatch.setattr("normbench.preparation.time", Clock)
    monkeypatch.setattr("normbench.engine.scheme.fit_scheme", fit)
    settings = Settings((0.01,), 2, refine=False, shadows=False, theory="none")
    scheme = FunctionTransformer()
    made = run(Job(data, costs.multiclass_softmax, scheme, preconditioned(), settings))
    assert 7 <= made.fit_seconds < 14  # that of the normalizer is real


def test_points_that_are_not_dense_in_memory_are_refused(data):
    mapped = replace(data, x=door.mapped(data.x))
    rule = preconditioned()
    with pytest.raises(UserError, match=r"optimizer=preconditioned: .* dense points in memory"):
        run(Job(mapped, costs.multiclass_softmax, FunctionTransformer(), rule, Settings((1.0,), 2)))


def test_points_in_single_precision_keep_it(data):
    found = descent_costs(data, "identity", preconditioned("standard"), precision="float32")
    np.testing.assert_allclose(
        found, descent_costs(data, "standard", PLAIN), rtol=1e-4
    )  # measured: 3e-6


@pytest.mark.parametrize("scheme", ["power", "quantile", "unit_norm", "contrast"])
def test_a_scheme_without_a_map_is_refused(data, scheme):
    with pytest.raises(UserError, match=r"optimizer.scheme=\w+: is not affine.*pca_sphere"):
        descent_costs(data, "identity", preconditioned(scheme))


def test_a_map_that_nobody_declares_is_found(data):
    doubled = FunctionTransformer(lambda x: 2 * x + 1)
    rule = optimizers.preconditioned(doubled)
    settings = Settings((0.01,), 20, refine=False, shadows=False)
    twins = [(FunctionTransformer(), rule), (doubled, PLAIN)]
    found = [run(Job(data, costs.multiclass_softmax, *twin, settings)).steps[0] for twin in twins]
    one, other = (step.histories["train/cost"] for step in found)
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("entry", ["pca_spere", {"standard": 1}, ["standard", "pca"], 3])
def test_a_scheme_that_does_not_exist_is_refused(entry):
    with pytest.raises(UserError):
        build("optimizer", options("optimizer", "preconditioned") | {"scheme": entry})
