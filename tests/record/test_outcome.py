"""The record of a job: what is written of its outcome, entry by entry."""

import json
from dataclasses import replace

import numpy as np
import pytest

from normbench import names
from normbench.datasets import make_dataset
from normbench.job import Outcome
from normbench.measures.contract import Findings
from normbench.record import outcome as records
from normbench.record import thinned
from normbench.verdicts.convergence import Judgement
from normbench.verdicts.judging import Step

TAGS = {names.NORMALIZER.key: "standard", names.DATASET.key: "d", names.DESCENT.key: "0"}
HEADER = records.RecordHeader("x", {"iterations": 1}, TAGS, ("a note",))
REACHED = names.reached("1e-2").key
COST, COUNT = names.TRAIN_COST.key, names.TRAIN_MISCLASSIFICATIONS.key


def step(size, iterations=3.0, verdict="converged", costs=(1.0, 0.1), starts=1, **fields):
    """Return a step size with one history of the cost."""
    judgement = Judgement(verdict, fields.pop("reason", ""), fields.pop("falls", True))
    histories = {COST: np.array(costs), **fields.pop("histories", {})}
    verdicts, metrics = (verdict,) * starts, {REACHED: iterations}
    return Step(size, judgement, histories, {}, fields.pop("of_starts", {}), verdicts, metrics)


def record_of(steps, best=None, findings=None, **fields):
    outcome = Outcome(tuple(steps), best, None, 2, 0.25, 0.5, findings or Findings(), **fields)
    return records.build_record(HEADER, {"name": "d"}, outcome)


def values(run, key):
    return [(value, k) for name, value, k in run.metrics if name == key]


def test_the_iterations_to_a_target_are_those_of_the_best_step_size_for_it():
    """The step size that is shown is the first to the lowest cost, not the first to 1e-2."""
    findings = Findings(metrics={REACHED: 3.0})
    record = record_of([step(0.1, 9.0), step(1.0, 3.0)], 0, findings)
    assert values(record.scheme, REACHED) == [(3.0, 0)]
    assert [values(run, REACHED) for run in record.steps] == [[(9.0, 0)], [(3.0, 0)]]


def test_the_run_of_a_scheme_has_the_outcome_of_its_best_step_size():
    steps = [
        step(0.1, np.nan, "not converged", falls=False),
        step(1.0, histories={COUNT: np.array([4.0, 2.0])}),
        step(10.0, np.nan, "diverged", (1.0, np.inf), reason="too large"),
        step(2.0, np.nan, names.BY_ROUNDING, (1.0, 0.5)),
    ]
    record = record_of(steps, 1, seconds_a_step=0.125)
    assert (record.experiment, record.notes) == ("x", ["a note"])
    assert record.params == {"iterations": "1"}
    assert record.dataset == {"name": "d"}
    assert record.scheme.tags == {
        **TAGS,
        names.VERDICT.key: "converged",
        names.STEP_TAG.key: "1",
        names.EXPLANATION.key: (
            "Theory promises no step size here: there is none. The best step size is 1 (converged)."
        ),
    }
    assert values(record.scheme, COST) == [(1.0, 0), (0.1, 1)]
    assert values(record.scheme, names.FINAL_COST.key) == [(0.1, 0)]
    for metric, value in (
        (names.FIT_SECONDS, 0.25),
        (names.DESCENT_SECONDS, 0.5),
        (names.SECONDS_A_STEP, 0.125),
        (names.STEPS_TRIED, 4.0),
        (names.STEPS_DIVERGED, 1.0),
        (names.STEPS_BY_ROUNDING, 1.0),
    ):
        assert values(record.scheme, metric.key) == [(value, 0)]
    # For charts over the grid: step sizes that stayed finite, as powers of ten.
    assert values(record.scheme, names.GRID_STEP_SIZE.key) == [(-1.0, 0), (0.0, 1)]
    assert values(record.scheme, names.grid(names.TRAIN_COST).key) == [(0.1, 0), (0.1, 1)]
    assert values(record.scheme, names.grid(names.TRAIN_MISCLASSIFICATIONS).key) == [(2.0, 1)]


def test_the_run_of_a_step_size_has_its_own_tags_and_not_those_of_the_job():
    steps = [step(0.1), step(10.0, np.nan, "diverged", (1.0, np.inf), reason="up", falls=False)]
    best, lost = record_of(steps, 0).steps
    assert best.name == "standard, step 0.1"
    assert best.tags == {
        names.NORMALIZER.key: "standard",
        names.DATASET.key: "d",
        names.STEP_TAG.key: "0.1",
        names.VERDICT.key: "converged",
        names.BEST.key: "true",
        names.FALLS.key: "true",
    }
    assert (lost.tags[names.BEST.key], lost.tags[names.FALLS.key]) == ("false", "false")
    assert lost.tags[names.REASON.key] == "up"
    assert values(lost, names.STEP_SIZE.key) == [(10.0, 0)]
    assert values(lost, COST) == [(1.0, 0)]  # what is not finite is not written


