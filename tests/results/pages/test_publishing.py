"""What is written to MLflow's pages: colours, charts, descriptions and figures, by hand."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from normbench import names
from normbench.results.pages import dashboard, description, drawn, publishing, view
from normbench.results.pages.drawn import RecordedFigures, current_figures, remove
from normbench.results.store import saved_views, state
from normbench.results.store.runs import QUERY
from tests.results.made import runs


class Notes:
    """A writer that keeps what it is given."""

    def __init__(self, experiment_tags=None):
        self.tags, self.files, self.of_experiment = [], [], dict(experiment_tags or {})

    def tag(self, run_id, tags):
        self.tags.append((run_id, dict(tags)))

    def tag_experiment(self, experiment, tags):
        self.of_experiment |= tags

    def experiment_tags(self, experiment):
        return self.of_experiment

    def log_file(self, run_id, path, folder=""):
        self.files.append((run_id, path.name))


FIGURES = [Path("/o") / name for name in ("melt.png", "melt.svg", "other.png")]


@pytest.fixture
def attached(monkeypatch):
    monkeypatch.setattr(description, "write", lambda sweep, experiment, picture="": picture)
    monkeypatch.setattr(description, "of_scheme", lambda row: f"of {row['label']}")

    def of(files=FIGURES, schemes="ab", before=""):
        made = runs(*(("x", s, None if s == "f" else {1.0: 3.0}) for s in schemes))
        made.runs[names.SWEEP_ID.column] = made.runs["normalizer"].map(
            lambda scheme: "other" if scheme == "r" else "s"
        )
        notes = Notes({names.DESCRIPTION.key: before} if before else {})
        publishing.attach(notes, made, {"x": files}, {"x": "parent"})
        return notes

    return of


def test_figures_are_logged_and_schemes_described(attached):
    """Scheme r was reused from another sweep, and f failed: both keep what they have."""
    notes = attached(schemes="arfb")
    assert notes.files == [
        *(("parent", file.name) for file in FIGURES),
        *(("x0", "melt.png"), ("x3", "melt.png")),
    ]
    key = names.DESCRIPTION.key
    assert notes.tags == [
        *(("parent", {key: "melt.png"}), ("x0", {key: "of a"}), ("x3", {key: "of b"}))
    ]
    assert notes.of_experiment[key] == "melt.png"


@pytest.mark.parametrize(
    ("before", "replaced"),
    [("", True), ("mine", False), (f"old; {description.SIGNED}", True)],
)
def test_a_users_own_description_of_an_experiment_is_kept(attached, before, replaced):
    notes = attached(before=before)
    kept = "melt.png" if replaced else before
    assert notes.of_experiment[names.DESCRIPTION.key] == kept


class Client:
    """A client of a store whose experiment has these tags."""

    def __init__(self, *tags):
        self._tags = dict.fromkeys(tags, "")

    def get_experiment_by_name(self, name):
        return SimpleNamespace(tags=self._tags)


def linked(store, *tags):
    made = replace(runs(("x", "a", {1.0: 3.0})), store=store, client=Client(*tags))
    made.runs["experiment_id"] = "7"
    return made


def test_a_link_goes_to_the_stores_own_server_or_to_a_local_one():
    local = dashboard.link(linked("sqlite:///a.db"), "x", 1234, "0.0.0.0")
    assert local.startswith("http://0.0.0.0:1234/#/experiments/7/runs?")
    assert dashboard.link(linked("sqlite:///a.db"), "x").startswith("http://127.0.0.1:5000/#/")
    own = dashboard.link(linked("http://me:secret@host:9/"), "x")
    assert own.startswith("http://host:9/#/experiments/7/runs?")
    search = dashboard.path(linked("a.db"), "x", names.STEP)
    assert "searchFilter=tags.role%20%3D%20%27step%27" in search
    assert search.endswith("&orderByAsc=true")
    saved = dashboard.path(linked("a.db", f"{saved_views.VIEW}s-steps"), "x", names.STEP)
    assert saved.endswith("&viewStateShareKey=s-steps")
    assert "searchFilter" in dashboard.path(linked("a.db", f"{saved_views.VIEW}s"), "x", "step")


def test_a_description_without_room_for_the_table_goes_without(monkeypatch):
    """One that is longer than MLflow's tags would not be written at all."""
    made = linked("a.db")
    made.runs[names.COMMAND.column] = "normbench a"

    def described(length):
        monkeypatch.setattr(description.tables, "markdown", lambda table: "t" * length)
        return description.write(made, "x")

    whole = described(0)
    room = description.MAX_DESCRIPTION_LENGTH - len(whole)
    assert len(described(room)) == description.MAX_DESCRIPTION_LENGTH == 4900
    assert "tttt" not in described(room + 1)
    assert described(room + 1).replace("\n", "") == whole.replace("\n", "")
    assert "\n\nAgain: `normbench a`" in whole
    assert whole.endswith(f"*{description.SIGNED}.*")


