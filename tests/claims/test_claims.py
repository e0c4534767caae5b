"""Every sentence that is said of bundled and the textbook's data is true.

See `tests.claims.claims` for those on a scheme, `tests.claims.closing` for those on them all.
"""

import re
import warnings

import pytest

from normbench.choices import CONF, build, import_target, options
from normbench.datasets import split
from normbench.engine.settings import Settings
from tests import door
from tests.claims import closing
from tests.claims.claims import check
from tests.claims.jury import Jury
from tests.datasets.places import data_folder

SCHEMES = sorted({file.stem for file in (CONF / "normalizer").glob("*.yaml")} - {"chain"})
COSTS = (
    "softmax",
    "multiclass_softmax",
    "least_squares",
    "squared_margin",
    "multiclass_perceptron",
)
HELD_OUT = {"multiclass_softmax": 0.25, "squared_margin": 0.25, "least_squares": 0.25}
BUNDLED = ("breast_cancer", "iris", "wine", "digits", "diabetes")
TEXTBOOK = ("breast_cancer", "linear_regression", "multirange_regression", "one_feature")
TEXTBOOK = tuple(f"{name}_textbook" for name in (*TEXTBOOK, "three_classes", "four_classes"))
SIZES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)


def judged(dataset, cost, scheme, iterations, refine="auto", shared=None):
    function = import_target("cost", options("cost", cost)["_target_"])
    settings = Settings(SIZES, iterations, refine=refine)
    return scheme, *door.judge(dataset, function, scheme, settings, shared)


def sweep(data, schemes, costs, iterations, refine="auto"):
    """Return sentences said, claims checked, and the false ones, over all that fit together.

    Of every scheme, and of all schemes of a data set and cost together.
    """
    said = claims = 0
    false = []
    for name in data:
        every = build("dataset", {**options("dataset", name), **data[name]})
        for cost in costs:
            function = import_target("cost", options("cost", cost)["_target_"])
            if every.task not in door.traits(function).tasks:
                continue
            dataset = split(every, HELD_OUT.get(cost, 0.0), 0)
            shared = door.Cache(dataset.x)
            made = []
            for scheme in schemes:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of schemes on data that do not suit them
                    made.append(judged(dataset, cost, scheme, iterations, refine, shared))
            found = [(scheme, *check(job, outcome)) for scheme, job, outcome in made]
            found.append(("all", *closing.check(f"{name}-{cost}", made)))
            for scheme, sentences, checked, wrong in found:
                said, claims = said + sentences, claims + checked
                false += [(name, cost, scheme, *each) for each in wrong]
    print(f"sentences said: {said}, claims checked: {claims}, false: {len(false)}")
    return said, claims, false


@pytest.mark.commands
def test_what_is_said_of_iris_and_breast_cancer_is_true():
    schemes = ("identity", "standard", "maxabs", "pca", "pca_sphere", "unit_norm")
    said, claims, false = sweep({"iris": {}}, schemes, COSTS, 60)
    more = sweep({"breast_cancer": {}}, ("standard", "zca_sphere"), ("softmax",), 60, True)
    assert not [*false, *more[2]]
    assert said + more[0] > 130
    assert claims + more[1] > 400


WRONG = {
    "by_cost": [
        (r"0\.0", "0.1"),
        (r"converged", "not converged"),
        (r"at step size \d+", "at step size 7"),
    ],
    "by_count": [
        (r"(\d+) misclassified", r"1\1 misclassified"),
        (r"standard, (.*); (\w+),", r"\2, \1; standard,"),
    ],
    "fastest": [(r"standard", "identity"), (r"^$", " on this grid")],
    "takes": [
        *((r"identity", "standard"), (r"^(\d+) it", r"9\1 it"), (r"99 %", "90 %")),
        *((r"step size ", "step size 9"), (r"in 60", "in 61")),
        (r"did not get there", "did not get there for certain on this grid"),
    ],
    "why": [(r"^(\d)", r"9\1"), (r"valley", "stretched")],
    "by_rounding": [(r"^\d$", "9"), (r"^12$", "13"), (r"^are$", "is")],
    "largest_convergent": [(r"10+", "0.001")],
    "thresholds": [(r"standard", "identity"), (r"1\.", "2.")],
    "goes_from": [(r"identity", "standard"), (r"^(\d)", r"9\1")],
    "converging": [(r"standard (\d)", r"standard 9\1"), (r"^6$", "5")],
}


@pytest.fixture(scope="module")
def compared():
    """Iris under two schemes, by costs and by a count."""
    iris = build("dataset", options("dataset", "iris"))
    return {
        cost: [judged(iris, cost, scheme, 60, True) for scheme in ("identity", "standard")]
        for cost in ("multiclass_softmax", "multiclass_perceptron", "least_squares")
    }


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("name", WRONG)
def test_a_sentence_with_a_wrong_number_or_name_is_found_out(compared, name):
    """The check can fail: each word that is put in place of the true one makes a claim false."""
    for made in compared.values():
        for said, values in closing.said(door.compared("iris", made)):
            if said == name:
                judges = Jury(made)
                assert all(closing.CHECKS[name](judges, values))
                for true, false in WRONG[name]:
                    for field, text in values.items():
                        other = re.sub(true, false, text, count=1)
                        if other != text:
                            assert not all(closing.CHECKS[name](judges, {**values, field: other}))
                            break
                    else:
                        pytest.fail(f"{true} is not in {values}")
                return
    pytest.fail(f"{name} is not said")


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize("data", BUNDLED)
def test_what_is_said_of_all_bundled_data_is_true(data):
    _, claims, false = sweep({data: {}}, SCHEMES, COSTS, 100)
    assert claims
    assert not false


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize("data", TEXTBOOK)
def test_what_is_said_of_the_textbook_s_data_is_true(data):
    _, claims, false = sweep({data: {"data_dir": str(data_folder())}}, SCHEMES, COSTS, 100)
    assert claims
    assert not false
