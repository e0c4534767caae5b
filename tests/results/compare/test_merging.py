"""Splits and seeds as one row a scheme, on a sweep of our own and on tables made by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from normbench import names
from normbench.costs import softmax
from normbench.datasets import split
from normbench.datasets.bundled import breast_cancer
from normbench.engine.settings import Settings
from normbench.normalizers import PCASphere
from normbench.results.answer import tables
from normbench.results.compare import heldout, merging
from normbench.results.figures import drawing
from normbench.results.figures.base import style
from normbench.results.pages import views
from normbench.results.store.runs import Sweep
from tests.recorded import write_sweep
from tests.results.made import runs

COUNT = 4


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    """Four splits of the breast cancer data, two schemes, two step sizes."""
    folder = tmp_path_factory.mktemp("splits")
    settings = Settings((1.0, 10.0), iterations=60)
    for seed in range(COUNT):
        made = write_sweep(
            folder,
            split(breast_cancer(), 0.25, seed),
            softmax,
            [("standard", StandardScaler()), ("pca_sphere", PCASphere())],
            settings,
            "cancer",
            params={"dataset.split_seed": str(seed)},
        )
    return made.sweep


def test_a_scheme_is_one_row_with_medians_and_quartiles_over_its_splits(splits):
    assert len(splits.of_role("scheme")) == 2 * COUNT
    table = tables.summary(splits).set_index("scheme")
    assert list(table.index) == ["standard", "pca_sphere"]
    assert merging.merged(splits).runs.index.is_unique
    assert (table["medians of"] == "4 splits").all()
    every = splits.of_role("step")
    for scheme, row in table.iterrows():
        same = (every["normalizer"] == scheme) & (every[names.STEP_TAG.column] == row["best step"])
        costs = every.loc[same, names.FINAL_COST.column]
        assert len(costs) == COUNT
        wanted = np.quantile(costs, [0.25, 0.5, 0.75])
        assert row[["cost q1", "cost", "cost q3"]].tolist() == pytest.approx(wanted)


def test_the_runs_of_all_splits_have_the_colour_of_their_schemes_curve(splits):
    colors = views.colors(splits, "cancer")
    rows = splits.of_role("scheme")
    assert len(rows) == 2 * COUNT
    for row in rows.to_dict("records"):
        assert colors[row["run_id"]] == style.look(row["normalizer"]).color


def test_a_scheme_is_one_curve_with_a_band(splits):
    cost, rates = drawing.figure(splits, "cancer", "histories").axes
    curves = [line for line in cost.lines if line.get_label()[0] != "_"]
    assert [line.get_label().split(",")[0] for line in curves] == ["standard", "pca_sphere"]
    assert len(cost.collections) == 2
    assert rates.get_ylabel() == "misclassified points, percent"
    texts = [text.get_text() for text in cost.figure.texts]
    notes = [*texts, cost.figure.get_supxlabel()]
    assert any("bands: quartiles, over 4 splits" in note for note in notes)
    runs_of = merging.merged(splits).of_role("scheme")
    table = merging.merged(splits).histories(runs_of)
    assert table.index.is_unique
    ends = table[table["iteration"] == 60].set_index("label")
    summary = tables.summary(splits).set_index("scheme")
    for scheme in curves and summary.index:
        assert ends.loc[scheme, "train/cost"] == pytest.approx(summary.loc[scheme, "cost"])
        assert ends.loc[scheme, "train/cost_q3"] == pytest.approx(summary.loc[scheme, "cost q3"])


def test_the_table_of_histories_is_at_the_steps_of_the_summary(splits):
    table = tables.histories(splits)
    shown = tables.summary(splits).set_index("scheme")["best step"].astype(float)
    assert dict(table.groupby("label")["step_size"].unique().map(list)) == {
        label: [step] for label, step in shown.items()
    }
    assert not table.duplicated(["label", "iteration"]).any()


def test_test_points_have_a_row_a_split_and_rates(splits):
    table = heldout.by_split(splits)
    assert len(table) == 2 * COUNT
    assert list(table["scheme"].unique()) == ["standard", "pca_sphere"]
    summary = tables.summary(splits).set_index("scheme")["best step"]
    every = splits.of_role("step")
    for scheme, own in table.groupby("scheme"):
        same = (every["normalizer"] == scheme) & (every[names.STEP_TAG.column] == summary[scheme])
        ends = every.loc[same, names.FINAL_TEST_COST.column]
        assert sorted(own["cost"]) == pytest.approx(sorted(ends), rel=1e-9)
        wrong = every.loc[same, names.FINAL_TEST_MISCLASSIFICATIONS.column]
        assert sorted(142 * own["rate"]) == pytest.approx(sorted(wrong))
    row = splits.of_role("scheme").iloc[0]
    assert (row["train_points"], row["test_points"]) == (427, 142)
    assert table["ratio"].to_numpy() == pytest.approx(142 / 427)
    counts = 142 * table["rate"]
    assert counts.to_numpy() == pytest.approx(np.round(counts))
    assert (table["best cost"] <= table["cost"]).all()
    assert (table["best rate"] <= table["rate"]).all()
    assert (table[["rate", "train rate"]] < 0.5).all(axis=None)


def test_a_sweep_without_repeats_is_itself(three):
    assert merging.merged(three.sweep) is three.sweep
    assert merging.unmerged(three.sweep) is three.sweep


@pytest.mark.parametrize(
    ("third", "step"),
    [
        ({0.1: 8, 1.0: 2}, "0.1"),
        ({0.1: 12, 1.0: 2}, "1"),  # the upper quartile counts, not the median
        ({0.1: 8, 1.0: np.nan}, "0.1"),
        ({0.1: np.nan, 1.0: 99}, "1"),  # first of all it is to fail on few splits
        ({1.0: 2}, "1"),  # a split that did not run a step size counts as one that failed
    ],
)
def test_one_step_stands_for_all_splits(third, step):
    """Two of three splits are there first at the smaller step, one at the larger."""
    held = [{0.1: 3, 1.0: 9}, {0.1: 4, 1.0: 9}, third]
    jobs = [
        (
            "x",
            "a",
            dict.fromkeys(grid, (1.0, 0.1 + n**2)),
            {"dataset.seed": str(n), "data": str(n)},
        )
        for n, grid in enumerate(held)
    ]
    sweep = runs(*jobs)
    counts = [count for grid in held for count in grid.values()]
    every = sweep.runs
    every.loc[every["role"] == "step", names.TO_LOWEST.column] = counts
    made = merging.merged(Sweep("-", "s", every))
    (scheme,) = made.of_role("scheme").to_dict("records")
    assert scheme[names.STEP_TAG.column] == step
    best = made.of_role("step").set_index(names.STEP_TAG.column)[names.BEST.column]
    assert best.to_dict() == {size: str(size == step).lower() for size in ("0.1", "1")}
    assert scheme[names.FINAL_COST.column] == 1.1
    assert scheme[merging.REPEATS] == "3 splits"
    every.loc[every["role"] == "scheme", names.STEP_CHOSEN.column] = "true"  # shown, by choice
    every.loc[every["role"] == "scheme", names.STEP_TAG.column] = "1"
    (scheme,) = merging.merged(Sweep("-", "s", every)).of_role("scheme").to_dict("records")
    assert scheme[names.STEP_TAG.column] == "1"


@pytest.mark.parametrize(
    ("splits", "words"),
    [
        ([0], ""),
        ([0, 1], "2 splits"),
        ([0, 0, 0], "3 seeds"),
        ([0, 0], "2 seeds"),
        ([0, 1, 0, 1], "2 splits x 2 seeds"),
        ([0, 1, 1], "2 splits x 2 seeds"),  # a job failed
    ],
)
def test_what_jobs_repeat_is_told_in_words(splits, words):
    assert merging.describe_repeats(pd.DataFrame({"split": splits})) == words


def test_a_verdict_over_splits_is_the_worst_and_counts_the_others():
    jobs = [
        ("x", "a", {1.0: (1.0, 0.1 + n)}, {"seed": str(n), "dataset.seed": str(n), "data": str(n)})
        for n in range(3)
    ]
    every = runs(*jobs).runs
    place = every.index[every["role"] == "step"][1]
    every.loc[place, "verdict"] = names.CYCLING
    (row,) = merging.merged(Sweep("-", "s", every)).of_role("step").to_dict("records")
    assert (row["verdict"], row["reason"]) == ("cycling", "of 3 splits: 2 not converged, 1 cycling")


def test_a_setting_that_varies_has_all_values_and_a_tag_none():
    jobs = [
        ("x", "a", {1.0: (1.0, 0.1 + n)}, {"dataset.seed": str(n), "data": str(n)})
        for n in range(2)
    ]
    every = runs(*jobs, cost="softmax").runs
    place = every.index[every["role"] == "scheme"][1]
    every.loc[place, [names.TAGS + "one", names.setting("rules.tail")]] = ["here", "0.2"]
    (row,) = merging.merged(Sweep("-", "s", every)).of_role("scheme").to_dict("records")
    assert row[names.setting("dataset.seed")] == "0, 1"
    assert row[names.setting("rules.tail")] == "0.2"
    assert row[names.setting("cost")] == "softmax"
    assert row[names.TAGS + "one"] is None


def test_the_largest_step_of_splits_is_the_smallest_of_theirs_and_knows_its_bound():
    jobs = [
        ("x", "a", {1.0: (1.0, 0.1 + n)}, {"dataset.seed": str(n), "data": str(n)})
        for n in range(4)
    ]
    every = runs(*jobs).runs
    schemes = every["role"] == "scheme"
    largest, tag = names.LARGEST_CONVERGENT.column, names.CENSORED.column

    def over(sizes, tags):
        every.loc[schemes, largest], every.loc[schemes, tag] = sizes, tags
        (row,) = merging.merged(Sweep("-", "s", every)).of_role("scheme").to_dict("records")
        return row[largest], row[tag]

    true, false = "true", "false"
    assert over([1.0, 10.0, 100.0, 100.0], [false, false, true, true]) == (1.0, "false")
    assert over([1.0, 10.0, 100.0, 100.0], [true, false, false, false]) == (1.0, "true")
    assert over([1.0, 1.0, 100.0, 100.0], [true, false, true, true]) == (1.0, "false")
    none, bound = over([1.0, np.nan, 100.0, 100.0], [true, true, true, true])
    assert (np.isnan(none), bound) == (True, "false")  # of one split no step size converges


def test_of_a_job_that_was_run_twice_the_last_is_shown():
    """As `normbench results show t1 t2` has it, of one command under two ids."""
    sweep = runs(*(("x", scheme, {1.0: (2.0, cost)}) for cost in (0.1, 0.2) for scheme in "ab"))
    shown = merging.merged(sweep)
    assert shown.of_role("scheme")["run_id"].tolist() == ["x2", "x3"]
    assert shown.of_role("step")["parent"].tolist() == ["x2", "x3"]
    assert merging.merged(shown) is shown
    assert tables.summary(sweep)["cost"].tolist() == [0.2, 0.2]


def test_test_points_of_a_job_that_was_run_twice_are_those_of_the_last(splits):
    one = splits.runs
    ids = one.loc[one[names.setting("dataset.split_seed")] == "0", "run_id"]
    rows = one[one["run_id"].isin(ids) | one["parent"].isin(ids) | (one["role"] == "sweep")]
    again = rows[rows["role"] != "sweep"].copy()
    again[["run_id", "parent"]] += "again"
    first = splits.histories(rows)
    tables_of_both = pd.concat([first, first.assign(run_id=first["run_id"] + "again")])

    class Twice(Sweep):
        def histories(self, runs, metrics=()):
            return tables_of_both[tables_of_both["run_id"].isin(runs["run_id"])]

    table = heldout.by_split(Twice("-", "s", pd.concat([rows, again], ignore_index=True)))
    assert [scheme.split(",")[0] for scheme in table["scheme"]] == ["standard", "pca_sphere"]


def test_a_shown_step_of_more_than_six_digits_stands_for_its_scheme():
    jobs = [
        (
            "x",
            "a",
            {0.001: (1.0, cost), 1 / 300: (1.0, cost)},
            {"dataset.seed": str(cost), "data": str(cost)},
        )
        for cost in (0.1, 0.2)
    ]
    every = runs(*jobs).runs
    schemes, steps = (every["role"] == role for role in ("scheme", "step"))
    every.loc[schemes, names.STEP_CHOSEN.column] = "true"
    every.loc[schemes, names.STEP_TAG.column] = "0.00333333"
    every.loc[steps, names.STEP_SIZE.column] = [0.001, 1 / 300] * 2
    best = merging.merged(Sweep("-", "s", every)).of_role("step")[names.BEST.column]
    assert best.tolist() == ["false", "true"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_a_shown_step_that_diverged_on_a_split_does_not_stand_for_its_scheme(order):
    """Whichever split comes first; that job has its best step size instead."""
    jobs = [
        (
            "x",
            "a",
            {0.1: (1.0, n / 10), 1.0: (1.0, 1 + n)},
            {"dataset.seed": f"{n}", "data": f"{n}"},
        )
        for n in order
    ]
    every = runs(*jobs).runs
    schemes, steps = (every["role"] == role for role in ("scheme", "step"))
    every.loc[schemes, names.STEP_CHOSEN.column] = [None if n == 2 else "true" for n in order]
    every.loc[schemes, names.STEP_TAG.column] = ["0.1" if n == 2 else "1" for n in order]
    every.loc[steps, names.TO_LOWEST.column] = [3, np.nan] * 3
    (scheme,) = merging.merged(Sweep("-", "s", every)).of_role("scheme").to_dict("records")
    assert scheme[names.STEP_TAG.column] == "0.1"
    assert not scheme[names.STEP_CHOSEN.column]


def test_the_columns_of_largest_step_sizes_stand_in_one_order():
    """Whatever the hash of their names is."""
    jobs = [
        ("x", "a", {1.0: (1.0, cost)}, {"dataset.seed": str(cost), "data": str(cost)})
        for cost in (0.1, 0.2)
    ]
    every = runs(*jobs).runs.assign(**dict.fromkeys(merging.LOWER_BOUND_TAGS, 1.0))
    merged = merging.merged(Sweep("-", "s", every)).runs
    tags = list(merging.LOWER_BOUND_TAGS.values())
    assert [name for name in merged if name in tags] == tags


def test_copies_do_not_count(tmp_path):
    jobs = [("x", s, {1.0: (2.0, 0.1)}, {"seed": str(n)}) for s in "ab" for n in range(3)]
    table = tables.summary(runs(*jobs))
    assert table["scheme"].tolist() == ["a", "b"]
    assert "medians of" not in table


def test_a_job_that_failed_leaves_the_others():
    jobs = [("x", "a", {1.0: (2.0, 0.1)}, {"dataset.seed": "0", "data": "0"})]
    jobs += [("x", "a", {1.0: (2.0, 0.3)}, {"dataset.seed": "1", "data": "1"})]
    jobs += [("x", "a", None, {"dataset.seed": "2"})]
    table = tables.summary(runs(*jobs))
    assert table["cost"].tolist() == pytest.approx([0.2])
    assert table["medians of"].tolist() == ["2 splits"]
    failed = tables.summary(runs(*((*job[:2], None, *job[3:]) for job in jobs)))
    assert failed["verdict"].tolist() == ["failed"]


def test_many_iterations_that_end_early_end_the_median():
    found = pd.DataFrame(
        {"run_id": list("aaab"), "iteration": [0, 1, 2, 0], "train/cost": [4.0, 3.0, 2.0, 2.0]}
    )
    row = {"run_id": "a", "experiment": "x", "normalizer": "n", "label": "l", "verdict": "diverged"}
    table = merging.over_members(found, row, 2)
    assert table["train/cost"].tolist() == [3.0]
    found = pd.DataFrame({"run_id": list("abc"), "iteration": 0, "train/cost": [1.0, 9.0, 2.0]})
    (row,) = merging.over_members(found, row, 3).to_dict("records")
    assert (row["train/cost_q1"], row["train/cost"], row["train/cost_q3"]) == (1.5, 2, 5.5)


def test_the_sharpness_of_splits_is_that_of_the_first_at_its_own_step(splits, monkeypatch):
    first = merging.merged(splits).of_role("scheme").iloc[0]["run_id"]
    own = splits.runs.set_index("run_id")["tags.step_size"][first]
    path = {"run_id": first, "iteration": range(3), "theory/sharpness": 0.5}
    monkeypatch.setattr(Sweep, "histories", lambda self, runs, metrics: pd.DataFrame(path))
    (axis,) = drawing.figure(splits, "cancer", "sharpness").axes
    labels = [line.get_label() for line in axis.lines if line.get_label()[0] != "_"]
    assert labels == [f"standard, step {own}"]


def test_the_columns_of_a_merged_table_lie_side_by_side(splits):
    assert len(splits.runs._mgr.blocks) < 12  # 110, each by itself, before they were put together
    assert len(merging.merged(splits).runs._mgr.blocks) < 12


@pytest.mark.parametrize(("count", "many"), [(40, False), (41, True)])
def test_more_than_forty_schemes_that_ran_are_too_many_for_a_figure(count, many):
    jobs = [("x", f"s{number}", {1.0: 3.0}) for number in range(count)]
    assert merging.has_too_many_schemes(runs(*jobs, ("x", "failed", None)), "x") == many


def over_repeats(seed_name, counts, *, own_data):
    """Two schemes with one job a repetition, the second of twice the passes to the target."""
    jobs = [
        (
            "x",
            scheme,
            {0.1: (np.inf, 1.0), 1.0: (factor * count, 1e-3 + 1e-6 * number)},
            {seed_name: str(number), "data": str(number) if own_data else "same", "batch": "8"},
        )
        for factor, scheme in ((1, "a"), (2, "b"))
        for number, count in enumerate(counts)
    ]
    return runs(*jobs)


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize(
    ("seed_name", "own_data"),
    [("batch_seed", False), ("dataset.split_seed", True), ("seed", False)],
)
@pytest.mark.parametrize(
    ("counts", "median"),
    [((3, 7, 5), 5), ((3, 7), 7), ((3, np.inf, 5), 5), ((3, np.inf, np.inf), np.nan)],
)
def test_counts_to_a_target_are_upper_medians_over_orders_splits_and_starts(
    seed_name, own_data, counts, median
):
    sweep = over_repeats(seed_name, counts, own_data=own_data)
    schemes = merging.merged(sweep).of_role("scheme").set_index("run_id")["normalizer"]
    assert len(schemes) == 2
    by_scheme = merging.counts_to_target(sweep, "1e-2").rename(schemes)
    expected = {"a": median, "b": 2 * median}
    assert by_scheme.to_dict() == pytest.approx(expected, nan_ok=True)


def test_counts_of_a_part_of_a_merged_sweep_are_those_of_its_experiment():
    jobs = [
        (experiment, "a", {1.0: (count + number, 1e-3 + number)}, {"batch_seed": str(number)})
        for experiment, count in (("x", 3), ("y", 30))
        for number in range(3)
    ]
    part = merging.merged(runs(*jobs, batch="8", data="same")).only("y")
    assert merging.counts_to_target(part, "1e-2").tolist() == [31]


def on_splits(**counts):
    """Return schemes of as many splits, the costs of a scheme around its place in the order."""
    return runs(
        *(
            ("x", name, {1.0: (3.0, place + n / 10)}, {"dataset.seed": str(n), "data": str(n)})
            for place, (name, count) in enumerate(counts.items(), 1)
            for n in range(count)
        )
    )


def test_each_merged_row_has_the_splits_of_its_own_scheme_whatever_its_name():
    rows = merging.merged(on_splits(b=2, a=3)).of_role("scheme")
    assert rows["normalizer"].tolist() == ["b", "a"]
    assert rows[merging.REPEATS].tolist() == ["2 splits", "3 splits"]
    assert rows[names.FINAL_COST.column].tolist() == pytest.approx([1.05, 2.1])


def test_a_verdict_that_all_splits_share_has_no_reason():
    rows = merging.merged(on_splits(a=3)).of_role("step")
    assert rows["verdict"].tolist() == ["not converged"]
    assert rows["reason"].tolist() == [""]


def test_every_job_is_of_one_experiment_or_of_all():
    jobs = [
        (experiment, "a", {1.0: (3.0, 1.0 + n)}, {"dataset.seed": str(n), "data": str(n)})
        for experiment, count in (("x", 2), ("y", 3))
        for n in range(count)
    ]
    several = runs(*jobs)
    assert merging.every_job(several)["experiment"].tolist() == [*"xxyyy"]
    assert merging.every_job(several, "y")["run_id"].tolist() == ["y2", "y3", "y4"]
    assert set(merging.every_job(several)["label"]) == {"a"}
    single = runs(("x", "a", {1.0: 3.0}), ("y", "b", {1.0: 3.0}))
    assert merging.every_job(single)["normalizer"].tolist() == ["a", "b"]
    assert merging.every_job(single, "y")["normalizer"].tolist() == ["b"]


def test_the_ids_of_a_merged_run_are_those_that_it_represents():
    sweep = on_splits(b=2, a=3)
    shown = merging.merged(sweep)
    first, second = shown.of_role("scheme")["run_id"]
    steps = sweep.of_role("step")
    assert merging.members_of(shown, first) == steps["run_id"].tolist()[:2]
    assert merging.members_of(shown, second) == steps["run_id"].tolist()[2:]
    assert merging.members_of(shown, "unknown") == ["unknown"]
    assert merging.members_of(sweep, first) == [first]
    assert merging.unmerged(shown) is sweep


def test_the_numbers_of_repetitions_are_told_once_each():
    rows = pd.DataFrame({merging.REPEATS: ["4 splits", None, "", "2 splits", "4 splits"]})
    assert merging.distinct_repeats(rows) == ["2 splits", "4 splits"]
    assert merging.distinct_repeats(rows[[]]) == []


def test_one_run_keeps_its_history_under_the_names_of_its_row():
    history = pd.DataFrame({"run_id": "old", "iteration": [0, 1], "train/cost": [2.0, 1.0]})
    row = {"run_id": "new", "label": "l", "verdict": "converged"}
    table = merging.over_members(history, row, 1)
    assert table["run_id"].tolist() == ["new"] * 2
    assert table["train/cost"].tolist() == [2.0, 1.0]
    assert set(table["label"] + table["verdict"]) == {"lconverged"}
    assert [name for name in table if name.endswith(("q1", "q3"))] == []


@pytest.mark.parametrize(
    ("excess", "step"),
    [([0.1, 0.2], 1.0), ([0.2, 0.1], 2.0)],
)
def test_of_step_sizes_that_no_split_reaches_the_one_that_leaves_least_stands_for_all(excess, step):
    steps = pd.DataFrame(index=range(4))
    sizes = pd.Series([1.0, 2.0] * 2)
    left = pd.Series([*excess, *excess])
    jobs = pd.DataFrame({"run_id": ["a", "b"]})
    assert merging._representative_size(steps, sizes, left, jobs) == step


def test_of_a_scheme_all_of_whose_splits_failed_one_row_is_left():
    jobs = [("x", name, None, {"dataset.seed": str(n)}) for name in "ab" for n in range(2)]
    jobs[0] = ("x", "a", {1.0: (3.0, 0.1)}, {"dataset.seed": "0", "data": "0"})
    rows = merging.merged(runs(*jobs)).of_role("scheme")
    assert rows["normalizer"].tolist() == ["a", "b"]
    assert rows["verdict"].tolist() == ["not converged", "failed"]
    assert rows[merging.REPEATS].tolist() == ["", "2 splits"]


def test_every_job_stands_under_the_label_of_its_merged_row():
    jobs = [
        ("x", "a", {1.0: (3.0, n + 0.1)}, {"dataset.seed": str(n), "data": str(n), "cost.k": k})
        for n in range(2)
        for k in "12"
    ]
    sweep = runs(*jobs)
    labels = merging.merged(sweep).of_role("scheme")["label"].tolist()
    assert labels == ["a, cost.k=1", "a, cost.k=2"]
    assert merging.every_job(sweep)["label"].tolist() == labels * 2


def test_quartiles_stand_beside_the_medians_of_the_last_costs():
    jobs = [
        ("x", "a", {1.0: (3.0, cost)}, {"dataset.seed": str(n), "data": str(n)})
        for n, cost in enumerate((1.0, 2.0, 3.0, 4.0, 9.0))
    ]
    (row,) = merging.merged(runs(*jobs)).of_role("scheme").to_dict("records")
    quartiles = [names.quartile(names.TRAIN_COST, name).column for name in names.QUARTILES]
    assert [row[column] for column in (*quartiles, names.FINAL_COST.column)] == [2.0, 4.0, 3.0]


@pytest.mark.parametrize("jobs", [{}, {"iterations": "0"}])
def test_schemes_of_a_problem_without_a_target_have_no_count_to_it(jobs):
    sweep = runs(("x", "a", {1.0: 3.0}), ("x", "b", {1.0: 5.0}), **jobs)
    if not jobs:  # a cost at zero weights that is not finite
        sweep.runs[[names.target(target).column for target in names.TARGETS]] = np.nan
    for measure in names.MEASURES:
        assert merging.counts_to_target(sweep, "1e-2", measure).isna().tolist() == [True, True]
