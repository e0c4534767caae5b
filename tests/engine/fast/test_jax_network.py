"""Networks compiled by JAX: histories equal to those without it."""

import os

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad
from sklearn.preprocessing import StandardScaler

from normbench import costs, optimizers
from normbench.costs import count_misclassified, softmax
from normbench.costs.misclassifications import mark_correct
from normbench.datasets import UserError, make_dataset
from normbench.engine.fast import threaded_network
from normbench.engine.fast.jax_network import JaxNetwork, check_traceable, translate
from normbench.engine.network import Network
from normbench.engine.settings import Settings
from normbench.job import Job, check, run
from normbench.models import Mlp, linear
from normbench.models.formulas import Formulas
from normbench.rehearsal import rehearse
from tests.cases import COSTS, FEW_CASES, classifies, formula
from tests.costs.test_costs import SCORES, plain_derivative, scores_for, targets_for

VARIANTS = [
    {"normalize": "none", "activation": "relu"},
    {"normalize": "batch", "activation": "sigmoid"},
    {"normalize": "batch", "epsilon": "textbook", "place": "after", "affine": False},
    {"normalize": "batch", "statistics": "running"},
    {"normalize": "layer", "activation": "maxout"},
    {"normalize": "weight", "activation": "lecun_tanh"},
    {"normalize": "newton", "groups": 2},
    {"normalize": "batch", "statistics": "batch"},
]


@pytest.fixture(scope="module")
def jax():
    """Return JAX with numbers of 64 bits; its import sets variables of the environment."""
    environment = dict(os.environ)
    module = pytest.importorskip("jax", reason="JAX is not installed")
    module.config.update("jax_enable_x64", True)
    yield module
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def data(rng):
    x = rng.standard_normal((60, 4))
    y = (x[:, 0] * x[:, 1] > 0) + (x[:, 2] > 0.5)
    return make_dataset("drawn", x, y, class_names=[*"abc"], source="-")


def job(data, model, engine, cost=costs.multiclass_softmax, **settings):
    chosen = {"start": "normal", "starts": 2, "theory": "none", "shadows": False, **settings}
    rule = optimizers.gradient_descent()
    return Job(
        data,
        cost,
        StandardScaler(),
        rule,
        Settings((0.1, 0.5), 20, **chosen),
        model=model,
        engine=engine,
    )


def histories(outcome):
    return np.array([step.histories["train/cost"] for step in outcome.steps])


@pytest.mark.slow  # JAX compiles for seconds
@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_histories_are_those_of_autograd(jax, data, options):
    model = Mlp([6, 4], **options)
    batch = 13 if model.statistics == "running" or model.normalize == "none" else None
    expected, compiled = (
        histories(run(job(data, model, engine, batch=batch))) for engine in ("fast", "jax")
    )
    np.testing.assert_allclose(compiled, expected, rtol=1e-9)


@pytest.mark.slow
def test_normalized_scores_of_the_linear_model_are_compiled_too(jax, data):
    targets = data.x @ [1.0, 2.0, 0.0, -1.0] + np.sin(np.arange(60))
    real = make_dataset("real", data.x, targets, source="-")
    model = linear("batch", affine="solved")
    expected, compiled = (
        histories(run(job(real, model, engine, costs.least_squares))) for engine in ("fast", "jax")
    )
    np.testing.assert_allclose(compiled, expected, rtol=1e-9)


@pytest.mark.slow
def test_a_gpu_is_used_where_there_is_one(jax, data):
    if jax.default_backend() == "cpu":
        pytest.skip("there is no GPU")
    model = Mlp([6], normalize="batch")
    expected, compiled = (histories(run(job(data, model, engine))) for engine in ("fast", "jax"))
    np.testing.assert_allclose(compiled, expected, rtol=1e-8)


def softened(scores, targets):
    """A cost in two functions, of the kind that a user writes."""
    return anp.sum(margins(scores, targets) ** 2, axis=-1)


def margins(scores, targets, *, least=0.5):
    return anp.maximum(0.0, least - targets * scores[:, 0]) + softmax(scores, targets)[:, None]


def powers(scores, targets, count=3):
    """A cost whose functions call each other, as a loop may be written."""
    return anp.sum(products(scores[:, 0] - targets, count), axis=-1)


