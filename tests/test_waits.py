"""What a command need not load or draw: where all is recorded, and where it is asked for help."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from types import SimpleNamespace

import pytest

from normbench import choices, names
from normbench.command.config import help as helping
from normbench.command.config.compose import JobSpec
from normbench.recording.reuse import request
from normbench.results.pages import drawn
from normbench.results.store import mlflows_own
from normbench.results.store.runs import last_sweep_ids, load
from tests import forks

HEAVY = {"mlflow", "sklearn", "scipy", "matplotlib", "sqlalchemy", "autograd"}
CODE = """
import json, runpy, sys
sys.argv = ["normbench", *{words}]
try:
    runpy.run_module("normbench", run_name="__main__")
except SystemExit as left:
    code = left.code
print(json.dumps([code, sorted({heavy} & set(sys.modules))]), file=sys.stderr)
"""
SMALL = ("dataset=iris", "cost=multiclass_softmax", "iterations=5", "step_sizes=[0.1,1]")
SMALL += ("normalizer=standard,minmax",)


def loaded(folder, *words, **environment):
    """Return what a command prints, and which heavy libraries it has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(words=list(words), heavy=HEAVY)],
        cwd=folder,
        env=forks.user_environment(**environment),
        capture_output=True,
        text=True,
        timeout=300,
    )
    code, libraries = json.loads(done.stderr.splitlines()[-1])
    assert not code, done.stderr
    return done.stdout, libraries


@pytest.mark.slow
@pytest.mark.sqlite("other stores are read by MLflow's client")
def test_what_is_recorded_is_shown_without_heavy_libraries(command, tmp_path):
    first = command(*SMALL)
    assert first.returncode == 0, first.stderr
    assert "mlflow" not in loaded(tmp_path, *SMALL, "reuse=false")[1]
    assert loaded(tmp_path, "results")[1] == []
    again, libraries = loaded(tmp_path, *SMALL)
    assert libraries == []
    assert "reused 2 of 2" in again
    told = again.partition("reused 2 of 2\n")[2]
    assert told.startswith(first.stdout.partition("\nfiles ")[0])
    assert command(*SMALL, "reuse=5").returncode == 2  # a mistake stays one


PLAIN = {
    "dataset": {"_target_": "normbench.datasets.bundled.iris"},
    "packages": [],
    "iterations": 5,
    "reuse": True,
    "tracking": {"uri": "sqlite:///mlflow.db"},
}
CHOICES = {"dataset": "iris", "normalizer": "standard"}


def test_a_request_is_of_what_its_record_follows_from():
    known = request.digest(PLAIN, CHOICES)
    elsewhere = {"tracking": {"uri": "sqlite:///other.db"}, "reuse": False, "figures": []}
    assert request.digest(PLAIN | elsewhere, CHOICES) == known
    assert request.digest(PLAIN | {"iterations": 6}, CHOICES) != known
    assert request.digest(PLAIN, CHOICES | {"normalizer": "minmax"}) != known
    for other in (
        {"packages": ["mine"]},
        {"dataset": {"_target_": "normbench.datasets.files.csv", "path": "my.csv"}},
        {"dataset": {"_target_": "mine.load"}},
    ):
        assert request.digest(PLAIN | other, CHOICES) is None


def test_an_edited_option_of_a_scheme_is_another_request(monkeypatch, tmp_path):
    """Those that a chain or an optimizer names are in no setting of the job."""
    assert "conf.normalizer" in request.CODE_ROOMS
    option = tmp_path / "pca_sphere.yaml"
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(request, "find_spec", lambda name: spec)
    codes = []
    for text in ("ridge: 1e-7", "ridge: 1e-6"):
        option.write_text(text)
        codes.append(request._code.__wrapped__())
    assert codes[0] != codes[1]


@pytest.mark.parametrize("what", ["code", "version"])
def test_another_code_or_library_is_another_request(what, monkeypatch):
    known = request.digest(PLAIN, CHOICES)
    request._code.cache_clear()
    if what == "version":
        monkeypatch.setattr(request, "version", lambda name: "0")
    else:
        monkeypatch.setattr(request, "CODE_ROOMS", ("costs",))
    try:
        assert request.digest(PLAIN, CHOICES) != known
    finally:
        request._code.cache_clear()


