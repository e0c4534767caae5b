"""What is told of schemes over any set of sweeps, made by hand."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from normbench.results.compare import passes
from normbench.results.figures import profiles
from normbench.results.report import profile
from normbench.results.store import runs as reader
from normbench.results.store.errors import ResultsError
from tests.results.compare.test_comparisons import table
from tests.results.made import runs


@pytest.fixture
def told(monkeypatch, capsys):
    """Return a function that gives what is printed of these sweeps, by their ids."""

    def of(found, *options, ids=None, **more):
        last = next(iter(found))
        monkeypatch.setattr(reader, "load", lambda store, sweep_id: found[sweep_id])
        monkeypatch.setattr(reader, "last_sweep_ids", lambda store: (last, last))
        monkeypatch.setattr(profile, "_predictions", lambda loaded: pd.DataFrame())
        profile.print_profile("-", ids or [], *(options or ("1e-2", "iterations")), **more)
        return capsys.readouterr().out

    return of


def sweep(**values):
    return runs(*(("x", scheme, {1.0: value}) for scheme, value in values.items()))


def test_without_ids_the_last_sweep_counts(told):
    found = {"new": sweep(a=5.0, b=1.0), "old": sweep(a=2.0, b=1.0, c=1.0)}
    text = told(found)
    assert text.startswith("iterations until 1 % of the excess cost is left")
    assert text == told(found, ids=["new"]) != told(found, ids=["old"])


def test_with_batches_it_counts_passes(told):
    batched = sweep(a=5.0, b=1.0)
    batched.runs[passes.BATCH_SETTING] = "30"
    assert told({"s": batched}).startswith("passes until 1 % of the excess cost is left")


def test_of_several_sweeps_the_one_that_is_named_last_counts(told):
    found = {"new": sweep(a=5.0, b=1.0), "old": sweep(a=2.0, b=1.0)}
    text = told(found, ids=["old", "new"])
    assert text == told(found, ids=["new"]) != told(found, ids=["new", "old"])


def test_the_answer_comes_first_with_the_number_of_problems(told, tmp_path, monkeypatch):
    jobs = [(name, s, {1.0: n}) for name in "xy" for s, n in (("a", 5.0), ("b", 1.0))]
    titles = []
    draw = profiles.draw
    monkeypatch.setattr(
        profiles,
        "draw",
        lambda *given, **more: titles.append(given[1]) or draw(*given, **more),
    )
    text = told({"s": runs(*jobs)}, folder=tmp_path)
    first = text.split("\n\n")[1]
    assert first.startswith("leaderboard, n = 2 problems\n")
    assert first.splitlines()[3].split()[0] == "b"
    assert titles == ["iterations until 1 % of the excess cost is left, n = 2 problems"]
    assert "n = 1 problem\n" in told({"s": sweep(a=5.0, b=1.0)})


def test_predictions_have_a_setting_where_there_are_several():
    few = runs(("x", "a", {1.0: 2.0}), iterations="10")
    many = runs(("y", "a", None), ("x", "a", {1.0: 2.0}), iterations="20")  # another id
    table = profile._predictions([few, many])
    assert table["setting"].tolist() == ["iterations=10", "iterations=20"]
    assert table.columns[:2].tolist() == ["experiment", "setting"]
    assert "setting" not in profile._predictions([few])
    assert profile._predictions([runs(("x", "a", None))]).empty


def test_a_figure_has_three_files_and_needs_a_problem(told, tmp_path):
    text = told({"s": sweep(a=5.0, b=1.0)}, folder=tmp_path / "a" / "new")
    files = [tmp_path / "a" / "new" / f"profiles.{kind}" for kind in ("png", "svg", "pdf")]
    assert all(file.is_file() for file in files)
    assert "".join(f"figure     {file}\n" for file in files) in text
    with pytest.raises(ResultsError, match="nothing to draw; no problem on which every scheme"):
        told({"s": runs(("x", "a", {1.0: 1.0}), ("y", "b", {1.0: 1.0}))}, folder=tmp_path)
    with pytest.raises(ResultsError, match="nothing to draw; no scheme reaches the target"):
        told({"s": sweep(a=np.inf, b=np.inf)}, folder=tmp_path)


def test_a_terminal_has_no_line_that_is_wider(told, monkeypatch):
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, color_system=None, width=80)
    monkeypatch.setattr(profile.screen, "console", lambda: console)
    schemes = {f"a_scheme_with_a_long_name_{letter}": number for number, letter in enumerate("abc")}
    told({"s": sweep(**{name: number + 1.0 for name, number in schemes.items()})})
    lines = output.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    for word in ("leaderboard", "pairs; ", "conclusion", "performance profile"):
        assert any(word in line for line in lines), word


def test_one_split_has_no_interval_and_an_infinite_ratio_is_explained(told):
    text = told({"s": sweep(a=np.inf, b=1.0, c=2.0)})
    head = next(line for line in text.splitlines() if "against" in line)
    assert head.split()[-3:] == ["wins", "ratio", "conclusion"]
    assert "0 where the first scheme never does" in " ".join(text.split())
    assert "never does" not in told({"s": sweep(b=1.0, c=2.0)})


def test_what_nobody_reaches_is_told(told):
    lost = runs(
        ("x", "a", {1.0: 2.0}), ("x", "b", {1.0: 3.0}), *(("y", s, {1.0: np.inf}) for s in "ab")
    )
    words = "(on 1 of 2 splits no scheme reaches it)"
    assert words in told({"s": lost})
    assert "no scheme reaches it" not in told({"s": sweep(a=2.0, b=1.0)})
    share = "share of problems within a factor of the fastest: nothing to compare"
    nobody = " ".join(told({"s": sweep(a=np.inf, b=np.inf)}).split())
    assert f"{share} ({profile.NO_SCHEME})" in nobody
    apart = " ".join(told({"s": runs(("x", "a", {1.0: 1.0}), ("y", "b", {1.0: 1.0}))}).split())
    assert f"{share} ({profile.NOT_ALL})" in apart


def test_own_functions_of_one_sweep_are_told_of_all():
    found = [sweep(a=2.0, b=1.0), runs(("y", "a", {1.0: 2.0}, {"cost.l2": "0.1"}))]
    assert len(profile.notes(found)) == 1
    assert profile.notes(found[:1]) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("1e-9", "iterations"), "--target 1e-9: choose one of 1e-1, 1e-2, 1e-3"),
        (("1e-2", "hours"), "--by hours: choose one of iterations, seconds"),
    ],
)
def test_a_target_or_a_measure_that_there_is_not_is_refused(told, options, words):
    with pytest.raises(ResultsError, match=words):
        told({"s": sweep(a=1.0, b=2.0)}, *options)


def test_a_terminal_has_the_shares_at_a_few_factors():
    lines = profile.profiles_at_factors(
        table(a=[10, 10, np.inf, np.inf], b=[20, 5, np.inf, 5])
    ).set_index("scheme")
    assert list(lines) == ["x1", "x1.5", "x2", "x3", "x5", "x10", "x100", "at all"]
    assert lines.loc["a", ["x1", "x1.5", "x2", "x100", "at all"]].tolist() == [
        *("0.25", "0.25", "0.50", "0.50", "0.50")
    ]
    assert lines.loc["b", ["x1", "x2", "at all"]].tolist() == ["0.50", "0.75", "0.75"]


@pytest.mark.parametrize(
    ("starts", "words"),
    [
        ({"a": "same_function", "b": "same_function"}, "The start is the same function"),
        ({"a": "normal", "b": "normal"}, "The start differs between the schemes (x)"),
        (
            {"a": "same_function", "b": "normal"},
            "one function of the training points under a; no weights under b make that function",
        ),
        ({"a": "zeros", "b": "zeros"}, None),
        ({"a": "normal"}, None),
    ],
)
def test_what_a_drawn_start_is_to_the_schemes_is_told(starts, words):
    jobs = [("x", scheme, {1.0: 1.0}, {"start": start}) for scheme, start in starts.items()]
    notes = profile.notes([runs(*jobs)])
    assert len(notes) == (words is not None)
    assert words is None or words in notes[0]


def test_a_leaderboard_is_over_the_most_problems_and_splits_of_a_scheme():
    board = pd.DataFrame({"problems": [2, 2], "splits": [6, 5]})  # a job of one failed
    assert profile._sample_sizes(board, "splits") == ", n = 2 problems, 6 splits"
    assert profile._sample_sizes(board.assign(problems=1, splits=1), "splits") == ", n = 1 problem"
    assert profile._sample_sizes(board.iloc[:0], "splits") == ""
    for problems, splits, words in (
        ([2, 1], [6, 5], "2 problems, 6 orders"),
        ([1, 2], [2, 1], "2 problems"),
        (1, 2, "1 problem, 2 orders"),
    ):
        several = board.assign(problems=problems, splits=splits)
        assert profile._sample_sizes(several, "orders") == f", n = {words}"


def test_orders_of_batches_are_not_called_splits(told):
    jobs = [
        ("x", name, {1.0: (count + n, 0.001 + n / 1e4)}, {"batch_seed": str(n)})
        for name, count in (("a", 3.0), ("b", 5.0))
        for n in range(2)
    ]
    text = told({"s": runs(*jobs, batch="30", data="same")})
    assert "leaderboard, n = 1 problem, 2 orders of the batches\n" in text
    assert "median and quartiles over orders of the batches\n" in text
    assert "1 pair of schemes needs at least 6 orders of the batches" in text


def test_refining_is_told_to_have_no_effect_on_networks_alone():
    jobs = [("x", s, {1.0: 2.0}, {"refine": "True"}) for s in "ab"]
    assert profile.notes([runs(*jobs)]) == []
    assert profile.notes([runs(*jobs, model="mlp")]) == [
        "refine=true has no effect on a network (x): its targets follow from the lowest cost of "
        "the comparison, which is not known while a job runs."
    ]
    one = [jobs[0], ("x", "b", {1.0: 2.0}, {"refine": "auto"})]
    assert len(profile.notes([runs(*one, model="mlp")])) == 1


@pytest.mark.parametrize("ids", [["one"], ["one", "two"]])
def test_what_is_left_out_of_several_sweeps_is_told_of_each(monkeypatch, told, ids):
    found = {
        name: replace(sweep(a=2.0, b=1.0), left_out=[f"{name} lacks a run."])
        for name in ("one", "two")
    }
    monkeypatch.setattr(
        profile.state, "read", lambda store, ids: (found[ids[0]], [f"{ids[0]} was read."])
    )
    monkeypatch.setattr(profile.state, "state_of", lambda sweep: sweep)
    monkeypatch.setattr(profile.state, "sentences", lambda states: [f"{len(states)} have ended."])
    text = told({"-": sweep(a=1.0)}, ids=ids)
    several = ["one lacks a run.", "two lacks a run.", "2 have ended."]
    for line in several:
        assert (f"\n{line}\n" in text) == (len(ids) == 2)
    assert ("one was read." in text) == (len(ids) == 1)


def test_the_target_and_the_measure_are_told(told):
    text = told({"s": sweep(a=2.0, b=1.0)}, "1e-1", "iterations")
    assert text.startswith("iterations until 10 % of the excess cost is left, and no more later;")
    text = told({"s": sweep(a=2.0, b=1.0)}, "1e-3", "iterations")
    assert text.startswith("iterations until 0.1 % of the excess cost is left")


def test_starts_of_one_choice_are_told_together():
    jobs = [
        (experiment, scheme, {1.0: 2.0}, {"start": start})
        for experiment, start in (("x", "normal"), ("y", "same_function"), ("z", "normal"))
        for scheme in "ab"
    ]
    first, second = profile.notes([runs(*jobs)])
    assert first.startswith("The start differs between the schemes (x, z)")
    assert second.startswith("The start is the same function of the training points under every")
    assert "(y)" in second


def test_predictions_of_several_sweeps_name_their_experiments_and_equal_rows_stand_once():
    one, other = runs(("x", "a", {1.0: 2.0})), runs(("y", "a", {1.0: 2.0}), ("z", "a", {1.0: 2.0}))
    table = profile._predictions([one, other, one])
    assert table["experiment"].tolist() == ["x", "y", "z"]
    assert table.columns[:2].tolist() == ["experiment", "scheme"]
    assert table.index.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("model", "words"),
    [("mlp", "The weights at the start are drawn (x)"), ("linear", "The start differs between")],
)
def test_schemes_inside_a_network_are_no_other_schemes_of_the_points(model, words):
    """Two labels of one normalizer: of a network it is one scheme, whose start is one function."""
    jobs = [("x", "a", {1.0: n}, {"start": "normal"}) for n in (2.0, 3.0)]
    sweep = runs(*jobs, model=model)
    schemes = sweep.runs["role"] == "scheme"
    sweep.runs.loc[schemes, "label"] = ["a, inside=none", "a, inside=batch"]
    (note,) = profile.notes([sweep])
    assert note.startswith(words)
