"""What makes a problem and what repeats it, on sweeps made by hand."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.answer.headline import headline
from normbench.results.compare import problems, reached
from normbench.results.store.run_labels import labels
from normbench.results.store.runs import Sweep
from normbench.settings import SEEDS
from tests.results.made import runs

GRID = {0.1: 5.0, 1.0: 2.0}
OTHER = {0.1: (9.0, 0.004), 1.0: (3.0, 0.002)}


def splits(sweep):
    """Return the number of the split of each job."""
    return problems.scheme_runs([sweep])["split"].tolist()


def test_what_is_made_of_a_sweep_once_is_not_changed_by_who_asks():
    sweep = runs(("x", "identity", GRID), ("x", "standard", GRID))
    for ask in (problems.scheme_runs_with_groups, reached.time_to_target):
        first = ask([sweep])
        first["experiment"] = "changed"
        assert set(ask([sweep])["experiment"]) == {"x"}
    assert sweep.only("x") is sweep.only("x")
    assert [*problems.scheme_runs([sweep])] == [*problems.scheme_runs_with_groups([sweep])]


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
    assert problems.problems(schemes) == [{"cost.l2": value} for value in "0101"]


def test_the_point_that_a_picture_shows_makes_no_problem():
    jobs = [("x", scheme, GRID, {"shown_point": point}) for scheme in "ab" for point in "01"]
    runs_of = problems.scheme_runs([runs(*jobs)])
    assert set(runs_of["setting"]) == {""}
    assert len(runs_of) == 2


def test_what_was_recorded_of_a_setting_is_told_as_one_types_it():
    schemes = pd.DataFrame(
        {
            "experiment": "x",
            "normalizer": ["a"] * 2 + ["b"] * 2,
            "run_id": list("1234"),
            "params.dataset.augment": ["None", "round"] * 2,
            "params.normalizer.whiten": ["None", "True", float("nan"), float("nan")],
        }
    )
    assert problems.problems(schemes)[0] == {"dataset.augment": "null"}
    assert list(problems.scheme_names(schemes).values()) == [
        "a, whiten=null",
        "a, whiten=true",
        *"bb",
    ]


def test_what_is_normalized_inside_a_model_is_compared_as_schemes_are():
    schemes = pd.DataFrame(
        {
            "experiment": "x",
            "normalizer": ["a"] * 4,
            "run_id": list("1234"),
            "params.model": "mlp",
            "params.model.hidden": ["[3]"] * 2 + ["[4]"] * 2,
            "params.model.normalize": ["none", "batch"] * 2,
        }
    )
    assert [each["model.hidden"] for each in problems.problems(schemes)] == ["[3]"] * 2 + [
        "[4]"
    ] * 2
    assert [*problems.scheme_names(schemes).values()] == [
        "a, model.normalize=none",
        "a, model.normalize=batch",
    ] * 2


def test_a_start_that_stands_in_for_another_makes_none():
    schemes = pd.DataFrame(
        {
            "experiment": "x",
            "normalizer": ["pca", "pca", "standard"],
            "role": "scheme",
            "run_id": ["1", "2", "3"],
            names.SWEEP_ID.column: "s",
            "params.normalizer.components": ["2", "30", float("nan")],
            "params.start": ["normal", "same_function", "same_function"],
            names.STANDS_IN.column: ["true", float("nan"), float("nan")],
        }
    )
    assert problems.problems(schemes) == [{}] * 3
    assert list(labels(schemes)) == ["pca, components=2", "pca, components=30", "standard"]
    asked = schemes.drop(columns=names.STANDS_IN.column)
    assert [one["start"] for one in problems.problems(asked)] == list(asked["params.start"])


def test_a_choice_stands_for_the_options_that_come_with_it():
    schemes = pd.DataFrame(
        {
            "experiment": "x",
            "normalizer": ["a", "b"] * 3,
            "params.optimizer": ["gradient_descent"] * 2 + ["adam"] * 4,
            "params.optimizer._target_": ["gd"] * 2 + ["ad"] * 4,
            "params.optimizer.epsilon": [float("nan")] * 2 + ["0.1"] * 2 + ["0.2"] * 2,
        }
    )
    plain, adam, other = problems.problems(schemes)[::2]
    assert plain == {"optimizer": "gradient_descent"}
    assert adam == {"optimizer": "adam", "optimizer.epsilon": "0.1"}
    assert other == {"optimizer": "adam", "optimizer.epsilon": "0.2"}


def test_a_setting_that_an_optimizer_has_to_itself_comes_with_it():
    schemes = pd.DataFrame(
        {
            "experiment": "x",
            "role": "scheme",
            "run_id": list("123456"),
            names.SWEEP_ID.column: "s",
            "normalizer": ["a", "b"] * 3,
            "params.optimizer": ["newton"] * 2 + ["adam"] * 4,
            "params.iterations": ["10"] * 2 + ["100"] * 4,
            "params.seed": ["0"] * 4 + ["1"] * 2,
        }
    )
    assert list(labels(schemes))[::2] == [
        "a, optimizer=newton",
        "a, optimizer=adam, seed=0",
        "a, optimizer=adam, seed=1",
    ]
    known = problems.problems(schemes.drop(columns="params.seed"))
    assert known[::2] == [{"optimizer": "newton"}] + [{"optimizer": "adam"}] * 2
    other = schemes.assign(**{"params.iterations": ["10"] * 2 + ["100"] * 2 + ["50"] * 2})
    assert problems.problems(other)[2]["iterations"] == "100"


def test_a_per_scheme_option_makes_none_beside_sweeps_that_have_another():
    schemes = pd.DataFrame(
        {
            "experiment": ["x", "x", "x", "x", "y", "y"],
            "sweep": [0, 0, 1, 1, 2, 2],
            "normalizer": ["a", "b"] * 3,
            "params.iterations": ["100", "20", "50", "50", "30", "30"],
            "params.shown_step": ["1", "10", "None", "None", "2", "3"],
            "params.study.says": ["this", "that", *[float("nan")] * 4],
        }
    )
    one, other, *same = problems.problems(schemes, "sweep")
    assert one == other == {"iterations": problems.VALUE_PER_SCHEME}
    assert same == [{"iterations": "50"}] * 2 + [{}] * 2


@pytest.mark.parametrize("name", SEEDS)
def test_draws_repeat_a_problem_and_other_settings_make_others(name):
    def places(name):
        jobs = [("x", scheme, GRID, {name: draw}) for scheme in "ab" for draw in "01"]
        return set(problems.scheme_runs([runs(*jobs)])["setting"])

    assert places(name) == {""}
    assert places("optimizer") == {"optimizer=0", "optimizer=1"}


def test_what_shares_its_data_is_one_split_and_its_starts_one_value():
    """Two splits of the data, each from two draws of the start: two values a scheme, not four."""
    grids = {"00": 4.0, "01": 8.0, "10": 6.0, "11": 6.0}
    jobs = [
        (
            "x",
            scheme,
            {1.0: (value, 1e-3 * value)},
            {"dataset.split_seed": draw[0], "seed": draw[1], "data": f"digest {draw[0]}"},
        )
        for scheme in "ba"
        for draw, value in grids.items()
    ]
    sweep = runs(*jobs)
    assert splits(sweep) == [0, 0, 1, 1] * 2
    table = reached.time_to_target([sweep])
    assert table["scheme"].tolist() == ["b", "b", "a", "a"]  # in the order that they ran in
    assert table["value"].tolist() == [8, 6, 8, 6]  # the upper median of two starts
    # A split seed that held nothing out drew the same data.
    same = [(*job[:3], {**job[3], "data": "digest"}) for job in jobs]
    assert len(reached.time_to_target([runs(*same)])) == 2


def test_a_job_that_failed_is_of_the_split_of_its_seeds():
    jobs = [
        ("x", scheme, None if (scheme, seed) == ("a", "1") else grid, about)
        for seed, grid in (("0", GRID), ("1", OTHER))
        for scheme in "ab"
        for about in [{"dataset.split_seed": seed, "data": f"digest {seed}"}]
    ]
    jobs[2] = (*jobs[2][:3], {"dataset.split_seed": "1"})
    assert splits(runs(*jobs)) == [0, 0, 1, 1]


def test_equal_results_are_one_and_the_seed_that_made_them_is_named():
    jobs = [("x", s, GRID, {"seed": str(n)}) for s in "ab" for n in range(6)]
    sweep = runs(*jobs)
    assert len(reached.time_to_target([sweep])) == 2
    (said,) = problems.idle_seeds([sweep])
    assert said.startswith("seed has no effect here: its 6 values give equal results")
    assert "dataset.split_seed" in said
    (said,) = problems.idle_seeds([runs(*jobs[:-2])])  # of another scheme, fewer
    assert "its 6 values" in said
    # Other data with the same results to rounding, such as the same points in another order.
    near = {0.1: (5.0, 0.001 * (1 + 1e-12)), 1.0: 2.0}
    jobs = [("x", "a", GRID, {"dataset.seed": "0", "data": "d"})]
    jobs += [("x", "a", near, {"dataset.seed": "1", "data": "e"})]
    assert splits(runs(*jobs)) == [0, 0]
    # Results that differ by more than rounding are of another split.
    differing = {0.1: (5.0, 0.001 * (1 + 1e-7)), 1.0: 2.0}
    assert splits(runs(jobs[0], ("x", "a", differing, jobs[1][3]))) == [0, 1]
    # Equal under one scheme and not under the other: two splits.
    jobs += [("x", "b", GRID, jobs[0][3]), ("x", "b", OTHER, jobs[1][3])]
    assert splits(runs(*jobs)) == [0, 1, 0, 1]


def test_only_the_seed_that_changes_nothing_is_named_where_several_are_varied():
    jobs = [
        ("x", "a", grid, {"dataset.split_seed": split, "seed": seed, "data": split})
        for split, grid in (("0", GRID), ("1", OTHER))
        for seed in "012"
    ]
    (said,) = problems.idle_seeds([runs(*jobs)])
    assert said.startswith("seed has no effect here: its 3 values give equal results")


def test_a_setting_that_some_jobs_have_alone_makes_a_problem():
    schemes = pd.DataFrame(
        {"experiment": "x", "normalizer": ["a", "a"], "params.more": ["1", float("nan")]}
    )
    assert problems.problems(schemes) == [{"more": "1"}, {}]


@pytest.mark.parametrize(("told", "starts"), [("3", 3), ("", 1), (None, 1), ("${other}", 1)])
def test_starts_that_are_not_told_are_one(told, starts):
    assert problems.starts_of({names.setting("starts"): told}) == starts
    assert problems.starts_of({}) == 1


@pytest.mark.parametrize(
    ("values", "count"),
    [("0,1,2", 3), ("range(0,7)", 7), ("range(7)", 7), ("range(start=1,stop=8,step=2)", 4)],
)
def test_a_seed_whose_values_share_one_run_is_named(values, count):
    """A job that draws nothing by its seed is not run again: the command alone tells of it."""
    sweep = runs(*(("x", scheme, GRID, {"seed": "0"}) for scheme in "ab"))
    told = sweep.runs["role"] == "sweep"
    command = f"normbench -m 'seed={values}' dataset.test_fraction=0.25 'step_sizes=[0.1,1]'"
    sweep.runs.loc[told, names.COMMAND.column] = command
    (said,) = problems.idle_seeds([sweep])
    assert said.startswith(f"seed has no effect here: its {count} values give equal results")


def test_a_seed_that_changes_something_is_not_named():
    jobs = [("x", s, g, {"seed": n}) for s in "ab" for n, g in (("0", GRID), ("1", OTHER))]
    assert problems.idle_seeds([runs(*jobs)]) == []
    assert splits(runs(*jobs)) == [0, 0, 0, 0]  # other starts, on the same data


def test_a_penalty_on_transformed_weights_makes_functions_of_their_own():
    def own(**settings):
        return problems.minimize_different_functions(
            runs(("x", "a", GRID, settings)).of_role("scheme")
        )

    assert own(**{"cost.l2": "0.1"})
    assert not own(**{"cost.l2": "0.0"})
    assert not own(**{"cost.l2": "0.1", "cost.l2_in": "features"})
    assert not own()
    two = runs(("x", "a", GRID, {"cost.l2": "0.0"}), ("x", "b", GRID, {"cost.l2": "0.1"}))
    assert problems.minimize_different_functions(two.of_role("scheme"))


def over_orders(orders, **settings):
    """A sweep in batches: the first scheme takes 3 passes, the second 4, and in one order 2."""
    batched = {"batch": "32", "batch_order": "shuffled", "train_points": 100, **settings}
    return runs(
        *(
            (
                "x",
                name,
                {1.0: (first if seed else other, 0.001 + seed / 1e4)},
                {"batch_seed": str(seed)},
            )
            for seed in range(orders)
            for name, first, other in (("a", 3, 3), ("b", 4, 2))
        ),
        data="d",
        **batched,
    )


def test_orders_of_the_batches_are_repetitions_where_there_is_one_split():
    jobs = problems.scheme_runs([over_orders(7)])
    assert jobs["split"].nunique() == 1
    assert sorted(set(jobs["sample"])) == list(range(7))
    assert problems.sample_name(jobs) == "orders of the batches"
    text = headline(over_orders(7))
    assert "a or b; 7 orders of the batches show no difference" in text
    assert "(medians of 7 orders of the batches)" in text
    assert "too few" in headline(over_orders(3))


@pytest.mark.parametrize("settings", [{"batch": "None"}, {"batch_order": "cyclic"}])
def test_orders_that_no_seed_draws_are_none(settings):
    jobs = problems.scheme_runs([over_orders(3, **settings)])
    assert jobs["sample"].equals(jobs["split"])
    assert problems.sample_name(jobs) == "splits"


def test_over_several_splits_the_split_is_the_sample():
    sweep = over_orders(4)
    seeds = sweep.runs[names.setting("batch_seed")].fillna("0").astype(int)
    data = np.where(seeds > 1, "d", "e")
    frame = sweep.runs.assign(data=data, **{names.setting("dataset.split_seed"): data})
    jobs = problems.scheme_runs([Sweep("-", "s", frame)])
    assert sorted(set(jobs["sample"])) == [0, 1]


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        ({}, {}, False),
        ({"a": 1.0}, {"a": 1.0}, True),
        ({"a": 1.0}, {"a": 1.0, "b": 2.0}, False),
        ({"a": 1.0}, {"b": 1.0}, False),
        ({"a": 1.0}, {"a": 1.0 + 5e-10}, True),
        ({"a": 1.0}, {"a": 1.0 + 5e-9}, False),
        ({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.1}, False),
        ({"a": np.inf}, {"a": np.inf}, True),
    ],
)
def test_results_are_equal_where_all_their_numbers_are(first, second, equal):
    assert problems.equal_results(first, second) == equal


def test_a_setting_that_one_scheme_does_not_have_is_each_schemes_own():
    schemes = pd.DataFrame(
        {
            "experiment": "x",
            "sweep": [0, 0, 1, 1],
            "normalizer": ["a", "b"] * 2,
            "params.iterations": ["100", None, "50", "50"],
        }
    )
    own, none, *same = problems.problems(schemes, "sweep")
    assert own == {"iterations": problems.VALUE_PER_SCHEME}
    assert none == {}
    assert same == [{"iterations": "50"}] * 2


@pytest.mark.parametrize(
    ("argument", "drawn", "named"),
    [
        ("seed=0,1", "00", True),
        ("+seed=0,1", "00", True),
        ("seed=0,1;", "00", True),
        ("seed=0", "00", False),
        ("'seed=0,1", "00", False),  # an open quote
        ("seed=range(0,1)", "00", False),
        ("seed=0,1", "01", False),
        ("iterations=1,2", "00", False),
    ],
)
def test_a_seed_of_several_values_of_which_one_was_run_has_no_effect(argument, drawn, named):
    jobs = [("x", s, grid, {"seed": n}) for s, grid, n in zip("ab", (GRID, OTHER), drawn)]
    sweep = runs(*jobs)
    sweep.runs.loc[sweep.runs["role"] == "sweep", names.COMMAND.column] = f"normbench {argument}"
    assert bool(problems.idle_seeds([sweep])) == named


def test_what_was_recorded_is_what_two_jobs_are_compared_by():
    frame = runs(("x", "a", GRID), ("x", "b", None)).runs
    frame.loc[frame["role"] == "scheme", names.LIPSCHITZ.column] = [2.0, np.nan]
    sweep = Sweep("-", "s", frame)
    found = problems.job_results([sweep], sweep.of_role("scheme"))
    goal, cost = names.reached("1e-2").key, names.FINAL_COST.key
    assert found["x1"] == {}
    assert found["x0"] == {
        **{names.LIPSCHITZ.key: 2.0, names.MINIMUM.key: 0.0},
        **{f"0.1 {cost}": 0.001, f"0.1 {goal}": 5.0, f"1 {cost}": 0.001, f"1 {goal}": 2.0},
    }


def test_what_is_made_of_several_sweeps_is_of_these_very_ones():
    first, second, third = (runs((place, place, GRID)) for place in "abc")  # ids of their own
    for ask in (problems.scheme_runs_with_groups, reached.time_to_target):
        assert ask([first, second])["scheme"].tolist() == ["a", "b"]
        assert ask([first, third])["scheme"].tolist() == ["a", "c"]
        assert ask([first])["scheme"].tolist() == ["a"]
