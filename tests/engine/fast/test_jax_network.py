"""Networks compiled by JAX: histories equal to those without it."""

import os

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from normbench import costs, optimizers
from normbench.datasets import UserError, make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, check, run
from normbench.models import Mlp, linear

VARIANTS = [
    {"normalize": "none", "activation": "relu"},
    {"normalize": "batch", "activation": "sigmoid"},
    {"normalize": "batch", "epsilon": "textbook", "place": "after", "affine": False},
    {"normalize": "batch", "statistics": "running"},
    {"normalize": "layer", "activation": "maxout"},
    {"normalize": "weight", "activation": "lecun_tanh"},
    {"normalize": "newton", "groups": 2},
]


@pytest.fixture(scope="module")
def jax():
    """Return JAX, whose import sets variables of the environment."""
    environment = dict(os.environ)
    yield pytest.importorskip("jax", reason="JAX is not installed")
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
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
