"""A penalty on the weights of the features: all affine schemes then minimize the same function."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from normbench import costs
from normbench.choices import build, options
from normbench.datasets import UserError, make_dataset
from normbench.datasets.bundled import breast_cancer, diabetes, iris
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.normalizers import PCASphere
from normbench.optimizers import gradient_descent
from normbench.rehearsal import rehearse
from normbench.settings import powers_of_ten
from tests import door
from tests.cases import names

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