def products(scores, count):
    return anp.ones_like(scores) if count == 0 else factors(scores, count)


def factors(scores, count):
    return anp.abs(scores) * products(scores, count - 1)


def branching(scores, targets):
    return softmax(scores, targets) if scores[0, 0, 0] > 0 else anp.sum(scores, axis=(1, 2))


def problem(cost, classes, classify, rng, x=None, **options):
    x = rng.standard_normal((19, 4)) if x is None else x
    names = {value: name for name, value in COSTS.items()}
    targets = targets_for(names.get(cost, "softmax"), classes, len(x), rng, x.dtype)
    network = Network(Mlp([5], **options), cost, x, targets, classify, classes, l2=0.01)
    return network, network.model.start(network.layout, 3, rng)


def assert_equal_evaluations(network, weights, rtol=1e-12):
    for with_gradient in (True, False):
        expected = network.evaluate(weights, with_gradient)
        compiled = JaxNetwork.around(network).evaluate(weights, with_gradient)
        np.testing.assert_allclose(compiled.costs, expected.costs, rtol=rtol)
        np.testing.assert_array_equal(compiled.misclassifications, expected.misclassifications)
        if with_gradient:
            np.testing.assert_allclose(compiled.gradient, expected.gradient, rtol, 10 * rtol)


@pytest.mark.parametrize(("name", "classes"), FEW_CASES)
def test_every_cost_is_compiled(jax, rng, name, classes):
    cost = COSTS[name]
    assert_equal_evaluations(*problem(cost, classes, classifies(cost, classes), rng))


@pytest.mark.parametrize(("name", "classes"), FEW_CASES)
def test_costs_and_derivatives_at_kinks_are_those_of_autograd(jax, rng, name, classes):
    kinds = [scores_for(kind, (2, classes, 31), rng) for kind in SCORES]
    scores = np.concatenate(kinds, axis=2)
    targets = targets_for(name, classes, scores.shape[2], rng)
    expected, slopes = plain_derivative(COSTS[name], scores, targets)

    @jax.jit
    def differentiate(scores, targets):
        values, pull_back = jax.vjp(lambda s: translate(COSTS[name])(s, targets), scores)
        return values, pull_back(np.ones(2))[0]

    values, derivative = differentiate(scores, targets)
    np.testing.assert_allclose(values, expected, rtol=1e-14)
    np.testing.assert_allclose(derivative, slopes, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    "cost", [formula(softmax), softened, powers], ids=["plain", "two functions", "in a circle"]
)
def test_a_cost_of_the_users_own_is_compiled(jax, rng, cost):
    assert_equal_evaluations(*problem(cost, 1, True, rng))


def test_a_rehearsal_refuses_a_cost_of_the_wrong_shape(jax, data):
    def wrong(scores, targets):
        return anp.sum(scores, axis=(0, 1))

    with pytest.raises(UserError, match=r"cost wrong: gives shape \(60,\) for 1 runs"):
        rehearse(job(data, Mlp([6]), "jax", wrong))


def test_costs_in_float32_are_added_up_in_float64(jax, rng):
    x = rng.standard_normal((5_000, 4)).astype(np.float32)
    network, weights = problem(costs.multiclass_softmax, 3, True, rng, x)
    weights = weights.astype(np.float32)
    compiled = JaxNetwork.around(network).evaluate(weights)
    assert (compiled.costs.dtype, compiled.gradient.dtype) == (np.float64, np.float32)
    np.testing.assert_allclose(compiled.costs, network.evaluate(weights).costs, rtol=1e-7)


def test_threads_share_the_compiled_runs(jax, rng, monkeypatch):
    monkeypatch.setattr(threaded_network, "PARALLEL_ACTIVATIONS", 1)
    monkeypatch.setattr(threaded_network.threads, "available_threads", lambda: 3)
    assert_equal_evaluations(*problem(costs.multiclass_softmax, 3, True, rng))