def test_the_last_value_of_a_history_is_its_final_one():
    record = record_of([step(1.0, costs=(1.0, 0.5, 0.25, 0.1))], 0)
    for run in (record.scheme, *record.steps):
        assert values(run, names.FINAL_COST.key) == [(0.1, 0)]
    assert values(record.scheme, names.grid(names.TRAIN_COST).key) == [(0.1, 0)]


def test_long_quartiles_of_several_starts_are_written_whole():
    count = thinned.MAX_POINTS + 50
    quartiles = np.linspace([1.0, 2.0], [0.1, 0.2], count).T
    several = replace(step(1.0, costs=np.ones(count), starts=2), quartiles={COST: quartiles})
    (run,) = record_of([several], 0).steps
    for number, quartile in enumerate(names.QUARTILES):
        written = values(run, names.quartile(names.TRAIN_COST, quartile).key)
        assert [value for value, _ in written] == quartiles[number].tolist()


@pytest.mark.parametrize("verdicts", [["diverged", names.BY_ROUNDING], ["diverged"] * 2])
def test_a_scheme_without_a_best_step_size_has_its_reason(verdicts):
    record = record_of([step(1.0, np.nan, verdict) for verdict in verdicts])
    verdict = min(verdicts, key=names.UNRANKED.index)
    assert record.scheme.tags[names.VERDICT.key] == verdict
    assert record.scheme.tags[names.REASON.key] == records.REASON_WITHOUT_BEST[verdict]


def test_a_job_without_a_descent_has_no_verdict():
    record = record_of([], arrays={"points": {}, "spectrum": {}})
    assert names.VERDICT.key not in record.scheme.tags
    assert record.scheme.tags[names.RECORDED.key] == "points,spectrum"
    assert values(record.scheme, names.SECONDS_A_STEP.key) == []  # NaN
    assert record.steps == []


@pytest.mark.parametrize("starts", [2, 3])
def test_the_ends_of_several_starts_are_written_by_their_numbers(starts):
    ends = {names.START_COST.key: np.array([0.1, np.nan, 0.3][-starts:])}
    (several,) = record_of([step(1.0, starts=starts, of_starts=ends)], 0).steps
    assert several.tags[names.START_VERDICTS.key] == ", ".join(["converged"] * starts)
    written = {2: [(0.3, 1)], 3: [(0.1, 0), (0.3, 2)]}  # what is finite
    assert values(several, names.START_COST.key) == written[starts]
    (one,) = record_of([step(1.0, of_starts=ends)], 0).steps
    assert names.START_VERDICTS.key not in one.tags
    assert values(one, names.START_COST.key) == []


@pytest.mark.parametrize(("starts", "is_thinned"), [(1, True), (2, False)])
def test_a_long_history_of_one_start_is_thinned(starts, is_thinned):
    costs = np.linspace(1.0, 0.1, thinned.MAX_POINTS + 50)
    long = record_of([step(1.0, costs=costs, starts=starts)], 0)
    (run,) = long.steps
    assert (run.tags.get(names.THINNED.key) == "true") == is_thinned
    assert (long.scheme.tags.get(names.THINNED.key) == "true") == is_thinned
    assert (len(values(run, COST)) < len(costs)) == is_thinned
    (short,) = record_of([step(1.0, costs=costs[: thinned.MAX_POINTS], starts=starts)], 0).steps
    assert names.THINNED.key not in short.tags


def test_the_seconds_of_a_search_are_written_where_there_was_one():
    searched = record_of([step(1.0)], 0, Findings(seconds=0.5, search_seconds=2.0))
    assert values(searched.scheme, names.SEARCH_SECONDS.key) == [(2.0, 0)]
    assert values(searched.scheme, names.THEORY_SECONDS.key) == [(0.5, 0)]
    quick = record_of([step(1.0)], 0, Findings(search_seconds=0.0))
    assert values(quick.scheme, names.SEARCH_SECONDS.key) == []


