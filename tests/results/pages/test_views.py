"""The saved chart views, the descriptions and the verdicts that MLflow's pages show."""

import base64
import json
import socket
import zlib

import pytest

from normbench import names
from normbench.command.results.commands import main
from normbench.costs import softmax
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from normbench.normalizers import PCASphere
from normbench.recording.store.writer import Store, Writer
from normbench.results.figures.base import style
from normbench.results.pages import dashboard, description, view
from normbench.results.pages.publishing import publish
from normbench.results.store import runs, saved_views
from normbench.results.store.runs import Sweep, load
from tests.recorded import TWO, points, write_sweep

WRONG = names.final_metric(names.TRAIN_MISCLASSIFICATIONS).column


def test_a_state_is_packed_as_mlflow_unpacks_it(three):
    shown = view.state(three.sweep, three.name)
    text = saved_views.compress_state(shown)
    assert text.startswith("deflate;eN")  # zlib at its best compression, in base64
    unpacked = json.loads(zlib.decompress(base64.b64decode(text.split(";", 1)[1])))
    assert unpacked == json.loads(json.dumps(shown))


def test_the_cost_on_a_log_axis_comes_first(three):
    shown = view.state(three.sweep, three.name)
    first = shown["compareRunSections"][0]
    cards = [card for card in shown["compareRunCharts"] if card["metricSectionId"] == first["uuid"]]
    assert [card["metricKey"] for card in cards[:2]] == ["train/cost", "train/misclassifications"]
    assert [card["scaleType"] for card in cards[:2]] == ["log", "log"]
    assert {card["type"] for card in cards} == {"LINE"}
    sections = [(section["name"], section["display"]) for section in shown["compareRunSections"]]
    assert sections == [
        *(("best step sizes", True), ("step runs", True), ("theory", False)),
        *((name, False) for name in ("final values", "time", "quartiles over the starts")),
    ]
    steps = view.state(three.sweep, three.name, names.STEP)["compareRunSections"]
    assert steps[0]["name"] == "every step size"
    runs = three.sweep.runs.assign(**{"tags.step_chosen": "true"})
    runs.loc[runs["role"] == names.SCHEME, WRONG] = 0.0  # a count of 0 has no logarithm
    chosen = view.state(Sweep(three.uri, "sweep-1", runs), three.name)
    assert chosen["compareRunSections"][0]["name"] == "shown step sizes"
    assert [card["scaleType"] for card in chosen["compareRunCharts"][:2]] == ["log", "linear"]


def test_runs_stand_in_the_order_of_the_jobs(two):
    """So the first scheme of the command keeps its name in a chart's legend, of two lines."""
    sweep = load(two.uri, "a")
    shown = view.state(sweep, TWO)
    assert shown["orderByAsc"]
    assert shown["orderByKey"] == view.sort_key("a")
    client, key = two.writer.client, names.membership("a").key
    for wanted in (["StandardScaler", "MinMaxScaler"], ["MinMaxScaler", "StandardScaler"]):
        for number, word in enumerate(wanted):
            client.set_tag(two.runs["a", word], key, str(number))
        place = [sweep.of_role("sweep")["experiment_id"].iloc[0]]
        order = [f"{shown['orderByKey']} ASC"]
        found = client.search_runs(place, shown["searchFilter"], order_by=order)
        assert [run.data.tags["normalizer"] for run in found] == wanted


@pytest.mark.parametrize("role", ["scheme", "step"])
def test_every_metric_has_one_chart_in_a_section(three, role):
    shown = view.state(three.sweep, three.name, role)
    rows = three.sweep.of_role(role).dropna(axis="columns", how="all")
    metrics = {name.removeprefix("metrics.") for name in rows if name.startswith("metrics.")}
    cards = shown["compareRunCharts"]
    assert len({card["uuid"] for card in cards}) == len(cards)
    assert metrics <= {card["metricKey"] for card in cards}
    sections = {section["uuid"] for section in shown["compareRunSections"]}
    assert {card["metricSectionId"] for card in cards if not card["deleted"]} == sections


def test_a_view_that_mlflow_would_refuse_is_left_out(three, monkeypatch):
    assert set(view.tags(three.sweep, three.name)) == {
        "mlflow.sharedViewState.sweep-1",
        "mlflow.sharedViewState.sweep-1-steps",
    }
    monkeypatch.setattr(saved_views, "MAX_VIEW_LENGTH", 10)
    assert view.tags(three.sweep, three.name) == {}