def test_a_schemes_description_has_its_verdict_step_size_and_explanation():
    row = {"label": "a_b", "experiment": "x", "verdict": "converged", names.SWEEP_ID.column: "s"}
    assert description.of_scheme(row) == (
        "**a_b** on x: converged, in comparison s.\n\n*Written by normbench.*"
    )
    more = {names.STEP_TAG.column: "0.1", names.EXPLANATION.column: "because"}
    assert description.of_scheme(row | more) == (
        "**a_b** on x: converged at step size 0.1, in comparison s.\n\nbecause"
        "\n\n*Written by normbench.*"
    )
    long = description.of_scheme(row | {names.EXPLANATION.column: "y" * 9999})
    assert len(long) == description.MAX_DESCRIPTION_LENGTH
    assert long.endswith("y\n\n*Written by normbench.*")  # without it, it counts as the user's


class Tagged:
    """A writer whose store has the tags of one equal sweep."""

    def __init__(self, tags):
        self.tags_there, self.written = tags, {}

    def tags_of_sweep_with(self, experiment, tag, text):
        assert tag is names.DRAWN
        return self.tags_there

    def tag(self, run_id, tags):
        self.written[run_id] = tags


def outcomes(*reused):
    return [{"experiment": "x", "run_id": str(n), "reused": is_} for n, is_ in enumerate(reused)]


def test_figures_are_taken_only_where_all_jobs_are_reused_and_each_experiment_has_its_own(
    tmp_path,
):
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    theirs.mkdir()
    (theirs / "a.png").write_bytes(b"drawn")
    digests = {"a.png": drawn._digest(b"drawn")}
    tags = {names.FOLDER.key: str(theirs), names.DRAWN_FILES.key: json.dumps(digests)}

    def files(tags, jobs, copy=False):
        return RecordedFigures(Tagged(tags), mine, {"x": "p"}, jobs).files(copy)

    there = {"x": [theirs / "a.png"]}
    assert files(tags, outcomes(True, True)) == there
    assert files(tags, outcomes(True, False)) is None
    assert files(None, outcomes(True)) is None
    assert files(tags | {names.DRAWN_IN.key: "/elsewhere/x"}, outcomes(True)) is None
    moved = {**tags, names.FOLDER.key: "/elsewhere/x", names.DRAWN_IN.key: str(theirs)}
    assert files(moved, outcomes(True)) == there
    assert files(tags | {names.DRAWN_FILES.key: "{"}, outcomes(True)) is None
    assert files({names.FOLDER.key: str(theirs)}, outcomes(True)) is None
    changed = {**tags, names.DRAWN_FILES.key: json.dumps({"a.png": "0"})}
    assert files(changed, outcomes(True)) is None
    assert not mine.exists()
    assert files(tags, outcomes(True), copy=True) == {"x": [mine / "a.png"]}
    assert (mine / "a.png").read_bytes() == b"drawn"


