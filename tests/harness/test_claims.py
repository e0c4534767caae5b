"""Every sentence that is said of bundled data is true: see `tests.harness.claims`."""

import warnings

import pytest

from normbench.choices import CONF, build, locate, options
from normbench.costs.declaration import traits
from normbench.engine.settings import Settings
from normbench.job import Job, run, with_default_start
from tests.harness.claims import check

SCHEMES = sorted({file.stem for file in (CONF / "normalizer").glob("*.yaml")} - {"chain"})
COSTS = (
    "softmax",
    "multiclass_softmax",
    "least_squares",
    "squared_margin",
    "multiclass_perceptron",
)
DATA = {"breast_cancer": "binary", "iris": "multiclass", "wine": "multiclass"}
DATA |= {"digits": "multiclass", "diabetes": "regression"}
SIZES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)


def sweep(data, schemes, costs, iterations):
    """Return sentences said, claims checked, and the false ones, over all that fit together."""
    said = claims = 0
    false = []
    for name in data:
        dataset = build("dataset", options("dataset", name))
        for cost in costs:
            function = locate("cost", options("cost", cost)["_target_"])
            if DATA[name] not in traits(function).tasks:
                continue
            for scheme in schemes:
                job = Job(
                    dataset,
                    function,
                    build("normalizer", options("normalizer", scheme)),
                    build("optimizer", options("optimizer", "gradient_descent")),
                    Settings(SIZES, iterations),
                )
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of schemes on data that do not suit them
                    job = with_default_start(job)
                    sentences, checked, wrong = check(job, run(job))
                said, claims = said + sentences, claims + checked
                false += [(name, cost, scheme, *each) for each in wrong]
    print(f"sentences said: {said}, claims checked: {claims}, false: {len(false)}")
    return said, claims, false


def test_what_is_said_of_iris_and_breast_cancer_is_true():
    schemes = ("identity", "standard", "maxabs", "pca", "pca_sphere", "unit_norm")
    said, claims, false = sweep(("iris",), schemes, COSTS, 60)
    more = sweep(("breast_cancer",), ("standard", "zca_sphere"), ("softmax",), 60)
    assert not [*false, *more[2]]
    assert said + more[0] > 100
    assert claims + more[1] > 200


@pytest.mark.slow
@pytest.mark.parametrize("data", DATA)
def test_what_is_said_of_all_bundled_data_is_true(data):
    _, claims, false = sweep((data,), SCHEMES, COSTS, 100)
    assert claims
    assert not false
