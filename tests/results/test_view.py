"""The saved chart views, the descriptions and the verdicts that MLflow's pages show."""

import json
import socket

import pandas as pd
import pytest

from normbench.command.results import main
from normbench.recording.pages import publish
from normbench.recording.writer import Store, Writer
from normbench.results import dashboard, description, names, tables, theory, verdict, view
from normbench.results.figures import style
from normbench.results.runs import Sweep, load


def table(*rows):
    """Return a sweep of one experiment whose schemes have (label, verdict, cost, step size)."""
    names = ["label", "verdict", "metrics.final/train_cost", "tags.step_size"]
    frame = pd.DataFrame(rows, columns=names).assign(role="scheme", experiment="e")
    frame["normalizer"] = frame["label"]
    sweep = {"role": "sweep", "experiment": "e"}
    return Sweep("-", "s", pd.concat([frame, pd.DataFrame([sweep])], ignore_index=True))


def test_a_state_is_packed_as_mlflow_unpacks_it(three):
    shown = view.state(three.sweep, three.name)
    text = view.packed(shown)
    assert text.startswith("deflate;eN")  # zlib at its best compression, in base64
    assert view.unpacked(text) == json.loads(json.dumps(shown))


def test_the_cost_on_a_log_axis_comes_first(three):
    shown = view.state(three.sweep, three.name)
    first = shown["compareRunSections"][0]
    cards = [card for card in shown["compareRunCharts"] if card["metricSectionId"] == first["uuid"]]
    assert [card["metricKey"] for card in cards[:2]] == ["train/cost", "train/misclassifications"]
    assert [card["scaleType"] for card in cards[:2]] == ["log", "linear"]
    assert {card["type"] for card in cards} == {"LINE"}
    names = [section["name"] for section in shown["compareRunSections"]]
    assert names[:3] == ["best step sizes", "step runs", "theory"]
    runs = three.sweep.runs.assign(**{"tags.step_chosen": "true"})
    chosen = view.state(Sweep(three.uri, "sweep-1", runs), three.name)
    assert chosen["compareRunSections"][0]["name"] == "shown step sizes"


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
    monkeypatch.setattr(view, "LONGEST", 10)
    assert view.tags(three.sweep, three.name) == {}


def test_runs_have_the_figures_colours(three):
    colors = view.colors(three.sweep, three.name)
    for role in ("scheme", "step"):
        for row in three.sweep.of_role(role).to_dict("records"):
            assert colors[row["run_id"]] == style.look(row["normalizer"]).color


def test_runs_of_one_scheme_get_the_figures_shades_at_the_end(twelve):
    before = twelve.sweep.of_role("scheme")
    assert before["tags.mlflow.runColor"].nunique() < len(before)  # seven are of one normalizer
    parent = twelve.sweep.of_role("sweep")["run_id"].iloc[0]
    publish(Writer(Store.at(twelve.uri, None, twelve.folder)), twelve.sweep, {twelve.name: parent})
    after = load(twelve.uri, "sweep-1")
    schemes = after.of_role("scheme")
    looks = style.looks(list(schemes["normalizer"]))
    assert list(schemes["tags.mlflow.runColor"]) == [look.color for look in looks]
    colors = dict(zip(schemes["run_id"], schemes["tags.mlflow.runColor"]))
    for row in after.of_role("step").to_dict("records"):
        assert row["tags.mlflow.runColor"] == colors[row["parent"]]


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
    writer.tag_experiment(images.name, {names.DESCRIPTION.key: "mine"})
    publish(
        writer,
        load(images.uri, "sweep-1"),
        {images.name: images.sweep.of_role("sweep")["run_id"].iloc[0]},
    )
    assert writer.experiment_tags(images.name)[names.DESCRIPTION.key] == "mine"


def test_a_tag_that_the_store_refuses_is_left_out(images):
    writer = Writer(Store.at(images.uri, None, images.folder))
    writer.tag_experiment(images.name, {"long": "x" * 10**6, "short": "y"})
    tags = writer.experiment_tags(images.name)
    assert tags["short"] == "y"
    assert "long" not in tags


