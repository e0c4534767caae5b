"""What is told of schemes over any set of sweeps, made by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from normbench.results.report import profile
from normbench.results.store.errors import ResultsError
from tests.results.compare.test_comparisons import table
from tests.results.made import repeated, runs


@pytest.fixture
def told(monkeypatch, capsys):
    """Return a function that gives what is printed of these sweeps, by their ids."""

    def of(sweeps, *options, ids=None, **more):
        last = next(iter(sweeps))
        monkeypatch.setattr(
            profile.state, "read", lambda home, ids: (sweeps[ids[0] if ids else last], [])
        )
        profile.print_profile("-", ids or [], *(options or ("1e-2", "iterations")), **more)
        return capsys.readouterr().out

    return of


def sweep(**values):
    return runs(*(("x", scheme, {1.0: value}) for scheme, value in values.items()))


def test_the_last_sweep_counts_or_the_one_that_is_named_last(told):
    sweeps = {"new": sweep(a=5.0, b=1.0), "old": sweep(a=2.0, b=1.0)}
    text = told(sweeps)
    assert text.startswith("iterations until 1 % of the excess cost is left, and no more later;")
    assert text == told(sweeps, ids=["new"]) == told(sweeps, ids=["old", "new"])
    assert text != told(sweeps, ids=["new", "old"])
    assert "leaderboard, n = 1 problem\n" in text
    assert text.split("\n\n")[1].splitlines()[3].split()[0] == "b"  # the answer comes first
    assert "never does" not in text
    assert "no scheme reaches it" not in text


def test_batches_are_counted_in_passes_and_their_orders_are_no_splits(told):
    jobs = repeated(2, "batch_seed", a=[3.0, 4.0], b=[5.0, 6.0])
    text = told({"s": runs(*jobs, batch="30")}, "1e-1", "iterations")
    assert text.startswith("passes until 10 % of the excess cost is left")
    assert "leaderboard, n = 1 problem, 2 orders of the batches\n" in text
    assert "1 pair of schemes needs at least 6 orders of the batches" in text


def test_predictions_of_several_sweeps_are_told_apart_and_equal_rows_stand_once():
    few = runs(("x", "a", {1.0: 2.0}), iterations="10")
    many = runs(("y", "a", None), ("x", "a", {1.0: 2.0}), iterations="20")  # another id
    both = profile._predictions([few, many, few])
    assert both["setting"].tolist() == ["iterations=10", "iterations=20"]
    assert both["experiment"].tolist() == ["x", "x"]
    assert "setting" not in profile._predictions([few])
    assert profile._predictions([runs(("x", "a", None))]).empty


def test_a_figure_has_three_files_and_needs_a_problem(told, tmp_path):
    text = told({"s": sweep(a=5.0, b=1.0)}, folder=tmp_path / "a" / "new")
    for kind in ("png", "svg", "pdf"):
        file = tmp_path / "a" / "new" / f"profiles.{kind}"
        assert file.is_file()
        assert f"figure     {file}\n" in text
    with pytest.raises(ResultsError, match="nothing to draw; no problem on which every scheme"):
        told({"s": runs(("x", "a", {1.0: 1.0}), ("y", "b", {1.0: 1.0}))}, folder=tmp_path)
    with pytest.raises(ResultsError, match="nothing to draw; no scheme reaches the target"):
        told({"s": sweep(a=np.inf, b=np.inf)}, folder=tmp_path)


def test_what_is_not_reached_is_told(told):
    lost = runs(
        ("x", "a", {1.0: 2.0}), ("x", "b", {1.0: 3.0}), *(("y", s, {1.0: np.inf}) for s in "ab")
    )
    assert "(on 1 of 2 splits no scheme reaches it)" in told({"s": lost})
    some = told({"s": sweep(a=np.inf, b=1.0, c=2.0)})
    head = next(line for line in some.splitlines() if "against" in line)
    assert head.split()[-3:] == ["wins", "ratio", "conclusion"]  # one split has no interval
    assert "0 where the first scheme never does" in " ".join(some.split())
    share = "share of problems within a factor of the fastest: nothing to compare"
    apart = runs(("x", "a", {1.0: 1.0}), ("y", "b", {1.0: 1.0}))
    for each, why in ((sweep(a=np.inf, b=np.inf), profile.NO_SCHEME), (apart, profile.NOT_ALL)):
        assert f"{share} ({why})" in " ".join(told({"s": each}).split())


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
    assert [*lines.loc["a", ["x1", "x2", "at all"]]] == ["0.25", "0.50", "0.50"]
    assert [*lines.loc["b", ["x1", "x2", "at all"]]] == ["0.50", "0.75", "0.75"]


def test_a_leaderboard_is_over_the_most_problems_and_splits_of_a_scheme():
    for problems, splits, words in (
        ([2, 2], [6, 5], ", n = 2 problems, 6 orders"),  # a job of one failed
        ([1, 2], [2, 1], ", n = 2 problems"),
        ([], [], ""),
    ):
        board = pd.DataFrame({"problems": problems, "splits": splits})
        assert profile._sample_sizes(board, "orders") == words


def test_notes_name_the_experiments_that_share_them():
    jobs = [
        (experiment, scheme, {1.0: 2.0}, {"start": start})
        for experiment, start in (("x", "normal"), ("y", "same_function"), ("z", "normal"))
        for scheme in "ab"
    ]
    first, second = profile.notes([runs(*jobs)])
    assert first.startswith("The start differs between the schemes (x, z)")
    assert "(y)" in second
    own = runs(("y", "a", {1.0: 2.0}, {"cost.l2": "0.1"}))
    assert len(profile.notes([sweep(a=2.0, b=1.0), own])) == 1


def test_schemes_inside_a_network_are_no_other_schemes_of_the_points():
    """Two labels of one normalizer: of a network it is one scheme, whose start is one function."""
    for model, words in (
        ("mlp", "The weights at the start are drawn"),
        ("linear", "The start dif"),
    ):
        jobs = [("x", "a", {1.0: n}, {"start": "normal"}) for n in (2.0, 3.0)]
        inside = runs(*jobs, model=model)
        schemes = inside.runs["role"] == "scheme"
        inside.runs.loc[schemes, "label"] = ["a, inside=none", "a, inside=batch"]
        (note,) = profile.notes([inside])
        assert note.startswith(words)


@pytest.mark.parametrize("ids", [["one"], ["one", "two"]])
def test_what_is_left_out_of_several_sweeps_is_told_of_each(monkeypatch, told, capsys, ids):
    sweeps = {
        name: replace(sweep(a=2.0, b=1.0), left_out=(f"{name} lacks a run.",))
        for name in ("one", "two")
    }
    told({"-": sweep(a=1.0)})
    monkeypatch.setattr(
        profile.state, "read", lambda home, ids: (sweeps[ids[0]], [f"{ids[0]} was read."])
    )
    profile.print_profile("-", ids, "1e-2", "iterations")
    text = capsys.readouterr().out
    for line in ("one lacks a run.", "two lacks a run."):
        assert (f"\n{line}\n" in text) == (len(ids) == 2)
    assert ("one was read." in text) == (len(ids) == 1)
