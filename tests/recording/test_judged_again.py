"""What is read of a recorded run that is judged again, and what is said of one that is damaged."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.measures import FOLLOWS
from normbench.recording.reuse import rejudge
from normbench.recording.store.records import RecordHeader
from normbench.results.store.errors import ResultsError
from normbench.verdicts.convergence import Judgement, Rules
from normbench.verdicts.judging import Step

HEADER = RecordHeader("-", "e", "", {}, {})
PREDICTED, OF_THEORY = names.PREDICTED_COST.key, "theory/predicted_iterations_to_1e-1"


def histories(**changed):
    """The arrays of a descent of two step sizes, three starts and four iterations."""
    whole = {
        "step_sizes": np.array([0.1, 1.0]),
        "diverged_at": np.full((2, 3), -1),
        names.TRAIN_COST.key: np.ones((2, 3, 5)),
        FOLLOWS: np.empty((0, 2), str),
    }
    return {key: value for key, value in (whole | changed).items() if value is not None}


COST, COUNT = names.TRAIN_COST.key, names.TRAIN_MISCLASSIFICATIONS.key


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, None),
        ({COUNT: np.ones((2, 3, 5))}, None),
        ({COST: np.ones((2, 3, 1))}, None),
        ({"step_sizes": np.array([0.1, 0.0])}, "step sizes are none"),
        ({"step_sizes": np.array([0.1, -1.0])}, "step sizes are none"),
        ({"step_sizes": np.array([0.1, np.inf])}, "step sizes are none"),
        ({"step_sizes": np.array([0.1, np.nan])}, "step sizes are none"),
        ({"step_sizes": np.array([])}, "step sizes are none"),
        ({"step_sizes": np.array([[0.1, 1.0]])}, "step sizes are none"),
        ({"step_sizes": np.array(0.1)}, "step sizes are none"),
        ({"step_sizes": np.array([0.1, 1.0, 2.0])}, "not one for each"),
        ({"diverged_at": np.full(2, -1)}, "not one for each"),
        ({"diverged_at": np.full((2, 3, 1), -1)}, "not one for each"),
        ({"diverged_at": np.full((2, 0), -1), COST: np.ones((2, 0, 5))}, "not one for each"),
        ({"diverged_at": np.full((2, 2), -1)}, "not one for each"),
        ({COST: np.ones((2, 3, 0))}, "not one for each"),
        ({COST: np.ones((2, 3))}, "not one for each"),
        ({COST: None}, "not one for each"),
        ({COUNT: np.ones((2, 3, 4))}, "not one for each"),
    ],
    ids=range(19),
)
def test_arrays_are_those_of_a_descent_by_their_shapes(changed, words):
    if words is None:
        rejudge._check(histories(**changed))
        return
    with pytest.raises(ValueError, match=words):
        rejudge._check(histories(**changed))


def recorded_run(arrays, **more):
    return SimpleNamespace(
        arrays={names.DESCENT_ARRAYS: arrays} if arrays else {},
        run_id="r",
        row={"label": "standard", **more},
    )


def test_a_run_without_a_descent_cannot_be_judged_again():
    assert rejudge.rejudge_run(recorded_run(None), HEADER, {}) is None


def test_damage_is_told_in_a_line_of_bounded_length():
    broken = histories(step_sizes=np.array([]))
    with pytest.raises(ResultsError) as raised:
        rejudge.rejudge_run(recorded_run(broken), HEADER, {})
    assert str(raised.value) == (
        "run r (standard): what it keeps of its descent is damaged, and cannot be judged again "
        "(ValueError: its step sizes are none)"
    )


def test_a_long_reason_of_damage_is_cut_off(monkeypatch):
    def fail(arrays):
        raise LookupError("two\n  words " + "x" * 500)

    monkeypatch.setattr(rejudge, "_check", fail)
    with pytest.raises(ResultsError) as raised:
        rejudge.rejudge_run(recorded_run(histories()), HEADER, {})
    reason = str(raised.value).partition("(LookupError: ")[2].removesuffix(")")
    assert reason.startswith("two words xxx")
    assert len(reason) == 160


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.1", 0.1), ("None", None), ("[1, 2]", [1, 2]), ("normal", "normal"), ("1e", "1e"), (3, 3)],
)
def test_a_parameter_is_a_number_or_the_text_that_it_is(text, value):
    assert rejudge.literal(text) == value


def test_rules_are_read_of_the_parameters_that_are_rules():
    params = {"rules.tail": "0.2", "rules.least_tail": 7, "iterations": "100", "theory": "auto"}
    assert rejudge.rules_of(params) == Rules(tail=0.2, least_tail=7)
    assert rejudge.rules_of({}) == Rules()


def step(size):
    return Step(size, Judgement("converged"), {}, {}, {}, ("converged",), {"own": 1.0})


def test_a_step_size_has_its_recorded_predictions_again():
    prefix = names.METRICS
    steps = pd.DataFrame(
        {
            "run_id": ["a", "b"],
            f"{prefix}{PREDICTED}": [0.25, np.nan],
            f"{prefix}{OF_THEORY}": [7.0, np.nan],
            f"{prefix}final/train_cost": [0.5, 0.5],
        },
        index=[0.1, 1.0],
    )
    asked = []

    def series(run_id, name):
        asked.append((run_id, name))
        return {0: 1.0, 1: 0.5, 4: 0.25}

    run = SimpleNamespace(steps=steps, sweep=SimpleNamespace(series=series))
    known = rejudge._with_theory(run, step(0.1))
    assert known.metrics == {"own": 1.0, OF_THEORY: 7.0}
    assert [*known.series] == [PREDICTED]
    np.testing.assert_array_equal(known.series[PREDICTED], [1, 0.5, np.nan, np.nan, 0.25])
    assert asked == [("a", PREDICTED)]
    unpredicted = rejudge._with_theory(run, step(1.0))
    assert (unpredicted.metrics, unpredicted.series) == ({"own": 1.0}, {})
    deleted = step(10.0)
    assert rejudge._with_theory(run, deleted) is deleted