def test_a_request_is_not_looked_for_where_nothing_is_to_be_reused():
    assert JobSpec(PLAIN | {"reuse": False}, {}).request_digest is None
    assert JobSpec(PLAIN, {}, mistake=ValueError("mistake")).request_digest is None


@pytest.fixture
def shown(two):
    """A sweep with a figure, as its command leaves it."""
    folder = two.folder / "outputs" / "a"
    writer, sweep = two.writer, load(two.uri, "a")
    (parent,) = writer.sweep_runs("a").values()
    known = drawn.RecordedFigures(writer, folder, {"two-softmax": parent}, [], tuple(drawn.NAMES))
    known.tag_runs({"two-softmax": [folder / "histories.png"]}, sweep)
    return two, folder


def test_figures_that_still_hold_are_not_drawn_again(shown, tmp_path):
    two, folder = shown
    files = {"two-softmax": [folder / "histories.png"]}
    assert drawn.current_figures(load(two.uri, "a"), folder) == files
    copy = folder.with_name("copy")
    assert drawn.current_figures(load(two.uri, "a"), copy) == {
        "two-softmax": [copy / "histories.png"]
    }
    assert (copy / "histories.png").read_bytes() == b"png"
    two.writer.adopt(two.runs["a", "MinMaxScaler"], "c/0")  # another sweep takes a job in
    assert drawn.current_figures(load(two.uri, "a"), folder) == files
    assert drawn.current_figures(load(two.uri, "b"), folder) is None  # which has no figures
    assert drawn.current_figures(load(two.uri, "a"), tmp_path / "elsewhere" / "a") is None


@pytest.mark.parametrize("change", ["file", "tag", "metric", "run", "code"])
def test_figures_that_hold_no_more_are_drawn(shown, change, monkeypatch):
    two, folder = shown
    run = two.runs["a", "MinMaxScaler"]
    if change == "file":
        (folder / "histories.png").write_bytes(b"another")
    elif change == "tag":
        two.writer.tag(run, {names.VERDICT.key: names.CYCLING})
    elif change == "metric":
        two.writer.log_points(run, [(names.FIT_SECONDS.key, 77.0, 1 << 42, 0)])
    elif change == "run":
        two.writer.client.delete_run(run)
    else:
        monkeypatch.setattr(drawn, "_code_digests", list)
    assert drawn.current_figures(load(two.uri, "a"), folder) is None


@pytest.mark.sqlite("the names of its tables")
def test_a_store_is_read_without_mlflows_client(two, monkeypatch):
    monkeypatch.setattr(mlflows_own, "make_client", None)
    assert last_sweep_ids(two.uri) == ("b", "b")
    sweep = load(two.uri, "b")
    assert len(sweep.histories(sweep.of_role("step"))) > 0
    with closing(sqlite3.connect(two.folder / "mlflow.db")) as connection:
        (count,) = connection.execute("select count(*) from runs").fetchone()
    assert count > len(sweep.runs) > 0


@pytest.mark.parametrize(
    "group", ["dataset", "cost", "normalizer", "optimizer", "model", "tracking"]
)
def test_an_options_entries_are_those_of_its_yaml(group):
    for name in choices.names(group):
        assert choices.entries(group, name) == list(choices.options(group, name)), name


@pytest.mark.commands
def test_help_alone_is_what_hydra_prints(command):
    assert command("--help").stdout == command("--help", "-m").stdout == f"{helping.text()}\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "more"),
    [
        (["--help"], {"hydra", "numpy", "autograd"}),
        (["--cfg", "job"], {"autograd"}),
        (["lrr=1"], {"numpy", "autograd"}),  # a name is looked for before NumPy is loaded
        (["iterations=-1"], set()),
    ],
)
def test_help_and_mistakes_load_nothing_heavy(tmp_path, words, more):
    code = CODE.format(words=words, heavy=(HEAVY - {"autograd"}) | more | {"pandas"})
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    code, libraries = json.loads(done.stderr.splitlines()[-1])
    assert (code or 0, libraries) == (0 if words[0].startswith("--") else 2, [])