def test_a_record_changes_with_what_is_drawn_and_not_with_how_it_looks(monkeypatch):
    made = runs(("x", "a", {1.0: 3.0}))
    made.runs[names.COLOR.column] = "#111111"
    before = drawn._record(made, ["code"])
    assert before != drawn._record(made, ["other"])

    def changed(column, value, role=names.SCHEME):
        table = made.runs.copy()
        table.loc[table["role"] == role, column] = value
        return drawn._record(replace(made, runs=table), ["code"])

    assert changed(names.COLOR.column, "#222222") == before
    assert changed(names.membership("s").column, "1") == before
    assert changed("label", "b", names.SWEEP) == before
    assert changed("label", "b") != before
    assert changed(names.FINAL_COST.column, 7.0) != before
    assert changed("params.new", None) == before  # nothing is recorded there
    monkeypatch.setattr(drawn, "MAX_RUNS", len(made.runs))
    assert drawn._record(made, ["code"]) == before
    monkeypatch.setattr(drawn, "MAX_RUNS", len(made.runs) - 1)
    assert drawn._record(made, ["code"]) == ""


def test_current_figures_are_those_of_the_same_record_and_code(tmp_path, monkeypatch):
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    theirs.mkdir()
    (theirs / "a.png").write_bytes(b"drawn")
    monkeypatch.setattr(drawn, "_record", lambda sweep, drawing: "record")

    def current(phase=state.Phase.ENDED, sweep_id="s", **columns):
        made = runs(("x", "a", {1.0: 3.0}))
        digests = json.dumps({"a.png": drawn._digest(b"drawn")})
        tags = {names.DRAWN_FROM.column: "record", names.DRAWN_FILES.column: digests}
        tags |= {names.FOLDER.column: str(theirs)} | columns
        table = made.runs.assign(**{key: text for key, text in tags.items() if text})
        monkeypatch.setattr(state, "state_of", lambda sweep: SimpleNamespace(phase=phase))
        return current_figures(replace(made, runs=table, sweep_id=sweep_id), mine)

    there = {"x": [mine / "a.png"]}
    assert current() == there
    assert current(**{names.DRAWN_IN.column: str(theirs), names.FOLDER.column: "/no/x"}) == there
    assert current(state.Phase.STOPPED) is None
    assert current(sweep_id=QUERY) is None
    assert current(**{names.DRAWN_FROM.column: "other"}) is None
    assert current(**{names.DRAWN_FROM.column: ""}) is None
    assert current(**{names.DRAWN_FILES.column: "{"}) is None
    assert current(**{names.FOLDER.column: "/elsewhere/x"}) is None
    monkeypatch.setattr(drawn, "_record", lambda sweep, drawing: "")
    assert current(**{names.DRAWN_FROM.column: ""}) is None


def test_figures_are_removed_unless_they_are_changed_or_of_another_sweep(tmp_path):
    for name in ("a.png", "b.svg", "c.png", "d.txt"):
        (tmp_path / name).write_bytes(b"drawn")
    (tmp_path / "b.svg").write_bytes(b"changed")
    digest = drawn._digest(b"drawn")

    def tags(*names_, folder=tmp_path):
        digests = json.dumps(dict.fromkeys(names_, digest))
        return {names.FOLDER.key: str(folder), names.DRAWN_FILES.key: digests}

    every = tags("a.png", "b.svg", "c.png", "d.txt", "missing.png", "../c.png")
    remove(tmp_path, every, [tags("c.png"), tags("a.png", folder="/elsewhere"), {}])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["b.svg", "c.png", "d.txt"]
    remove(tmp_path, {names.DRAWN_FILES.key: "["}, [])
    remove(tmp_path, every, [])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["b.svg", "d.txt"]


@pytest.mark.parametrize(
    ("metric", "kind", "axis"),
    [
        *((names.TRAIN_COST.key, "LINE", "step"), (view.GRID_METRICS[0], "LINE", "metric")),
        *((names.SHARPNESS.key, "LINE", "step"), (view.QUARTILE_KEYS[0], "LINE", "step")),
        (names.CONDITION.key, "BAR", None),
    ],
)
def test_a_series_has_lines_and_a_number_bars(metric, kind, axis):
    card = view._chart(metric, "s", True)
    assert (card["type"], card.get("xAxisKey")) == (kind, axis)
    assert card.get("scaleType") == ("log" if kind == "LINE" else None)
    assert card.get("selectedXAxisMetricKey", "") == (
        view.GRID_STEP_SIZE if axis == "metric" else ""
    )


def test_a_signal_ends_with_its_own_exit_code():
    with pytest.raises(SystemExit) as ended:
        dashboard._leave(15, None)
    assert ended.value.code == 143