def test_a_description_has_the_table_the_command_and_no_password(three):
    text = description.write(three.sweep, three.name)
    assert "| scheme | verdict |" in text
    assert "`normbench tracking.uri=postgresql://me:***@host/db`" in text
    assert "artifacts/report.html" in text
    assert description.SIGNED in text
    assert "secret" not in text


def test_a_port_that_is_taken_is_told_of(images, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["dashboard", "--store", images.uri, "--port", str(port)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"results: --port {port}: cannot be used on 127.0.0.1 (Address")
    assert told.err.endswith("choose another port with --port\n")


def test_a_store_that_is_a_server_serves_itself(three, capsys, monkeypatch):
    sweep = Sweep("http://me:secret@host:5000", "sweep-1", three.sweep.runs)
    monkeypatch.setattr(dashboard, "last_sweep_id", lambda store: "sweep-1")
    monkeypatch.setattr(dashboard, "load", lambda *_: sweep)
    monkeypatch.setattr(Sweep, "has_tag", lambda *_: True)
    assert main(["dashboard", "--store", sweep.store]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"{three.name}: http://host:5000/#/experiments/")
    assert "secret" not in told


SENTENCES = {
    "a": (
        (("a", "settled", 0.1, "1"), ("b", "unsettled", 0.5, "10")),
        "a reaches the lowest cost, 0.1 at step size 1 (settled); "
        "b ends highest, with 0.5 at step size 10 (unsettled).",
    ),
    "equal": (
        (("a", "settled", 0.1, "1"), ("b", "settled", 0.1 + 1e-9, "1")),
        "a and b reach the lowest cost, 0.1 at step size 1 (settled).",
    ),
    "failed": (
        (("a", "settled", 0.1, "1"), ("b", "failed", None, None)),
        "a reaches the lowest cost, 0.1 at step size 1 (settled). 1 of 2 jobs failed.",
    ),
    "none": (
        (("a", "diverged", None, None), ("b", "failed", None, None)),
        "No scheme has a cost to compare. a diverged at every step size. 1 of 2 jobs failed.",
    ),
    "diverged": (
        (("a", "settled", 0.1, "1"), *((name, "diverged", None, None) for name in "bc")),
        "a reaches the lowest cost, 0.1 at step size 1 (settled). "
        "b and c diverged at every step size.",
    ),
    "many diverged": (
        (("a", "settled", 0.1, "1"), *((name, "diverged", None, None) for name in "bcdef")),
        "a reaches the lowest cost, 0.1 at step size 1 (settled). "
        "5 of 6 jobs diverged at every step size.",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_the_verdict_is_a_sentence(case):
    rows, sentence = SENTENCES[case]
    sweep = table(*rows)
    assert verdict.sentence(sweep, "e") == sentence
    assert verdict.overall(sweep) == sentence


def test_the_verdict_over_several_problems_counts_them():
    one = table(("a", "settled", 0.1, "1"), ("b", "settled", 0.2, "1"))
    other = one.runs.assign(experiment="f")
    sweep = Sweep("-", "s", pd.concat([one.runs, other], ignore_index=True))
    assert verdict.overall(sweep).startswith("a reaches the lowest cost on 2 of 2 problems")


def test_the_question_names_a_few_schemes_and_counts_many():
    few = table(*((name, "settled", 0.1, "1") for name in "ab"))
    assert verdict.question(few, "e") == (
        "Which of a and b lowers the cost of e furthest in gradient descent?"
    )
    for optimizers, iterations, within in (
        (("adam", "adam"), "9", " in 9 iterations of adam?"),
        (("adam", "sign"), "9", " furthest in 9 iterations?"),
        (("adam", "sign"), None, " furthest?"),
    ):
        runs = few.runs.assign(**{"params.iterations": iterations})
        runs.loc[runs["role"] == "scheme", "tags.optimizer"] = optimizers
        assert verdict.question(Sweep("-", "s", runs), "e").endswith(within)
    many = table(*((name, "settled", 0.1, "1") for name in "abcdef"))
    assert "6 schemes" in verdict.question(many, "e")


def varied(name, texts):
    """Return `table` with a setting: b wins under the first of its values, a under the second."""
    parts = []
    for number, text in enumerate(texts):
        cost = 0.1 if number == 1 else 0.3
        part = table(("a", "settled", cost, "1"), ("b", "settled", 0.2, "1")).of_role("scheme")
        part = part.assign(**{f"params.{name}": text})
        part["label"] += f", {name}={text}"
        parts.append(part)
    sweep = pd.DataFrame([{"role": "sweep", "experiment": "e"}])
    return Sweep("-", "s", pd.concat([*parts, sweep], ignore_index=True))


@pytest.mark.parametrize(
    "name", ["dataset.condition_number", "dataset.split_seed", "cost.l2", "seed", "start_scale"]
)
def test_costs_of_different_problems_are_counted_and_not_compared(name):
    sweep = varied(name, ["10", "100", "1000"])
    said = verdict.sentence(sweep, "e")
    assert said == (
        "b reaches the lowest cost on 2 of 3 problems, each scheme at its best step size."
    )
    assert verdict.overall(sweep) == said
    assert verdict.question(sweep, "e").startswith("Which of a and b lowers the cost")


def test_costs_of_one_problem_are_compared_under_every_optimizer():
    sweep = varied("optimizer", ["adam", "newton"])
    assert verdict.sentence(sweep, "e").startswith("a, optimizer=newton reaches the lowest cost")


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ([0.2] * 8, " (settled), the median of 8 starts; b ends"),
        ([0.2] * 6 + [0.05] * 2, "8 starts, too few for a sure lead over b; b ends"),
        ([0.2] * 5, "5 starts, too few for a sure lead over b; b ends"),
    ],
)
def test_a_lead_over_several_starts_is_sure_or_not(ends, words, monkeypatch):
    found = table(("a", "settled", 0.1, "1"), ("b", "settled", 0.2, "1"))
    runs = found.runs.assign(**{"params.starts": str(len(ends)), "run_id": ["a", "b", "sweep"]})
    steps = pd.DataFrame({"role": "step", "experiment": "e", "parent": ["a", "b"]})
    steps = steps.assign(**{"run_id": ["0.1", "ends"], "tags.best": "true"})
    sweep = Sweep("-", "s", pd.concat([runs, steps], ignore_index=True))
    costs = {"0.1": dict.fromkeys(range(len(ends)), 0.1), "ends": dict(enumerate(ends))}
    monkeypatch.setattr(Sweep, "series", lambda _, run_id, metric: costs[run_id])
    assert words in verdict.sentence(sweep, "e")


def test_the_starts_of_a_recorded_sweep_are_found(three):
    runs = three.sweep.runs.assign(**{"params.starts": "2"})
    sweep = Sweep(three.uri, "sweep-1", runs)
    first = sweep.of_role("scheme").iloc[0]
    ends = verdict._by_start(sweep, first, 2)
    # The last cost of the scheme's run is their median.
    assert ends.mean() == pytest.approx(first["metrics.final/train_cost"])
    assert "the median of 2 starts, too few" in verdict.sentence(sweep, three.name)


def test_jobs_that_failed_were_to_descend(images):
    failed = table(("a", "failed", None, None), ("b", "diverged", None, None))
    assert verdict.question(failed, "e").startswith("Which of a and b lowers the cost of e")
    every = Sweep("-", "s", failed.runs.assign(verdict="failed"))
    assert theory.explanation(every, "e") == "No step was made: every job failed."
    assert verdict.sentence(images.sweep, images.name).startswith("No descent was made")
    assert "figures" in theory.explanation(images.sweep, images.name)


def test_a_step_size_that_was_chosen_is_not_called_the_best(three):
    chosen = Sweep("-", "s", three.sweep.runs.assign(**{"tags.step_chosen": "true"}))
    assert "shown step" in tables.summary(chosen)
    assert "best step" in tables.summary(three.sweep)
    sweep = varied("seed", ["0", "1"])
    sweep = Sweep("-", "s", sweep.runs.assign(**{"tags.step_chosen": "true"}))
    assert "each scheme at its shown step size" in verdict.sentence(sweep, "e")