def test_misclassified_points_are_counted_by_the_same_rules(jax):
    nan = np.nan
    x = np.array([[1.0, 1, 0], [1, 1, 0], [0, 2, 2], [nan, 0, 0], [0, nan, 1], [0, 1, nan]])
    targets = np.array([0, 1, 1, 0, 1, 1])
    compiled = jax.jit(translate(mark_correct))
    assert (~np.asarray(compiled(x.T[None], targets))).sum() == 4
    assert count_misclassified(x.T[None], targets) == 4
    one = np.array([[[2.0, -1.0, 0.0, 0.0, nan]]])
    assert (~np.asarray(compiled(one, np.array([1.0, 1, 1, -1, 1])))).sum() == 4


def test_rounding_does_not_drop_the_derivative_of_a_maximum(jax, rng):
    """JAX's own loses it where a program computes an entry twice (see its issue 40564)."""
    from normbench.engine.fast import jax_numpy

    h, (gain, shift) = rng.standard_normal((1, 12, 60)), rng.standard_normal((2, 1, 12, 1))

    def largest(values, numpy):
        standardized = Formulas(numpy).standardize(values, 1, 1e-5, (gain, shift))
        maps = numpy.reshape(standardized, (1, 2, 6, 60))
        return numpy.sum(numpy.sin(numpy.max(maps, axis=1)))

    slopes = jax.jit(jax.grad(lambda values: largest(values, jax_numpy)))(h)
    expected = grad(lambda values: largest(values, anp))(h)
    np.testing.assert_allclose(slopes, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    "options", [{"axis": 1}, {"axis": -1, "keepdims": True}, {"keepdims": True}, {}], ids=str
)
@pytest.mark.parametrize("name", ["max", "min"])
def test_the_largest_and_smallest_share_derivatives_among_equals(jax, rng, name, options):
    from normbench.engine.fast import jax_numpy

    x = np.round(rng.standard_normal((3, 4, 6)))
    extreme, plain = getattr(jax_numpy, name), getattr(anp, name)
    slopes = jax.jit(jax.grad(lambda array: extreme(array, **options).sum()))(x)
    expected = grad(lambda array: anp.sum(plain(array, **options)))(x)
    np.testing.assert_allclose(slopes, expected, rtol=1e-15)
    np.testing.assert_array_equal(extreme(x, **options), plain(x, **options), strict=True)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_the_larger_and_smaller_share_derivatives_where_equal(jax, rng, name):
    from normbench.engine.fast import jax_numpy

    x, other = np.round(rng.standard_normal((2, 3, 40)))
    extreme, plain = getattr(jax_numpy, name), getattr(anp, name)
    slopes = jax.jit(jax.grad(lambda array: extreme(array, other).sum()))(x)
    np.testing.assert_array_equal(slopes, grad(lambda array: anp.sum(plain(array, other)))(x))
    np.testing.assert_array_equal(extreme(x, other), plain(x, other))


def test_targets_of_one_score_are_tried_as_real_numbers(jax):
    def relative(scores, targets):
        return anp.sum((scores[:, 0] * targets**-1 - 1) ** 2, axis=1)

    def indexed(scores, targets):
        return anp.sum(-scores[:, targets, anp.arange(2)], axis=1)

    check_traceable(relative, 1)
    check_traceable(indexed, 3)
    with pytest.raises(UserError, match="cannot compile cost=indexed"):
        check_traceable(indexed, 1)


def test_a_cost_that_cannot_be_compiled_is_refused_before_the_run(jax, data):
    binary = make_dataset("two", data.x, (data.x[:, 0] > 0).astype(int), source="-")
    with pytest.raises(UserError, match=r"cannot compile cost=branching: .*use engine=fast"):
        check(job(binary, Mlp([4]), "jax", branching))
    check(job(binary, Mlp([4]), "fast", branching))


@pytest.mark.parametrize(
    ("model", "message"),
    [(None, "is for networks"), (Mlp([4], normalize="zca"), "has no model.normalize=zca")],
)
def test_jax_is_for_networks_without_eigenvectors(data, model, message):
    with pytest.raises(UserError, match=message):
        check(job(data, model, "jax"))


def test_jax_is_asked_for_where_it_is_not_installed(data, monkeypatch):
    monkeypatch.setattr("normbench.route.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'normbench\[jax\]'"):
        check(job(data, Mlp([4]), "jax"))