def test_runs_of_one_scheme_get_the_figures_shades_at_the_end(tmp_path):
    dataset = make_dataset("five", *points(5), class_names=["no", "yes"], source="-")
    schemes = [("pca_sphere", PCASphere(ridge=10.0**-n)) for n in range(3)]
    settings = Settings((0.1, 1.0), iterations=2, theory="none")
    made = write_sweep(tmp_path, dataset, softmax, schemes, settings, "five-softmax")
    assert made.sweep.of_role("scheme")["tags.mlflow.runColor"].nunique() == 1
    parent = made.sweep.of_role("sweep")["run_id"].iloc[0]
    publish(Writer(Store.at(made.uri, None, tmp_path)), made.sweep, {made.name: parent})
    after = load(made.uri, "sweep-1")
    schemes = after.of_role("scheme")
    looks = style.looks(list(schemes["normalizer"]))
    assert list(schemes["tags.mlflow.runColor"]) == [look.color for look in looks]
    colors = dict(zip(schemes["run_id"], schemes["tags.mlflow.runColor"]))
    for row in after.of_role("step").to_dict("records"):
        assert row["tags.mlflow.runColor"] == colors[row["parent"]]


@pytest.mark.sqlite("a dashboard that is begun here")
def test_a_link_holds_the_search_until_a_view_is_there(images):
    before = dashboard.link(images.sweep, images.name, port=7)
    assert before.startswith("http://127.0.0.1:7/#/experiments/")
    assert "searchFilter=tags.role%20%3D%20%27scheme%27" in before
    writer = Writer(Store.at(images.uri, None, images.folder))
    parent = images.sweep.of_role("sweep")["run_id"].iloc[0]
    publish(writer, load(images.uri, "sweep-1"), {images.name: parent})
    after = dashboard.link(load(images.uri, "sweep-1"), images.name)
    assert "viewStateShareKey=sweep-1" in after
    assert "searchFilter" not in after  # MLflow would drop the view for it
    tags = writer.client.get_run(parent).data.tags
    assert writer.experiment_tags(images.name)[names.DESCRIPTION.key] == tags[names.DESCRIPTION.key]
    assert "What do standard and pca_sphere make of the points" in tags[names.DESCRIPTION.key]


def test_a_description_of_ones_own_stays(images):
    writer = Writer(Store.at(images.uri, None, images.folder))
    refused = {"long": "x" * 10**6}  # by the store: it is left out
    writer.tag_experiment(images.name, {names.DESCRIPTION.key: "mine", **refused})
    publish(
        writer,
        load(images.uri, "sweep-1"),
        {images.name: images.sweep.of_role("sweep")["run_id"].iloc[0]},
    )
    assert writer.experiment_tags(images.name)[names.DESCRIPTION.key] == "mine"
    assert "long" not in writer.experiment_tags(images.name)


def test_a_description_has_the_table_the_command_and_no_password(three):
    text = description.write(three.sweep, three.name)
    assert "| scheme | verdict |" in text
    assert "`normbench tracking.uri=postgresql://me:***@host/db`" in text
    assert "artifacts/report.html" in text
    assert description.SIGNED in text
    assert "secret" not in text
    assert "![" not in text
    run_id = three.sweep.of_role(names.SWEEP)["run_id"].iloc[0]
    drawn = description.write(three.sweep, three.name, "melt.png")
    assert f"](get-artifact?path=melt.png&run_uuid={run_id})" in drawn
    assert drawn.index("![") < drawn.index("| scheme |")


@pytest.mark.sqlite("a dashboard that is begun here")
def test_a_port_that_is_taken_is_told_of(images, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["dashboard", "--store", images.uri, "--port", str(port)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"normbench: --port {port}: cannot be used on 127.0.0.1 (Address")
    assert told.err.endswith("choose another port with --port\n")


def test_a_store_that_is_a_server_serves_itself(three, capsys, monkeypatch):
    sweep = Sweep("http://me:secret@host:5000", "sweep-1", three.sweep.runs)
    monkeypatch.setattr(runs, "last_sweep_ids", lambda store: ("sweep-1", "sweep-1"))
    monkeypatch.setattr(runs, "load", lambda *_: sweep)
    monkeypatch.setattr(Sweep, "has_tag", lambda *_: True)
    assert main(["dashboard", "--store", sweep.store]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"{three.name}: http://host:5000/#/experiments/")
    assert "secret" not in told
