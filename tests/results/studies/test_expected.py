"""What a study's source says in numbers, and what is said of a number that differs."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf

from normbench import names
from normbench.command.config import study
from normbench.datasets import UserError
from normbench.results.answer import tables
from normbench.results.store.errors import ResultsError
from normbench.results.store.runs import Sweep
from normbench.results.studies import expected, study_table

ONE = {"what": "condition number", "metric": "theory/condition_number", "value": 177}


def sweep(entries, rows):
    """A sweep of scheme runs, each (settings, condition number), whose study expects entries."""
    said = {"role": "sweep", names.EXPECTED.column: json.dumps(entries)}
    table = [
        {"role": "scheme", names.CONDITION.column: number}
        | {f"params.{key}": text for key, text in settings.items()}
        for settings, number in rows
    ]
    return Sweep("", "one", pd.DataFrame([said, *table]), SimpleNamespace())


def verdicts(entries, rows):
    return [row["verdict"] for row in expected.compare_with_source(sweep(entries, rows), "none")]


def test_a_table_for_a_terminal_is_narrow_and_loses_no_word():
    cells = {"what": "condition number " * 6, "the source says": "a claim " * 9, "why": ""}
    long = {"study": "s" * 28, "measured": "1.234567 to 2.345678", "verdict": "agrees", **cells}
    short = {**long, "what": "one", "the source says": "1"}
    table = pd.DataFrame([long, short])[
        ["study", "what", "the source says", "measured", "verdict", "why"]
    ]
    lines = tables.text(expected.narrow_table(table)).splitlines()
    assert max(map(len, lines)) <= 118
    made = expected.narrow_table(table)
    assert "why" not in made
    for name in made:
        rows = made[name][: len(made) - 1]
        assert " ".join(" ".join(rows).split()) == long[name].strip()
    assert made.iloc[-1].tolist() == ["s" * 28, "one", "1", short["measured"], "agrees"]
    few = expected.narrow_table(table[1:])
    assert len(few) == 1


STANDARD, CENTRE = {"normalizer": "standard"}, {"normalizer": "centre"}


@pytest.mark.parametrize(
    ("more", "measured", "agrees"),
    [
        ({}, 177, True),
        ({}, 177.01, False),
        ({"within": 0.5}, 177.5, True),
        ({"within": 0.5}, 176.4, False),
        ({"within": "1%"}, 178.7, True),
        ({"within": "1%"}, 178.8, False),
        ({"value": [170, 180]}, 180, True),
        ({"value": [170, 180]}, 180.1, False),
        ({"value": [170, 180], "within": 1}, 169, True),
        ({"value": -100, "within": "1%"}, -101, True),
        ({"value": -100, "within": "1%"}, -98, False),
    ],
)
def test_a_number_agrees_within_its_tolerance(more, measured, agrees):
    assert verdicts([ONE | more], [(STANDARD, measured)]) == ["agrees" if agrees else "differs"]


def test_settings_pick_the_runs_and_each_of_them_must_agree():
    rows = [(STANDARD, 141.0), (CENTRE, 177.0), (CENTRE, 178.0)]
    of = {"of": CENTRE}
    assert verdicts([ONE | of], rows) == ["differs"]
    assert verdicts([ONE | of | {"within": 1}], rows) == ["agrees"]
    (row,) = expected.compare_with_source(sweep([ONE | of], rows), "none")
    assert row["measured"] == "177 to 178"
    assert verdicts([ONE | {"of": {"normalizer": "robust"}}], rows) == ["differs"]
    assert verdicts([ONE | {"of": {"nothing": 1}}], rows) == ["differs"]
    numbered = [({"dataset.points": "50.0"}, 177.0), ({"dataset.points": "80"}, 1.0)]
    assert verdicts([ONE | {"of": {"dataset.points": 50}}], numbered) == ["agrees"]


def test_a_number_that_differs_is_told_with_its_reason_or_counted():
    entries = [ONE, ONE | {"why": "the source divides by P - 1"}, ONE | {"value": 178, "why": "no"}]
    table = pd.DataFrame(expected.compare_with_source(sweep(entries, [(STANDARD, 178.0)]), "iris"))
    assert list(table["why"]) == ["", "the source divides by P - 1", ""]
    assert expected.unexplained(table) == expected.unexplained(table[:2]) == 1
    first, second = expected.reasons(table)
    assert first == "iris, condition number: differs, and nobody says why"
    assert second == "iris, condition number: the source divides by P - 1"


def test_what_was_not_measured_does_not_agree():
    entries = [ONE | {"metric": "theory/nothing"}, {"what": "a", "name": "of_nobody", "value": 1}]
    rows = expected.compare_with_source(sweep(entries, [(STANDARD, 177.0)]), "none")
    assert [(row["measured"], row["verdict"]) for row in rows] == [("not measured", "differs")] * 2


class Recorded(Sweep):
    """A sweep whose schemes have recorded an array."""

    def arrays(self, runs, name):
        return {"s": {"before": np.array([3.0, 1.0])}} if name == "spectrum" else {}


@pytest.mark.parametrize(
    ("more", "measured"),
    [
        ({"metric": "spectrum/before/1"}, "1"),
        ({"metric": "spectrum/before/0", "share": True}, "0.75"),
        ({"metric": "train_points"}, "178"),
        ({"metric": "spectrum/before/2"}, "not measured"),
        ({"metric": "spectrum/before/last"}, "not measured"),
        ({"metric": "spectrum/after/0"}, "not measured"),
        ({"metric": "spectrum"}, "not measured"),
        ({"metric": "points/before/0"}, "not measured"),
    ],
)
def test_an_entry_of_an_array_and_a_column_are_looked_up(more, measured):
    made = sweep([ONE | more], [(STANDARD, 1.0)])
    made = Recorded("", "one", made.runs.assign(train_points=178))
    assert [row["measured"] for row in expected.compare_with_source(made, "none")] == [measured]


def test_a_number_of_the_studys_own_is_found_by_its_name(monkeypatch):
    made = sweep([{"what": "a", "name": "half", "value": 0.5}], [(STANDARD, 1.0)])
    monkeypatch.setattr(expected, "numbers", lambda sweep, study: {"half": len(study) / 8})
    assert [row["verdict"] for row in expected.compare_with_source(made, "four")] == ["agrees"]
    assert [row["verdict"] for row in expected.compare_with_source(made, "eights")] == ["differs"]


def test_a_study_without_a_module_has_no_numbers_of_its_own():
    assert expected.numbers(sweep([], []), "is_not_there") == {}
    assert expected.numbers(sweep([], []), "../textbook") == {}
    assert expected.numbers(sweep([], []), "notes/nothing") == {}


def test_a_sweep_that_was_cut_down_lacks_numbers_and_stays_readable():
    made = sweep([{"what": "a", "name": "gap", "value": 0}], [(STANDARD, 1.0)])
    assert expected.numbers(made, "notes/iris_pca") == {}  # nothing is recorded
    (row,) = expected.compare_with_source(made, "notes/iris_pca")
    assert (row["study"], row["measured"]) == ("iris_pca", "not measured")


def test_more_words_than_a_store_keeps_are_refused():
    entries = [ONE | {"says": "so " * 30}] * 80
    with pytest.raises(UserError, match=r"study\.expected: takes \d+ characters, and at most 7900"):
        study.expected_tag(OmegaConf.create({"study": {"expected": entries}}))
    assert study.expected_tag(OmegaConf.create({"study": {"says": "nothing"}})) == {}
    for told in ({}, {"study": 3}, {"study": None}):
        assert study.expected_tag(OmegaConf.create(told)) == {}
    with pytest.raises(UserError, match=r"study\.expected: "):
        study.expected_tag(OmegaConf.create({"study": [1]}))
    (text,) = study.expected_tag(OmegaConf.create({"study": {"expected": [ONE]}})).values()
    assert json.loads(text) == [ONE]


def test_the_source_in_words():
    said = [entry.source_text for entry in expected.parse([ONE, ONE | {"within": "1%"}])]
    assert said == ["177", "177 +- 1%"]
    pair, quoted = expected.parse([ONE | {"value": [1, 2.5]}, ONE | {"says": "about 177"}])
    assert (pair.source_text, quoted.source_text) == ("1 to 2.5", "about 177")


MISTAKES = {
    "no list": ("three", "study.expected=three: must be a list"),
    "no number": (["three"], r"study.expected\[0\]=three: must be one number with its words"),
    "unknown key": ([ONE | {"tolerance": 1}], r"study.expected\[0\].tolerance: is not one of what"),
    "without words": ([{"metric": "a", "value": 1}], "must have `what`, and one of `metric`"),
    "nothing measured": ([{"what": "a", "value": 1}], "one of `metric` .* and `name`"),
    "twice measured": ([ONE | {"name": "a"}], "one of `metric` .* and `name`"),
    "no words": ([ONE | {"why": 3}], r"study.expected\[0\].why=3: must be words"),
    "no settings": ([ONE | {"of": "standard"}], r"\.of=standard: must be settings"),
    "no switch": ([ONE | {"share": 2}], r"\.share=2: must be true or false"),
    "settings of a name": (
        [{"what": "a", "name": "b", "of": {"c": 1}, "value": 1}],
        "`of` picks the runs of a metric; leave it out",
    ),
    "no value": ([ONE | {"value": "many"}], r"\.value=many: must be a number, or the lowest"),
    "a value that is missing": ([{**ONE, "value": None}], r"\.value=None"),
    "a switch": ([ONE | {"value": True}], r"\.value=True"),
    "three values": ([ONE | {"value": [1, 2, 3]}], r"\.value=\[1, 2, 3\]"),
    "no values": ([ONE | {"value": []}], r"\.value=\[\]"),
    "the wrong way round": ([ONE | {"value": [2, 1]}], r"\.value=\[2, 1\]"),
    "not finite": ([ONE | {"value": float("nan")}], r"\.value=nan"),
    "a tolerance below 0": ([ONE | {"within": -1}], r"\.within=-1: must be a number, 0 or more"),
    "a tolerance in words": ([ONE | {"within": "some"}], r"\.within=some"),
    "a tolerance as text": ([ONE | {"within": "1"}], r"\.within=1"),
    "a share of nothing": ([ONE | {"within": "%"}], r"\.within=%"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_with_its_place(name):
    entries, words = MISTAKES[name]
    with pytest.raises(ResultsError, match=words) as told:
        expected.parse(entries)
    assert "\n" not in str(told.value)


@pytest.mark.commands
def test_the_command_checks_keeps_and_tells_what_is_expected(command, tmp_path):
    words = ["experiment=notes/iris_pca", "figures=[spectrum]"]
    wrong = command(*words, "study.expected=[3]")
    assert wrong.returncode == 2
    assert wrong.stderr.splitlines() == [
        "normbench: study.expected[0]=3: must be one number with its words, such as {what: "
        "condition number, metric: theory/condition_number, value: 1, within: 0.1}"
    ]
    done = command(*words)
    assert done.returncode == 0, done.stderr
    told = command("results", "studies", "notes")
    assert told.returncode == 0, told.stderr
    head, *rows = told.stdout.splitlines()
    assert head.split() == ["study", "what", "the", "source", "says", "measured", "verdict"]
    assert len(rows) > 2
    assert all(row.endswith("agrees") for row in rows)
    assert max(map(len, rows)) <= 120
    one = "{what: share, metric: spectrum/after/0, share: true, value: 0.7}"
    done = command(*words, f"study.expected=[{one}]")
    assert done.returncode == 0, done.stderr
    told = command("results", "studies", "notes")
    assert told.returncode == 1
    assert told.stdout.splitlines()[-1] == "iris_pca, share: differs, and nobody says why"


def test_a_scheme_without_a_step_that_rounding_leaves_has_no_cost():
    row = {"verdict": names.BY_ROUNDING, names.setting("iterations"): "9"}
    assert study_table._descent(row)[-1] == "each step size diverged or is decided by rounding"


def test_bounds_of_a_pair_are_widened_on_both_sides():
    def bounds(**more):
        (entry,) = expected.parse([ONE | more])
        return entry.bounds

    assert bounds(value=[-200, 100], within="10%") == (-220, 110)
    assert bounds(value=[1, 2], within=0.5) == (0.5, 2.5)
    assert bounds(value=4, within=0) == (4, 4)
    assert bounds(value=[2, 2]) == (2, 2)
    assert bounds(within="0%") == (177, 177)


def test_measured_numbers_are_shown_from_the_least_to_the_largest():
    assert expected._range_text([]) == "not measured"
    assert expected._range_text([3.0]) == expected._range_text([3.0, 3.0]) == "3"
    assert expected._range_text([2.0, 1.23456789, 1.5]) == "1.234568 to 2"


@pytest.mark.parametrize(
    ("text", "value", "equal"),
    [
        *(("50.0", 50, True), ("1e3", 1000, True), ("a", "a", True), ("True", True, True)),
        *(("a", "b", False), ("50", 51, False), (None, 1, False), ("1", [1], False)),
    ],
)
def test_a_setting_equals_a_value_as_text_or_as_a_number(text, value, equal):
    assert expected._equal_values(text, value) is equal


def narrow(what, source, **more):
    row = {"study": "s", "what": what, "the source says": source, "measured": "m"}
    row |= {"verdict": "agrees", "why": "", **more}
    return expected.narrow_table(pd.DataFrame([row]))


def wrapped_widths(table):
    return [max(map(len, table[name])) for name in ("what", "the source says")]


def test_both_columns_of_text_share_the_room():
    """Beside them stand 5 + 8 + 7 letters and 8 blanks: 90 of the 118 columns are left."""
    assert wrapped_widths(narrow("w" * 60, "s" * 30)) == [60, 30]
    what, source = wrapped_widths(narrow("w " * 100, "s " * 100))
    assert (what, source) == (49, 39)  # of words of one letter: 50 and 40, of 45 percent
    assert wrapped_widths(narrow("w" * 20, "s " * 100)) == [20, 69]  # what is left of 90
    what, source = wrapped_widths(narrow("w " * 100, "s"))
    assert (what, source) == (75, 1)  # the source's column has the width of its heading
    what, source = wrapped_widths(narrow("w " * 30, "s " * 60, measured="m" * 80))
    assert (what, source) == (19, 15)


def test_reasons_are_wrapped_with_an_indent():
    row = {"study": "s", "what": "w", "verdict": "differs", "why": "because " * 30}
    (text,) = expected.reasons(pd.DataFrame([row, row | {"verdict": "agrees"}]))
    first, *others = text.splitlines()
    assert first.startswith("s, w: because because")
    assert all(line.startswith("  because") for line in others)
    assert 110 < max(map(len, text.splitlines())) <= 118
    assert " ".join(text.split()) == "s, w: " + ("because " * 30).strip()


def test_a_sweep_of_no_study_expects_nothing():
    made = sweep([ONE], [(STANDARD, 177.0)])
    assert expected.recorded(made) == expected.parse([ONE])
    none = Sweep("", "one", made.runs.drop(columns=names.EXPECTED.column), SimpleNamespace())
    assert expected.recorded(none) == []
    empty = Sweep("", "one", made.runs.assign(**{names.EXPECTED.column: None}), SimpleNamespace())
    assert expected.recorded(empty) == []


@pytest.mark.parametrize("error", [ValueError, KeyError, ZeroDivisionError])
def test_numbers_of_a_study_are_those_of_its_function(monkeypatch, error):
    from normbench.results.studies.gallery import notes

    made = sweep([], [])
    monkeypatch.setattr(notes, "iris_pca", lambda sweep: {"gap": len(sweep.runs)})
    assert expected.numbers(made, "notes/iris_pca") == {"gap": 1}

    def fails(sweep):
        raise error

    monkeypatch.setattr(notes, "iris_pca", fails)
    assert expected.numbers(made, "notes/iris_pca") == {}
    assert expected.numbers(made, "nowhere/iris_pca") == {}


def whole(entries, *words, verdict="converged"):
    """Return a sweep that is all of the study `notes/iris_pca`, or of it with other words."""
    made = sweep(entries, [(STANDARD, 177.0)])
    command = " ".join(("normbench --config-dir studies experiment=notes/iris_pca", *words))
    table = made.runs.assign(verdict=verdict, **{names.JOBS.column: "1"})
    table.loc[table["role"] == "sweep", names.COMMAND.column] = command
    return Sweep("", "one", table, SimpleNamespace())


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("missd"), ZeroDivisionError("x")])
def test_a_mistake_in_the_function_of_a_study_is_an_error(monkeypatch, error):
    from normbench.results.studies.gallery import notes

    def fails(sweep):
        raise error

    monkeypatch.setattr(notes, "iris_pca", fails)
    message = rf"^study notes/iris_pca: .*studies/gallery fails \({type(error).__name__}: "
    for words in ((), ("tracking.uri=sqlite:///x.db", "figures=[]")):
        with pytest.raises(ResultsError, match=message):
            expected.numbers(whole([], *words), "notes/iris_pca")
    cut_down = whole([], "iterations=2"), whole([], verdict="failed"), whole([])
    cut_down[-1].runs[names.JOBS.column] = "2"
    for made in cut_down:
        assert expected.numbers(made, "notes/iris_pca") == {}


def test_a_misspelt_column_is_an_error_of_a_sweep_that_was_cut_down(monkeypatch):
    from normbench.results.studies.gallery import notes

    for column, is_mistake in (("params.optimiser", True), ("params.optimizer", False)):
        made = whole([], "iterations=2")
        monkeypatch.setattr(notes, "iris_pca", lambda sweep, name=column: {"a": sweep.runs[name]})
        if is_mistake:
            with pytest.raises(ResultsError, match="optimiser"):
                expected.numbers(made, "notes/iris_pca")
        else:
            assert expected.numbers(made, "notes/iris_pca") == {}


def test_a_misspelt_metric_of_a_study_is_an_error():
    misspelt = [{**ONE, "metric": "theory/condition_numbr"}]
    message = (
        r"metric=theory/condition_numbr: is not recorded; did you mean theory/condition_number"
    )
    with pytest.raises(ResultsError, match=message):
        expected.compare_with_source(whole(misspelt), "notes/iris_pca")
    (row,) = expected.compare_with_source(whole(misspelt, "theory=none"), "notes/iris_pca")
    assert row["measured"] == "not measured"
    (row,) = expected.compare_with_source(whole([ONE]), "notes/iris_pca")
    assert row["measured"] == "177"


def test_an_array_is_looked_up_in_the_schemes_that_have_it():
    class Two(Sweep):
        def arrays(self, runs, name):
            arrays = {"a": {"before": np.array([3.0, 1.0])}, "b": {"after": np.array([9.0])}}
            return arrays | {"c": {"before": np.array([1.0])}}

    made = sweep([ONE], [(STANDARD, 1.0)])
    made = Two("", "one", made.runs)
    (entry,) = expected.parse([ONE | {"metric": "spectrum/before/0"}])
    assert expected._measured(made, entry) == [3, 1]
    (entry,) = expected.parse([ONE | {"metric": "spectrum/before/1"}])
    assert expected._measured(made, entry) == [1]
    (entry,) = expected.parse([ONE | {"metric": "spectrum/before/0", "share": True}])
    assert expected._measured(made, entry) == [0.75, 1]
