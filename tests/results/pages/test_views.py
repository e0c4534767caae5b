"""The saved chart views, the colours and the descriptions that MLflow's pages show."""

import base64
import json
import zlib
from dataclasses import replace
from importlib import resources

import pytest

from normbench import names
from normbench.results.pages import description, views
from normbench.results.store.looks import looks
from normbench.results.store.runs import sweep_of
from tests.record.made import NAME, compare, key, record

PAGE = views.Page("A", "7", "run")
WRONG = names.FINAL_MISCLASSIFICATIONS.column


@pytest.fixture
def sweep(tmp_path):
    """Three schemes, the last of which has the normalizer of the second."""
    comparison = compare(tmp_path, "A", ["standard", "pca_sphere", "other"], written=[])
    records = {key(name): record(name) for name in ("standard", "pca_sphere")}
    again = record("pca_sphere")
    records[key("other")] = replace(again, params={**again.params, "normalizer.ridge": "1"})
    records[key("pca_sphere")].params["normalizer.ridge"] = "0"
    return sweep_of([comparison], records)


def charts_of(state, section):
    cards = [c for c in state["compareRunCharts"] if c["metricSectionId"] == section]
    return {card["metricKey"]: card for card in cards}


def test_the_cost_on_a_log_axis_comes_first_and_every_metric_has_one_chart(sweep):
    for role, heading in ((names.SCHEME, "best step sizes"), (names.STEP, "every step size")):
        state = views.state(sweep, NAME, "A", role)
        sections = [(s["name"], s["display"]) for s in state["compareRunSections"]]
        assert sections[0] == (heading, True)
        assert sections[-2:] == [("theory", False), ("final values", False)]
        cards = charts_of(state, "best step sizes")
        assert list(cards) == [names.TRAIN_COST.key, names.TRAIN_MISCLASSIFICATIONS.key]
        kinds = [(card["type"], card["scaleType"], card["xAxisKey"]) for card in cards.values()]
        assert kinds == [("LINE", "log", "step")] * 2
        (bar,) = charts_of(state, "theory").values()
        assert (bar["type"], bar["metricKey"]) == ("BAR", names.LIPSCHITZ.key)
        columns = sweep.of_role(role).dropna(axis="columns", how="all")
        metrics = {c.removeprefix("metrics.") for c in columns if c.startswith("metrics.")}
        keys = [card["metricKey"] for card in state["compareRunCharts"]]
        assert metrics <= set(keys)
        assert len(keys) == len(set(keys))
        hidden = {c["metricKey"] for c in state["compareRunCharts"] if c["deleted"]}
        assert hidden == {names.STEP_SIZE.key, names.GRID_STEP_SIZE.key}
    chosen = replace(sweep, runs=sweep.runs.assign(**{names.STEP_CHOSEN.column: "true", WRONG: 0}))
    state = views.state(chosen, NAME, "A", names.SCHEME)
    assert state["compareRunSections"][0]["name"] == "shown step sizes"
    scales = [card["scaleType"] for card in charts_of(state, "best step sizes").values()]
    assert scales == ["log", "linear"]  # a count of 0 has no logarithm


def test_final_values_of_the_grid_are_drawn_over_its_step_sizes(sweep):
    grid = names.grid(names.TRAIN_COST)
    runs = sweep.runs.assign(**{grid.column: 1.0, names.GRID_STEP_SIZE.column: -1.0})
    card = charts_of(views.state(replace(sweep, runs=runs), NAME, "A", "scheme"), "step runs")
    assert list(card) == [grid.key]
    assert card[grid.key]["selectedXAxisMetricKey"] == names.GRID_STEP_SIZE.key
    assert card[grid.key]["scaleType"] == "log"


def test_the_template_names_metrics_that_are_recorded():
    template = json.loads(resources.files(views.__package__).joinpath("views.json").read_text())
    declared = {metric.key for metric in vars(names).values() if isinstance(metric, names.Metric)}
    declared |= {names.grid(metric).key for metric in names.HISTORIES}
    patterns = [name for section in template["sections"] for name in section["metrics"]]
    patterns += [*template["axes"], *template["logarithmic"], *template["series"]]
    assert {name for name in patterns if "*" not in name} <= declared


def test_a_view_is_packed_as_mlflow_unpacks_it_unless_it_is_too_long(sweep, monkeypatch):
    tags = views.tags(sweep, NAME, PAGE)
    assert list(tags) == ["mlflow.sharedViewState.A", "mlflow.sharedViewState.A-steps"]
    packed = json.loads(tags["mlflow.sharedViewState.A"])["state"]
    text = zlib.decompress(base64.b64decode(packed.removeprefix("deflate;")))
    assert json.loads(text) == views.state(sweep, NAME, "A", "scheme")
    monkeypatch.setattr(views, "MAX_VIEW_LENGTH", 10)
    assert views.tags(sweep, NAME, PAGE) == {}


def test_runs_of_one_normalizer_get_the_figures_shades(sweep):
    shades = [look.color for look in looks(["standard", "pca_sphere", "pca_sphere"])]
    names_ = ("standard", "pca_sphere", "other")
    assert views.colors(sweep, NAME) == dict(zip(map(key, names_), shades))
    assert len(set(shades)) == 3


def test_a_description_has_the_answer_first_then_the_picture_the_table_and_links(sweep):
    text = description.write(sweep, NAME, PAGE, "melt.png")
    assert text.index("Comparison A: **") < text.index("](get-artifact?path=melt.png&run_uuid=run)")
    assert text.index("![") < text.index("| scheme | verdict |") < text.index("`normbench x`")
    assert PAGE.charts() in text
    assert PAGE.charts("step") in text
    assert "(#/experiments/7/runs/run/artifacts/report.html" in text
    assert text.endswith(f"*{description.SIGNED}.*")
    assert "![" not in description.write(sweep, NAME, PAGE)
