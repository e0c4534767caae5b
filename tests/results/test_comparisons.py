"""Pairs, profiles, ranks and the leaderboard, on tables made by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench.costs import least_absolute_deviations
from normbench.datasets.bundled import diabetes
from normbench.engine.settings import Settings
from normbench.results import comparisons, profile
from normbench.results.runs import Sweep
from tests.results.conftest import write_sweep

ALL = [10, 20, 30, 40, 50, 60]


def table(**schemes):
    """A table as `reached` returns it: one experiment, one problem a start."""
    rows = [
        {"experiment": "x", "setting": "", "split": "0", "start": n, "scheme": name, "value": v}
        for name, values in schemes.items()
        for n, v in enumerate(values)
    ]
    return pd.DataFrame(rows)


def test_a_scheme_that_is_always_twice_as_fast_is_faster():
    (row,) = comparisons.paired(table(a=ALL, b=[2 * value for value in ALL])).to_dict("records")
    assert (row["wins"], row["verdict"]) == (1.0, "faster")
    assert row["ratio"] == pytest.approx(2.0)
    assert row["low"] == pytest.approx(2.0)
    assert row["high"] == pytest.approx(2.0)


def test_an_unreached_problem_is_infinite_in_a_median():
    found = comparisons.spread(table(a=[1, 2, 3], b=[4, np.inf, np.inf])).set_index("scheme")
    assert found.loc["a", ["median", "q1", "q3"]].tolist() == [2, 2, 3]
    assert found.loc["b", ["median", "q1", "q3"]].tolist() == [np.inf, np.inf, np.inf]


def test_there_is_no_verdict_where_the_interval_holds_one():
    pairs = comparisons.paired(table(a=ALL, b=[20, 10, 60, 20, 100, 30]))
    (row,) = pairs.to_dict("records")
    assert row["low"] <= 1 <= row["high"]
    assert row["verdict"] == "none"
    assert row["wins"] == 0.5


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_fewer_than_six_pairs_have_no_interval_and_no_verdict(count):
    found = comparisons.compare(np.ones(count), np.full(count, 5.0))
    assert (found["verdict"], found["ratio"], found["wins"]) == ("none", pytest.approx(5), 1.0)
    assert np.isnan([found["low"], found["high"]]).all()
    assert comparisons.compare(np.ones(6), np.full(6, 5.0))["verdict"] == "faster"


def test_pairs_that_are_too_few_are_not_compared(monkeypatch):
    compared = []
    both = pd.concat([table(a=[1, 2], b=[2, 3]), table(c=[5])])
    compare = comparisons.compare
    monkeypatch.setattr(
        comparisons, "compare", lambda *pair: compared.append(pair) or compare(*pair)
    )
    (row,) = comparisons.paired(both, least=2).to_dict("records")
    assert (row["scheme"], row["against"], row["pairs"]) == ("a", "b", 2)
    assert len(compared) == 1
    assert len(comparisons.paired(both)) == 3


def test_unreached_is_infinite_and_twice_unreached_a_tie():
    found = comparisons.compare(np.full(6, 5.0), np.full(6, np.inf))
    assert (found["verdict"], found["ratio"], found["wins"]) == ("faster", np.inf, 1.0)
    found = comparisons.compare(np.full(6, np.inf), np.full(6, np.inf))
    assert (found["verdict"], found["ratio"], found["wins"]) == ("none", 1.0, 0.5)


def test_exchanging_the_schemes_exchanges_the_verdict():
    one, other = np.array([3.0, 7, 5, 9, 4, 6]), np.array([6.0, 8, 15, 10, 5, 7])
    there, back = comparisons.compare(one, other), comparisons.compare(other, one)
    assert there["ratio"] == pytest.approx(1 / back["ratio"])
    assert there["wins"] == 1 - back["wins"]
    assert (there["verdict"], back["verdict"]) == ("faster", "slower")


@pytest.mark.parametrize("count", [6, 7, 9, 21])
@pytest.mark.parametrize("draw", ["standard_normal", "exponential", "standard_cauchy"])
def test_the_interval_covers_as_often_as_it_says(count, draw):
    rng = np.random.default_rng(3)
    median = np.log(2) if draw == "exponential" else 0.0
    covered = []
    for _ in range(1000):
        low, high = comparisons.interval(getattr(rng, draw)(size=count))
        covered.append(low <= median <= high)
    # By the binomial 0.961 (of 9) to 0.984 (of 7); 1,000 draws have a standard error of 0.006.
    assert 0.94 <= np.mean(covered) <= 1


def test_a_profile_is_the_share_within_a_factor_of_the_best():
    found = comparisons.profile(table(a=[10, 10, np.inf], b=[20, 5, np.inf]))
    share = found.set_index(["scheme", "factor"])["share"]
    assert share["a", 1.0] == pytest.approx(1 / 3)
    assert share["a", 2.0] == pytest.approx(2 / 3)
    assert share["b", 1.0] == pytest.approx(1 / 3)
    assert found["share"].max() < 1  # no scheme solves the third
    for _, own in found.groupby("scheme"):
        assert own["share"].is_monotonic_increasing


def test_ranks_share_ties_and_the_leaderboard_begins_with_the_best():
    both = table(a=[1, 1, np.inf], b=[2, 1, np.inf], c=[9, 9, 9])
    (ranks,) = comparisons.ranks(both).to_dict("records")
    assert ranks == pytest.approx({"a": 5 / 3, "b": 2.0, "c": 7 / 3})
    board = comparisons.leaderboard(both)
    assert list(board["scheme"]) == ["a", "b", "c"]
    assert list(board["solved"]) == pytest.approx([2 / 3, 2 / 3, 1])
    assert list(board["won"]) == pytest.approx([2 / 3, 1 / 3, 1 / 3])
    assert board[["low", "high"]].isna().all(axis=None)  # of three problems
    board = comparisons.leaderboard(table(a=[1] * 5 + [9], b=[2] * 6))
    assert (board["low"] <= board["rank"]).all()
    assert (board["rank"] <= board["high"]).all()
    assert (board["low"] < board["high"]).all()


def test_a_rank_over_experiments_is_as_sure_as_the_experiments_agree():
    def over(count, *values):
        one = table(a=[1.0], b=[2.0])
        parts = [one.assign(experiment=f"x{number}") for number in range(count)]
        for part, value in zip(parts, values):
            part.loc[part["scheme"] == "b", "value"] = value
        return comparisons.leaderboard(pd.concat(parts))

    apart = over(12, 0.5, 0.5, 0.5, 0.5)  # one problem each
    assert (apart["low"] < apart["rank"]).all()
    assert (apart["rank"] < apart["high"]).all()
    alike = over(12)
    assert alike["low"].tolist() == alike["high"].tolist() == [1, 2]
    assert over(5, 0.5)[["low", "high"]].isna().all(axis=None)


def test_the_interval_of_a_rank_covers_about_as_often_as_it_says():
    rng = np.random.default_rng(3)
    covered = []
    for number in range(100):
        values = rng.standard_exponential((12, 2))
        parts = [table(a=[a], b=[b]).assign(experiment=str(n)) for n, (a, b) in enumerate(values)]
        board = comparisons.leaderboard(pd.concat(parts), number)
        covered.append((board["low"] <= 1.5).all() and (board["high"] >= 1.5).all())
    # Measured: 0.95; 100 draws of a share of 0.95 have a standard error of 0.022.
    assert np.mean(covered) >= 0.88


def test_only_problems_that_every_scheme_was_run_on_count():
    part = pd.concat([table(a=[1, 2]), table(b=[5])])
    assert set(comparisons.profile(part)["share"]) == {0.0, 1.0}
    assert comparisons.leaderboard(part)["problems"].tolist() == [1, 1]


def test_settings_are_not_pooled():
    both = pd.concat(
        [
            table(a=ALL, b=[2 * value for value in ALL]).assign(setting="optimizer=adam"),
            table(a=ALL, b=[value / 2 for value in ALL]).assign(setting="optimizer=newton"),
        ]
    )
    pairs = comparisons.paired(both)
    assert pairs["setting"].tolist() == ["optimizer=adam", "optimizer=newton"]
    assert pairs["verdict"].tolist() == ["faster", "slower"]
    spread = comparisons.spread(both).set_index(["setting", "scheme"])["median"]
    assert spread["optimizer=newton", "b"] == spread["optimizer=adam", "b"] / 4
    assert "setting" not in comparisons.paired(table(a=[1], b=[2]))
    assert "setting" not in comparisons.spread(table(a=[1]))


def test_settings_make_problems_and_per_scheme_options_do_not():
    schemes = pd.DataFrame(
        {
            "experiment": "x",
            "normalizer": ["a", "a", "b", "b"],
            "params.cost.l2": ["0", "1", "0", "1"],
            "params.iterations": ["10", "10", "50", "50"],
            "params.record": ["[]", "[x]", "[]", "[]"],
        }
    )
    assert comparisons.problems(schemes) == [{"cost.l2": value} for value in "0101"]


def test_a_choice_stands_for_the_options_that_come_with_it():
    schemes = pd.DataFrame(
        {
            "experiment": "x",
            "normalizer": ["a", "b"] * 3,
            "params.optimizer": ["gradient_descent"] * 2 + ["adam"] * 4,
            "params.optimizer._target_": ["gd"] * 2 + ["ad"] * 4,
            "params.optimizer.epsilon": [np.nan] * 2 + ["0.1"] * 2 + ["0.2"] * 2,
        }
    )
    plain, adam, other = comparisons.problems(schemes)[::2]
    assert plain == {"optimizer": "gradient_descent"}
    assert adam == {"optimizer": "adam", "optimizer.epsilon": "0.1"}
    assert other == {"optimizer": "adam", "optimizer.epsilon": "0.2"}


def test_a_per_scheme_option_makes_none_beside_sweeps_that_have_another():
    schemes = pd.DataFrame(
        {
            "experiment": ["x", "x", "x", "x", "y", "y"],
            "sweep": [0, 0, 1, 1, 2, 2],
            "normalizer": ["a", "b"] * 3,
            "params.iterations": ["100", "20", "50", "50", "30", "30"],
            "params.shown_step": ["1", "10", "None", "None", "2", "3"],
            "params.study.says": ["this", "that", *[np.nan] * 4],
        }
    )
    one, other, *same = comparisons.problems(schemes, "sweep")
    assert one == other == {"iterations": comparisons.OWN}
    assert same == [{"iterations": "50"}] * 2 + [{}] * 2


def runs(*jobs, **params):
    """A sweep as it is read: of each job (experiment, scheme, best iterations to 1e-2), or None
    where it failed; of a whole dict, its own settings too."""
    rows = []
    for number, (experiment, scheme, value, *own) in enumerate(jobs):
        about = {f"params.{key}": text for key, text in {**params, **dict(*own)}.items()}
        row = {
            "run_id": f"{experiment}{number}",
            "experiment": experiment,
            "normalizer": scheme,
            **about,
        }
        row |= {"role": "scheme", "verdict": "failed" if value is None else "settled"}
        rows.append(row)
        if value is not None:
            row["params.dataset.encoding"] = "0, 1"
            step = {"role": "step", "run_id": f"step{number}", "parent": row["run_id"]}
            step |= {"metrics.final/train_cost": 0.1, "tags.best": "true", "verdict": "settled"}
            step |= {"metrics.final/iterations_to_1e-2": value, "experiment": experiment}
            rows.append(step)
    return Sweep("-", "s", pd.DataFrame(rows))


def test_a_job_that_failed_is_unreached_and_keeps_its_problem():
    jobs = [
        (experiment, scheme, 5.0, {"dataset.split_seed": split})
        for experiment in "xy"
        for split in "01"
        for scheme in "ab"
    ]
    jobs[1] = (*jobs[1][:2], None, jobs[1][3])
    table = comparisons.reached([runs(*jobs)])
    assert len(table) == 8
    assert table["setting"].eq("").all()
    assert comparisons.leaderboard(table)["problems"].tolist() == [4, 4]
    x, y = comparisons.paired(table).to_dict("records")
    assert (x["pairs"], y["pairs"]) == (2, 2)
    assert (x["wins"], y["wins"]) == (0.75, 0.5)


def test_a_job_without_a_descent_is_no_problem():
    study = runs(("x", "a", None), ("x", "b", None), iterations="0")
    assert comparisons.reached([study]).empty
    table = comparisons.reached([study, runs(("y", "a", 1.0), ("y", "b", 2.0), iterations="9")])
    assert comparisons.leaderboard(table)["solved"].tolist() == [1, 1]


@pytest.mark.parametrize("name", ["dataset.split_seed", "dataset.seed", "seed"])
def test_draws_of_a_problem_are_pairs_and_other_settings_are_not(name):
    def pairs(name):
        jobs = [("x", scheme, 1.0, {name: draw}) for scheme in "ab" for draw in "01"]
        return comparisons.paired(comparisons.reached([runs(*jobs)]))

    assert pairs(name)["pairs"].tolist() == [2]
    assert pairs("optimizer")["pairs"].tolist() == [1, 1]


def test_a_step_size_that_is_shown_need_not_be_the_best(three):
    every = three.sweep.runs
    marked = {row.parent: row.run_id for row in every[every["tags.best"] == "true"].itertuples()}
    best = {key: row["run_id"] for key, row in comparisons._best_runs(three.sweep).items()}
    assert best == marked
    smallest = every["tags.step_size"].eq("0.01") & (every["role"] == "step")
    other = every.assign(**{"tags.best": smallest.map({True: "true", False: "false"})})
    shown = Sweep(three.uri, "sweep-1", other)
    again = {key: row["run_id"] for key, row in comparisons._best_runs(shown).items()}
    assert again == marked
    assert set(marked.values()) != set(every.loc[smallest, "run_id"])


def test_a_profile_says_which_schemes_share_no_problem(monkeypatch, capsys):
    found = {
        "1": runs(*(("x", scheme, 1.0) for scheme in "abc")),
        "2": runs(*(("y", scheme, 1.0) for scheme in "ad")),
    }
    monkeypatch.setattr(profile, "load", lambda store, sweep_id: found[sweep_id])
    monkeypatch.setattr(profile, "_predictions", lambda loaded: pd.DataFrame())
    profile.tell("-", ["1", "2"], "1e-2", "iterations")
    told = capsys.readouterr().out
    assert "leaderboard: nothing to compare (no problem on which every scheme was run" in told
    assert "two schemes" not in told


def test_seconds_of_a_start_do_not_depend_on_the_median(three, monkeypatch):
    every = three.sweep.runs.assign(**{"params.starts": "2"})
    # One start of two reaches the target, so that their median does not.
    sweep = Sweep("-", "s", every.drop(columns="metrics.final/seconds_to_1e-2", errors="ignore"))
    monkeypatch.setattr(Sweep, "series", lambda *_: {0: 7.0})
    table = comparisons.reached([sweep], "1e-2", "seconds")
    first = sweep.of_role("scheme").iloc[0]
    fit, descent = (first[f"metrics.time/{name}_seconds"] for name in ("fit", "descent"))
    one, other = table["value"][:2]
    assert other == np.inf
    assert one == fit + 7 * first["metrics.time/seconds_a_step"]
    assert fit < one < fit + descent
    unknown = Sweep("-", "s", every.drop(columns="metrics.time/seconds_a_step"))
    assert comparisons.reached([unknown], "1e-2", "seconds").empty


def test_schemes_are_counted_to_one_target(tmp_path):
    schemes = [("identity", FunctionTransformer()), ("standard", StandardScaler())]
    settings = Settings((0.1, 1, 10), iterations=100)
    made = write_sweep(
        tmp_path, diabetes(), least_absolute_deviations, schemes, settings, "diabetes-deviations"
    )
    name = "metrics.theory/target_1e-1"
    rows = made.sweep.of_role("scheme").set_index("normalizer")
    identity, standard = rows.loc["identity"], rows.loc["standard"]
    assert identity[name] > 1.1 * standard[name]  # each job's own, of a cost without curvature
    assert identity["metrics.final/iterations_to_1e-1"] < 200
    values = comparisons.reached([made.sweep], "1e-1").set_index("scheme")["value"]
    assert values["identity"] == np.inf
    assert values["standard"] == standard["metrics.final/iterations_to_1e-1"]


def test_a_target_counts_where_it_is_held():
    assert comparisons._first_held({0: 9.0, 1: 2.0, 2: 3.0, 3: 1.0, 4: 1.0}, 2.0) == 3
    assert comparisons._first_held({0: 1.0, 1: 1.0}, 2.0) == 0
    assert comparisons._first_held({0: 9.0, 1: 3.0}, 2.0) == np.inf
    assert comparisons._first_held({}, 2.0) == np.inf
