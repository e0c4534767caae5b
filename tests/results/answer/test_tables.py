"""The reader, the tables and their formats, and the command line around them."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from normbench import names
from normbench.command.results.commands import main
from normbench.results.answer import tables
from normbench.results.compare import passes
from normbench.results.store import run_table, runs
from normbench.results.store.errors import ResultsError
from tests.conftest import ROOT
from tests.results import made


@pytest.mark.commands
def test_a_sweep_is_read_with_labels_that_tell_its_schemes_apart(twelve):
    schemes = twelve.sweep.of_role("scheme")
    assert schemes["label"].is_unique
    assert "pca_sphere, ridge=0.01" in set(schemes["label"])
    steps = twelve.sweep.of_role("step")
    assert steps.groupby("label").size().eq(2).all()


def labels(*rows):
    """Return the labels of scheme runs of one normalizer, of their parameters each."""
    frame = pd.DataFrame([{f"params.{key}": value for key, value in row.items()} for row in rows])
    count = range(len(frame))
    about = {"run_id": [f"r{n}" for n in count], "tags.sweep_id": [f"s{n // 2}" for n in count]}
    frame = frame.assign(role="scheme", experiment="e", normalizer="a", parent="", **about)
    return list(run_table.add_labels(frame)["label"])


ADAM = {"optimizer": "adam", "optimizer._target_": "x.adam", "optimizer.epsilon": "0.1"}
PLAIN = {"optimizer": "plain", "optimizer._target_": "x.plain"}
LABELS = {
    "alone": ([ADAM], ["a"]),
    "a choice, without its options": ([ADAM, PLAIN], ["a, optimizer=adam", "a, optimizer=plain"]),
    "an option that varies within its choice": (
        [ADAM, {**ADAM, "optimizer.epsilon": "1"}, PLAIN],
        [
            "a, optimizer=adam, optimizer.epsilon=0.1",
            "a, optimizer=adam, optimizer.epsilon=1",
            "a, optimizer=plain",
        ],
    ),
    "a failed job, whose encoding is not known": (
        [{"seed": "0", "dataset": "d", "dataset.encoding": "{}"}, {"seed": "1", "dataset": "d"}],
        ["a, seed=0", "a, seed=1"],
    ),
    "values that one types otherwise": (
        [{"dataset.augment": "None"}, {"dataset.augment": "True"}, {"dataset.augment": "round"}],
        [f"a, dataset.augment={value}" for value in ("null", "true", "round")],
    ),
    "many equal numbers": (
        [{"model.hidden": f"[{', '.join(['50'] * n)}, 5]"} for n in (2, 4, 5, 200)],
        [
            f"a, model.hidden=[{hidden}, 5]"
            for hidden in ("50, 50", "50, 50, 50, 50", "5 x 50", "200 x 50")
        ],
    ),
    "two equal jobs and another": (
        [{"seed": "0"}, {"seed": "1"}, {"seed": "0"}],
        ["a, seed=0, sweep_id=s0, run_id=r0", "a, seed=1", "a, seed=0, sweep_id=s1, run_id=r2"],
    ),
    "what a study says": (
        [{"seed": "0", "study.says": "x"}, {"seed": "1", "study.says": "y"}],
        ["a, seed=0", "a, seed=1"],
    ),
}


@pytest.mark.parametrize("case", LABELS)
def test_a_label_holds_what_tells_a_scheme_apart_and_nothing_else(case):
    rows, wanted = LABELS[case]
    assert labels(*rows) == wanted


def test_arrays_are_read_back_as_they_were_made(three):
    schemes = three.sweep.of_role("scheme")
    paths = three.sweep.arrays(schemes, "path")
    assert list(paths) == ["identity", "standard", "pca_sphere"]
    for parts in paths.values():
        assert parts["weights"].shape == (11, 1, 3)
        assert np.array_equal(parts["iteration"], np.arange(11))
    assert three.sweep.arrays(schemes, "components") == {}


def test_arrays_that_are_gone_are_told_of(images):
    schemes = images.sweep.of_role("scheme").assign(**{"tags.recorded": "path"})
    with pytest.raises(ResultsError, match="its path cannot be read"):
        images.sweep.arrays(schemes, "path")


def test_the_tidy_table_has_a_row_a_run_and_iteration(three):
    table = tables.histories(three.sweep)
    assert len(table) == 3 * 11
    assert {"sweep_id", "dataset", "label", "step_size", "iteration", "train/cost"} <= set(table)
    assert {"test/cost", "train/cost_q1", "train/misclassifications_q3"} <= set(table)
    assert table["step_size"].dtype == float
    every = tables.histories(three.sweep, "step")
    # Three schemes, two steps of 11 iterations, and one that ends at its first or second.
    assert len(every) >= 3 * (2 * 11 + 1)
    assert every["verdict"].eq("diverged").any()


def test_a_query_finds_runs_and_what_belongs_to_them(three):
    found = runs.load_query(Path(three.home), "params.normalizer = 'standard'")
    assert list(found.of_role("scheme")["label"]) == ["standard"]
    assert len(found.of_role("step")) == 3
    assert found.experiments == [three.name]
    for where, words in {
        "params.normalizer = 'none'": "params.normalizer is 'identity' or",
        "params.normaliser = 'standard'": "no run has params.normaliser; did you mean params.norm",
        "tags.zzz = '1'": "finds no job in .*; no run has tags.zzz",
        "attributes.status = 'KILLED'": r"write it as in \"params\.dataset",
    }.items():
        with pytest.raises(ResultsError, match=words):
            runs.load_query(Path(three.home), where)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["10", "10"], "in 10 iterations of gradient descent"),
        (["1e1"], "in 10 iterations of gradient descent"),
        (["1"], "in 1 iteration of gradient descent"),
        (["10", "20"], "in gradient descent"),
        (["0"], ""),
    ],
)
def test_iterations_are_counted_in_words(asked, told):
    rows = pd.DataFrame({names.setting("iterations"): asked})
    assert passes.budget(rows) == told


def test_formats_hold_the_same_table(three):
    table = tables.summary(three.sweep)
    assert len(tables.text(table).splitlines()) == 4
    assert len(tables.markdown(table).splitlines()) == 5
    back = pd.read_csv(io.StringIO(tables.TABLE_FORMATS["csv"](table)))
    assert np.array_equal(back["cost"], table["cost"])
    again = pd.read_parquet(io.BytesIO(tables.TABLE_FORMATS["parquet"](table)))
    pd.testing.assert_frame_equal(again, table)
    written = parquet.read_schema(io.BytesIO(tables.TABLE_FORMATS["parquet"](table)))
    assert written.names == list(table)  # and no column of numbers of rows
    lines = tables.latex(table).splitlines()
    assert lines[0].startswith(r"\begin{tabular}{ll")
    assert r"pca\_sphere" in lines[6]
    assert all(line.count(" & ") == table.shape[1] - 1 for line in lines if "&" in line)


def test_a_job_without_a_descent_has_no_verdict(images, three):
    assert "verdict" not in tables.summary(images.sweep)
    assert "verdict" in tables.summary(three.sweep)


def test_a_cost_that_shot_up_has_six_digits():
    table = pd.DataFrame({"cost": [0.1234567, 3.2e250, None], "test cost": [1e6, -2e7, 0.0]})
    assert tables.format_cells(table) == {
        "cost": ["0.123457", "3.2e+250", "-"],
        "test cost": ["1e+06", "-2e+07", "0.000000"],
    }


def test_a_cost_in_small_units_has_significant_digits():
    table = pd.DataFrame({"cost": [1.132e-10, 2.968e-8, 0.046171], "test cost": [1e-4, -3e-5, 0.0]})
    assert tables.format_cells(table) == {
        "cost": ["1.132e-10", "2.968e-08", "0.046171"],
        "test cost": ["0.000100", "-3.000e-05", "0.000000"],
    }


def test_numbers_of_any_size_are_short():
    table = pd.DataFrame(
        {"excess cost left": [0.1234, 7.7e10], "mean": [10 / 7, 1e9], "count": [3, 4]}
    )
    assert tables.format_cells(table) == {
        "excess cost left": ["12.34%", "7.7e+12%"],
        "mean": ["1.42857", "1e+09"],
        "count": ["3", "4"],
    }


def test_a_bar_in_a_name_does_not_end_a_cell():
    table = pd.DataFrame({"scheme": ["a|b"], "cost": [0.5]})
    assert tables.markdown(table).splitlines()[2] == r"| a\|b | 0.500000 |"
    assert (
        tables.latex(pd.DataFrame({"scheme": ["a\\b"]}))
        .splitlines()[4]
        .startswith(r"a\textbackslash{}b")
    )


def test_a_sign_before_a_number_stays_in_latex():
    table = pd.DataFrame({"largest": [">=10", "<1|2"]})
    *_, first, second, _, _ = tables.latex(table).splitlines()
    assert first.startswith(r"\textgreater{}=10 ")
    assert second.startswith(r"\textless{}1\textbar{}2 ")


def test_passwords_are_blotted_out(three):
    assert "postgresql://me:***@host/db" in tables.text(runs.sweeps(Path(three.home)))
    assert "secret" not in tables.text(runs.sweeps(Path(three.home)))


@pytest.mark.slow
def test_the_command_line_writes_tables_and_figures(three, tmp_path, capsys):
    store = ["--folder", three.home]
    out = ["--out", str(tmp_path)]
    assert main(["table", *store, "--histories", "--format", "parquet", *out]) == 0
    assert len(pd.read_parquet(tmp_path / "histories.parquet")) == 33
    assert main(["table", *store, "--where", "tags.normalizer = 'standard'"]) == 0
    assert main(["figure", "histories", "sweep-1", *store, *out, "--first-iteration", "1"]) == 0
    assert {file.name for file in tmp_path.glob("*.svg")} == {"histories.svg"}
    printed = capsys.readouterr().out
    assert str(tmp_path / "histories.pdf") in printed


def test_a_bug_keeps_its_traceback(three, monkeypatch):
    def broken(table):
        return {}["column"]

    monkeypatch.setattr(tables, "text", broken)
    with pytest.raises(KeyError, match="column"):
        main(["list", "--folder", three.home])


MISTAKES = {
    "figure nothing": "figure nothing: no such figure; choose one of overview",
    "figure components": "(record=[components]); normbench results report draws those that were",
    "figure histories --first-iteration -1": "--first-iteration -1: must be 0 or more",
    "figure histories --first-iteration x": "invalid int value: 'x'",
    "figure contours --scale excess": "--scale excess: is of histories and closer; leave it out",
    "figure histories --scale exces": "argument --scale: invalid choice: 'exces'",
    "figure components --components 0": "--components 0: must be 1 or more",
    "figure histories --steps 0,1": "--steps 0,1: must be positive numbers",
    "figure histories --steps a": "--steps a: must be positive numbers",
    "figure histories --steps 7": "--steps 7: was not tried; choose of 0.01, 0.1",
    "figure histories --out /proc/none": "name a folder that can, such as --out figures",
    "table --format word": "invalid choice: 'word'",
    "table none": "comparison none: is not in",
    "table a'b": "comparison a'b: is not in",
    "table sweep-1 --where x": "--where: finds runs of every comparison; leave sweep-1 out",
    "list --typo": "unrecognized arguments: --typo",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_two(three, capsys, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*arguments.split(), "--folder", three.home]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    assert line.startswith("normbench: ")
    assert MISTAKES[arguments] in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["--help"], ["figure", "--help"], ["table", "--help"]])
def test_help_loads_nothing_heavy(words):
    code = (
        f"import sys, runpy; sys.argv = ['results', *{words}]\n"
        "try: runpy.run_module('results', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "slow = {'mlflow', 'matplotlib', 'pandas', 'numpy'} & set(sys.modules)\n"
        "assert not slow, slow"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "normbench results" in done.stdout


@pytest.mark.parametrize(("cost", "left"), [(-1e-12, 0.0), (0.5, 0.5)])
def test_what_is_left_of_the_excess_is_no_rounding_and_nothing_where_all_diverged(cost, left):
    sweep = made.runs(("x", "a", {1.0: (1.0, cost)}), ("x", "b", {1.0: (np.inf, 0.5)}))
    sweep.runs[names.MINIMUM_REACHED.column] = "true"
    sweep.runs.loc[sweep.runs["normalizer"] == "b", "verdict"] = "diverged"
    found = tables.summary(sweep)["excess cost left"].tolist()
    assert found[0] == pytest.approx(left)
    assert not np.signbit(found[0])
    assert np.isnan(found[1])


def test_what_is_left_is_not_told_of_counts():
    sweep = made.runs(("x", "a", {1.0: (1.0, 0.5)}))
    sweep.runs[names.MINIMUM_REACHED.column] = "true"
    assert "excess cost left" in tables.summary(sweep)
    sweep.runs[names.COMPARED.column] = names.MISCLASSIFICATIONS
    sweep.runs[names.FINAL_MISCLASSIFICATIONS.column] = 3.0
    assert "excess cost left" not in tables.summary(runs.Sweep("-", "s", sweep.runs))


def test_a_summary_says_up_to_where_each_scheme_converges():
    frame = made.runs(("x", "a", {1.0: 3.0}), ("x", "b", {1.0: 4.0}), ("x", "c", None)).runs
    frame.loc[frame["role"] == "scheme", names.LARGEST_CONVERGENT.column] = [2.0, 4.0, np.nan]
    frame.loc[frame["normalizer"] == "b", names.CENSORED.column] = "true"
    table = tables.summary(runs.Sweep("-", "s", frame))
    assert table["converges up to"].fillna("").tolist() == ["2", ">=4", ""]
    assert table["verdict"].tolist() == ["not converged", "not converged", "failed"]


def test_the_columns_of_a_summary_are_those_that_its_experiments_and_descents_need():
    grid = {1.0: 3.0}
    one, two = made.runs(("x", "a", grid)), made.runs(("x", "a", grid), ("y", "a", grid))
    assert "experiment" not in tables.summary(one)
    assert tables.summary(two)["experiment"].tolist() == ["x", "y"]
    steps = {"best step", "cost", "steps", names.DIVERGED}
    assert steps <= set(tables.summary(made.runs(("x", "a", None), iterations="9")))
    assert not steps & set(tables.summary(made.runs(("x", "a", None), iterations="0")))


def test_numbers_with_a_sign_before_them_are_no_words():
    table = pd.DataFrame(
        {"scheme": ["a"], "best step": [">=10"], "cost": [0.5], "condition number": ["12"]}
    )
    assert [tables.holds_text(name, table) for name in table] == [True, False, False, False]
    numeric = pd.DataFrame({"best step": [10.0], "step": ["1"], "why": [None]})
    assert [tables.holds_text(name, numeric) for name in numeric] == [False, False, True]


SMALL = pd.DataFrame({"scheme": ["a", "long"], "misclassified": [3.0, None]})


def test_a_table_in_text_has_words_on_the_left_and_numbers_on_the_right():
    assert (
        tables.text(SMALL) == "scheme  misclassified\na                   3\nlong                -"
    )
    assert tables.text(pd.DataFrame({"scheme": ["a"]})) == "scheme\na"


def test_a_table_in_markdown_and_latex_has_the_same_sides():
    assert tables.markdown(SMALL).splitlines() == [
        "| scheme | misclassified |",
        "| :-- | --: |",
        "| a | 3 |",
        "| long | - |",
    ]
    assert tables.latex(SMALL).splitlines() == [
        r"\begin{tabular}{lr}",
        r"\hline",
        r"scheme & misclassified \\",
        r"\hline",
        r"a & 3 \\",
        r"long & - \\",
        r"\hline",
        r"\end{tabular}",
    ]
    assert tables.TABLE_FORMATS["csv"](SMALL) == "scheme,misclassified\na,3.0\nlong,"


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("cost", 999999.0, "999999.000000"),
        ("cost", 1e6, "1e+06"),
        ("cost", -999999.0, "-999999.000000"),
        ("cost q1", 0.25, "0.250000"),
        ("best test cost", 2.0, "2.000000"),
        ("excess cost left", 0.12345, "12.35%"),
        ("excess cost left", 1e5, "10000000.00%"),
        ("excess cost left", 1e6, "1e+08%"),
        ("seconds", 1.234, "1.23"),
        ("fit", 0.012345, "0.0123"),
        ("an iteration", 1.2345e-5, "1.23e-05"),
        ("seconds to target", 12.345, "12.3"),
        ("fit in iterations", 12.6, "13"),
        ("misclassified", 2.5, "2.5"),
        ("test misclassified", 3.0, "3"),
        ("steps", 7.0, "7"),
        (names.DIVERGED, 2.0, "2"),
        ("largest curvature L", 1.23456, "1.235"),
        ("2/L", 0.123456, "0.1235"),
        ("2/L at the end", 0.123456, "0.1235"),
        ("ratio", 1.23456, "1.235"),
        ("q3", 12345.6, "1.235e+04"),
        ("low", 0.5, "0.5"),
        ("step", 0.1, "0.1"),
        ("difference", 0.123456789, "0.123457"),
        ("at iteration", 12.0, "12"),
        ("train error, %", 1.239, "1.24"),
        ("best test error, %", 1.0, "1.00"),
        ("rank", 1.5, "1.50"),
        ("won", 0.333, "0.33"),
        ("other", 0.123456789, "0.123457"),
        ("other", 123456789, "123456789"),
        ("other", "many words", "many words"),
        ("other", None, "-"),
    ],
)
def test_each_column_has_its_digits(column, value, text):
    assert tables.format_cells(pd.DataFrame({column: [value]})) == {column: [text]}


def test_a_summary_has_each_number_under_its_name():
    frame = made.runs(("x", "a", {1.0: (3.0, 0.25)}), iterations="9").runs
    numbers = {
        names.quartile(names.TRAIN_COST, "q1"): 0.125,
        names.quartile(names.TRAIN_COST, "q3"): 0.5,
        names.FINAL_MISCLASSIFICATIONS: 3.0,
        names.FINAL_TEST_COST: 0.75,
        names.FINAL_TEST_MISCLASSIFICATIONS: 4.0,
        names.STEPS_TRIED: 5.0,
        names.STEPS_DIVERGED: 2.0,
        names.FIT_SECONDS: 1.5,
        names.DESCENT_SECONDS: 0.25,
        names.OWN_TEST_ERROR: 6.0,
    }
    for metric, number in numbers.items():
        frame.loc[frame["role"] == "scheme", metric.column] = number
    (row,) = tables.summary(runs.Sweep("-", "s", frame)).to_dict("records")
    assert row == {
        "scheme": "a",
        "verdict": "not converged",
        "best step": "1",
        "cost": 0.25,
        "cost q1": 0.125,
        "cost q3": 0.5,
        "misclassified": 3.0,
        "test cost": 0.75,
        "test misclassified": 4.0,
        names.OWN_TEST_ERROR.label: 6.0,
        "steps": 5.0,
        names.DIVERGED: 2.0,
        "seconds": 1.75,
    }


def test_of_a_job_that_failed_no_steps_are_counted():
    frame = made.runs(("x", "a", {1.0: 3.0}), ("x", "b", None), iterations="9").runs
    schemes = frame["role"] == "scheme"
    for metric in (names.STEPS_TRIED, names.STEPS_DIVERGED, names.LARGEST_CONVERGENT):
        frame.loc[schemes, metric.column] = 4.0
    table = tables.summary(runs.Sweep("-", "s", frame)).set_index("scheme")
    for column in ("steps", names.DIVERGED, "converges up to"):
        assert float(table.loc["a", column]) == 4.0
        assert pd.isna(table.loc["b", column])
    assert table.loc["b", "verdict"] == "failed"


def test_of_a_job_without_a_descent_only_a_failure_is_a_verdict():
    jobs = [("x", "a", {1.0: 3.0}), ("x", "b", None), ("x", "c", {1.0: 3.0}, {"iterations": "9"})]
    frame = made.runs(*jobs, iterations="0").runs
    schemes = frame["role"] == "scheme"
    frame.loc[schemes, names.RECORDED.column] = "spectrum"
    frame.loc[schemes, names.STEPS_TRIED.column] = 1.0
    table = tables.summary(runs.Sweep("-", "s", frame)).set_index("scheme")
    assert table["verdict"].fillna("").tolist() == ["", "failed", "not converged"]
    assert table["best step"].fillna("").tolist() == ["", "", "1"]
    assert table["steps"].fillna(0.0).tolist() == [0.0, 0.0, 1.0]
    assert table[names.RECORDED.key].fillna("").tolist() == ["spectrum", "spectrum", ""]


def test_a_summary_of_no_scheme_has_its_columns_and_no_row():
    frame = made.runs(("x", "a", {1.0: 3.0})).runs
    table = tables.summary(runs.Sweep("-", "s", frame[frame["role"] == "sweep"]))
    assert list(table) == ["scheme", "seconds"]
    assert table.empty


def test_steps_have_their_columns_where_one_job_was_to_descend():
    steps = {"best step", "cost", "steps", names.DIVERGED}
    jobs = [("x", name, None, {"iterations": count}) for name, count in zip("ab", "09")]
    assert steps <= set(tables.summary(made.runs(*jobs)))
