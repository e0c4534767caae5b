"""Seconds beside iterations: in the figure of histories, in a table, in the explorer's data."""

import json
from types import SimpleNamespace

import pandas as pd
import pytest

import normbench
from normbench import names
from normbench.command.results.commands import main
from normbench.datasets.bundled import iris
from normbench.results.answer import seconds
from normbench.results.compare.reached import time_to_target
from normbench.results.figures import drawing, histories
from normbench.results.figures.base.material import Options
from normbench.results.report import explorer
from normbench.results.store.errors import ResultsError

FIT, STEP = names.FIT_SECONDS.column, names.SECONDS_A_STEP.column


@pytest.fixture(scope="module")
def compared():
    data = iris()
    steps = {"step_sizes": [0.1, 10.0], "iterations": 20}
    return normbench.compare(
        data.x, data.y, "multiclass_softmax", ["standard", "pca_sphere"], **steps
    )


def by_label(sweep):
    return sweep.of_role(names.SCHEME).set_index("label")


@pytest.mark.parametrize("steps", [(), (0.1, 10.0)])
def test_a_curve_begins_after_its_fit_and_ends_after_its_iterations(compared, steps):
    sweep = compared.sweep
    options = Options(by="seconds", steps=steps)
    figure = drawing.figure(sweep, sweep.experiments[0], "histories", options)
    axis, timed = figure.axes[0], by_label(sweep)
    assert axis.get_xlim()[0] == 0
    assert "seconds" in axis.get_xlabel()
    curves = [line for line in axis.lines if line.get_label()[0] != "_"]
    assert len(curves) == 2 * max(1, len(steps))
    for line in curves:
        row = timed.loc[line.get_label().partition(",")[0]]
        ends = row[FIT], row[FIT] + 20 * row[STEP]
        assert line.get_xdata()[[0, -1]] == pytest.approx(ends, rel=1e-12)


def test_a_curve_over_iterations_is_as_it_was(compared):
    (axis, *_) = compared.figure("histories").axes
    assert axis.get_xlabel() == "iteration"
    assert axis.lines[0].get_xdata()[-1] == 20
    assert "seconds" in compared.figure("histories", by="seconds").axes[0].get_xlabel()
    with pytest.raises(
        ResultsError, match="by=hours: must be one of iterations, passes, updates, seconds"
    ):
        compared.figure("histories", by="hours")


def test_without_recorded_seconds_there_is_no_figure_of_them(compared, monkeypatch):
    sweep = compared.sweep
    with_job_columns = histories.with_job_columns
    unknown = dict.fromkeys((FIT, STEP), float("nan"))
    monkeypatch.setattr(
        histories, "with_job_columns", lambda *of: with_job_columns(*of).assign(**unknown)
    )
    options = Options(by="seconds")
    assert drawing.figure(sweep, sweep.experiments[0], "histories", options) is None


def test_the_table_counts_the_fit_in_iterations(compared):
    timed = by_label(compared.sweep)
    table = seconds.seconds(compared.sweep, "1e-1").set_index("scheme")
    for label, row in table.iterrows():
        fit, step = timed.loc[label, [FIT, STEP]]
        assert row["fit in iterations"] == fit / step
        arrival = fit + row["iterations to target"] * step
        assert row["seconds to target"] == pytest.approx(arrival, rel=1e-12)
    assert table["seconds to target"].notna().all()


def test_the_table_counts_to_the_target_that_all_schemes_have():
    data = iris()
    schemes, steps = ["identity", "pca_sphere"], {"step_sizes": [0.1, 10.0], "iterations": 20}
    done = normbench.compare(
        data.x, data.y, "multiclass_softmax", schemes, theory="none", **steps
    ).sweep
    table = seconds.seconds(done, "1e-1").set_index("scheme")["iterations to target"]
    common = time_to_target([done], "1e-1").set_index("scheme")["value"]
    assert [*table.fillna(float("inf"))] == [*common[table.index]]
    own = by_label(done)[names.reached("1e-1").column]
    assert own["identity"] != common["identity"]  # to a share of the lowest that it saw itself


def test_a_comparison_without_seconds_has_no_table(monkeypatch):
    row = {"label": "a", "normalizer": "a", "experiment": "x", "verdict": names.CONVERGED}
    monkeypatch.setattr(seconds, "merged", lambda sweep: sweep)
    sweep = SimpleNamespace(experiments=["x"], of_role=lambda role: pd.DataFrame([row]))
    assert seconds.seconds(sweep, "1e-1").empty


def test_the_explorer_has_the_seconds_of_each_scheme(compared):
    sweep = compared.sweep
    data = json.loads(explorer.data(sweep, sweep.experiments[0]))
    timed = by_label(sweep)
    for scheme in data["schemes"]:
        row = timed.loc[scheme["label"]]
        assert (scheme["fit"], scheme["step"]) == pytest.approx((row[FIT], row[STEP]), rel=5e-3)
    assert explorer._seconds({}) == {}


def test_seconds_are_refused_of_a_figure_without_histories(capsys):
    assert main(["figure", "melt", "--by", "seconds"]) == 2
    assert "--by seconds: is of histories and closer" in capsys.readouterr().err