def test_a_series_is_written_at_its_steps():
    series = {"theory/sharpness": (np.array([0, 5]), np.array([1.5, np.nan]))}
    record = record_of([step(1.0)], 0, Findings(series=series))
    assert values(record.scheme, "theory/sharpness") == [(1.5, 0)]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("too\n  much"), "too much"),
        (KeyError(), "KeyError"),
        (MemoryError("2 GB"), "out of memory (2 GB)"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_a_failed_job_has_its_reason_and_its_traceback(error, reason):
    record = records.of_failure(HEADER, error)
    assert record.scheme.tags[names.VERDICT.key] == names.FAILED
    assert record.scheme.tags[names.REASON.key] == reason
    assert record.scheme.tags[names.ERROR.key] == type(error).__name__
    assert type(error).__name__ in record.failure
    assert record.steps == []


def test_passwords_are_blotted_in_recorded_texts_and_numbers_stay():
    texts = records._texts({"rate": 0.12345678, "path": "http://me:pw@host/x", "long": "x" * 9000})
    assert texts == {"rate": "0.12345678", "path": "http://me:***@host/x", "long": "x" * 5000}


def test_a_data_set_has_its_sizes_and_its_features_unless_they_are_many(monkeypatch):
    x = np.arange(12.0).reshape(4, 3)
    data = make_dataset("d", x, [0, 1, 0, 1], x_test=x[:2], y_test=[0, 1], source="made")
    fields = records._dataset(data)
    profile = json.loads(fields["profile"])
    assert (profile["train_points"], profile["test_points"], profile["features"]) == (4, 2, 3)
    assert len(json.loads(fields["schema"])["mlflow_colspec"]) == 3
    assert data.fingerprint.startswith(fields["digest"])
    monkeypatch.setattr(records, "MAX_SCHEMA", len(fields["schema"]) - 1)
    assert "schema" not in records._dataset(data)


@pytest.mark.parametrize(
    ("file", "module", "is_theirs"),
    [
        ("/home/me/scheme.py", "scheme", True),
        ("/venv/site-packages/library.py", "library", False),
        ("/python/json.py", "json", False),
        ("/checkout/costs/softmax.py", "normbench.costs.softmax", False),
        ("/home/me/scheme.so", "scheme", False),
    ],
)
def test_the_reason_of_a_failure_names_the_last_line_of_the_users_own_code(file, module, is_theirs):
    space = {"__name__": module}
    exec(compile("def fail():\n    raise ValueError('no')\n", file, "exec"), space)
    with pytest.raises(ValueError, match="no") as raised:
        space["fail"]()
    reason = records.of_failure(HEADER, raised.value).scheme.tags[names.REASON.key]
    assert (reason == f"{file.rpartition('/')[2]}, line 2: no") == is_theirs


def test_a_data_set_is_a_line_of_texts_for_the_store(monkeypatch):
    x = np.arange(12.0).reshape(4, 3)
    data = make_dataset("d", x, [0, 1, 0, 1], x_test=x[:2], y_test=[0, 1], source="made")
    fields = records._dataset(data)
    assert (fields["name"], fields["source_type"]) == ("d", "normbench")
    assert fields["digest"] == data.fingerprint[:36]
    assert json.loads(fields["source"]) == {"source": data.source}
    assert json.loads(fields["profile"])["task"] == data.task
    columns = json.loads(fields["schema"])["mlflow_colspec"]
    assert columns == [
        {"type": "double", "name": name, "required": True} for name in data.feature_names
    ]
    monkeypatch.setattr(records, "MAX_SCHEMA", len(fields["schema"]))
    assert "schema" in records._dataset(data)


@pytest.mark.parametrize(("features", "is_kept"), [(2000, True), (4500, False)])
def test_the_features_of_a_data_set_are_kept_up_to_some_thousands(features, is_kept):
    x = np.zeros((4, features))
    data = make_dataset("d", x, [0, 1, 0, 1], source="made")
    assert ("schema" in records._dataset(data)) == is_kept


def test_the_record_of_a_data_set_of_classes_has_their_encoding():
    x = np.arange(12.0).reshape(4, 3)
    outcome = Outcome((), None, None, 3, 0.25, 0.5, Findings())
    for class_names, encoding in ((["no", "yes"], "no=0, yes=1"), (None, None)):
        data = make_dataset("d", x, [0, 1, 0, 1], class_names=class_names, source="made")
        record = records.of_outcome(HEADER, data, outcome)
        assert record.params.get("dataset.encoding") == encoding
        assert record.params["iterations"] == "1"


@pytest.mark.parametrize(("seconds", "is_written"), [(1e-3, False), (2e-3, True)])
def test_a_search_of_a_thousandth_of_a_second_is_none(seconds, is_written):
    record = record_of([step(1.0)], 0, Findings(search_seconds=seconds))
    assert values(record.scheme, names.SEARCH_SECONDS.key) == [(seconds, 0)] * is_written


def test_quartiles_of_a_history_are_written_beside_its_median():
    several = step(1.0, starts=3)
    quartiles = np.array([[0.9, 0.05], [1.1, np.inf]])
    several = replace(several, quartiles={COST: quartiles}, series={"theory/x": np.array([3.0])})
    (run,) = record_of([several], 0).steps
    for number, quartile in enumerate(names.QUARTILES):
        expected = [(value, k) for k, value in enumerate(quartiles[number]) if np.isfinite(value)]
        assert values(run, names.quartile(names.TRAIN_COST, quartile).key) == expected
    assert values(run, "theory/x") == [(3.0, 0)]
    assert values(run, names.FINAL_COST.key) == [(0.1, 0)]
