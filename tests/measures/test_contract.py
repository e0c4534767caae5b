"""What a job hands to its measures: further runs, the path, shadows, points, and refusals."""

from types import SimpleNamespace

import numpy as np
import pytest

from normbench import measures, names
from normbench.datasets import UserError, make_dataset
from normbench.engine.descent import Histories
from normbench.measures import judged
from normbench.measures.contract import (
    Findings,
    FinishedJob,
    JudgedDescent,
    Measure,
)


def histories(cost, diverged_at, shadows=()):
    """Return histories of costs alone."""
    cost = np.array(cost, dtype=float)
    weights = np.zeros((len(cost), 1, 2))
    return Histories(cost, None, None, None, np.array(diverged_at), weights, shadows=dict(shadows))


def test_the_best_weights_are_those_of_the_first_start():
    weights = np.arange(12.0).reshape(6, 1, 2)  # of three step sizes and two starts
    descent = SimpleNamespace(best_run=4, histories=SimpleNamespace(weights=weights))
    assert JudgedDescent.best_weights.fget(descent).tolist() == [[8, 9]]


@pytest.mark.parametrize(
    ("plain", "full_batch", "told"), [(1, 1, True), (1, 0, False), (0, 1, False)]
)
def test_a_descent_is_plain_where_its_rule_is_and_it_sees_all_points(plain, full_batch, told):
    descent = SimpleNamespace(
        optimizer=SimpleNamespace(plain=bool(plain)),
        plan=SimpleNamespace(batches=None if full_batch else "batches"),
    )
    assert JudgedDescent.plain.fget(descent) == told


@pytest.mark.parametrize("points", [0, 40])
def test_shadows_are_told_by_their_ends_and_the_iterations_to_each_target(points):
    """Run 0 has two shadows, of which one diverges; run 2 has one; run 1 has none."""
    nan, inf = np.nan, np.inf
    shadows = {
        0: np.array([[9.0, 5.0, 1.0], [9.0, 4.0, nan]]),
        2: np.array([[9.0, 0.5, 3.0]]),  # it reaches 2 and leaves it again
    }
    bench = SimpleNamespace(targets={"near": 2.0, "far": 5.0}, compared_points=points)
    made = judged.shadows_of(histories(np.ones((3, 3)), [-1] * 3, shadows), bench)
    np.testing.assert_array_equal(made.ends, [[1, inf], [nan, nan], [3, nan]])
    near, far = [[2, inf], [nan, nan], [inf, nan]], [[1, inf], [nan, nan], [1, nan]]
    if points:  # what shadows record is no count of points
        near = far = [[inf, inf], [nan, nan], [inf, nan]]
    np.testing.assert_array_equal(made.reached["near"], near)
    np.testing.assert_array_equal(made.reached["far"], far)
    assert judged.shadows_of(histories(np.ones((3, 3)), [-1] * 3), bench) is None


def test_histories_that_there_are_not_have_no_name():
    made = histories([[2.0, 1.0]], [-1])
    assert judged.histories_by_key(made) == {names.TRAIN_COST.key: made.cost}


def test_points_in_memory_stand_for_themselves():
    x = np.array([[1.0, 2.0], [5.0, 6.0]])
    job = FinishedJob(make_dataset("two", x, source="-"), None, 3 * x, None)
    assert job.shown_points is job


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ""),
        (
            {"lacks": lambda dataset, scheme: "it all"},
            "record=it: needs it all; made has 4 points of 3 features, and no targets; the",
        ),
        ({"features": (1, 2)}, "needs 1 to 2 features; .* the normalizer is object; leave it out$"),
    ],
)
def test_a_measure_that_cannot_be_taken_says_why(options, words):
    data = make_dataset("made", np.ones((4, 3)), source="-")
    measure = Measure(None, record="it", **options)
    if not words:
        measure.check(data, object())
        return
    with pytest.raises(UserError, match=words):
        measure.check(data, object())


@pytest.mark.parametrize(
    ("record", "iterations", "told"),
    [(("points",), 0, True), (("points",), 1, False), ((), 0, False)],
)
def test_a_job_is_without_a_descent_where_it_records_and_makes_no_step(record, iterations, told):
    settings = SimpleNamespace(record=record, iterations=iterations)
    assert measures.without_descent(settings) == told


def test_arrays_are_kept_by_the_name_of_their_measure_and_others_with_the_descent():
    """What is kept with the descent says which of it follows the judging."""
    found = {
        "alone": Findings({"a": 1.0}, arrays={"x": np.ones(1)}),
        "": Findings({"b": 2.0}, {"t": "word"}, {"s": (np.ones(1), np.ones(1))}),
    }
    arrays = Findings(arrays={"y": np.zeros(1)})
    taken = [
        Measure(lambda job: found["alone"], record="alone", of_descent=False, depends_on="best"),
        Measure(lambda job: found[""], of_descent=False, depends_on="rules"),
        Measure(lambda job: arrays, of_descent=False, depends_on="verdicts"),
        Measure(lambda job: Findings(arrays={"z": np.ones(2)}), of_descent=False),
    ]
    job = SimpleNamespace(judged_descent=None, shown_points=SimpleNamespace(z=[]), z=[])
    settings = SimpleNamespace(record=("alone",))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(measures, "measures", lambda: taken)
        merged, kept = measures.take(job, settings)
    assert [*kept] == ["alone", names.DESCENT_ARRAYS]
    assert [*kept["alone"]] == ["x"]
    assert [*kept[names.DESCENT_ARRAYS]] == ["y", "z", measures.FOLLOWS]
    follows = {"a": "best", "alone": "best", "b": "rules", "t": "rules", "s": "rules"}
    assert merged.depends_on == follows | {"y": "verdicts"}  # nothing of z depends on the judging
    assert kept[names.DESCENT_ARRAYS][measures.FOLLOWS].tolist() == [
        [*row] for row in merged.depends_on.items()
    ]
    assert (merged.metrics, merged.tags) == ({"a": 1.0, "b": 2.0}, {"t": "word"})
