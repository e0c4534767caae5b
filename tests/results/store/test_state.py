"""Every word of `normbench results` on every state of a comparison, from planned to deleted."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import normbench
from normbench import names
from normbench.command.results.commands import main
from normbench.costs import softmax
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.normalizers import PCASphere
from normbench.optimizers import gradient_descent
from normbench.recording.resume import leftovers
from normbench.recording.store import records
from normbench.recording.store.records import RunRecord
from normbench.results.answer import tables
from normbench.results.report import page
from normbench.results.store import owner, runs, state
from normbench.results.store.errors import ResultsError
from normbench.results.store.state import Phase
from tests import door, forks, stores

NAME, OTHER = "two-softmax", "three-softmax"
ELSEWHERE = {names.HOST.key: "elsewhere", names.FOLDER.key: "/nowhere/s", names.PROCESS.key: "1"}
SCHEMES = {"standard": StandardScaler(), "minmax": MinMaxScaler(), "pca_sphere": PCASphere()}


@pytest.fixture(scope="module")
def jobs():
    """The outcome of a job of each scheme, on one data set."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((20, 2)), np.arange(20) % 2
    data = make_dataset("two", x, y, class_names=["no", "yes"], source="-")
    settings = Settings((0.1, 1.0), iterations=2, theory="none")
    made = {
        name: run(Job(data, softmax, scheme, gradient_descent(), settings))
        for name, scheme in SCHEMES.items()
    }
    return data, made


class Store:
    """A store in which a test makes comparisons in any state."""

    def __init__(self, place, folder, jobs, stack):
        self.uri, self.writer = place.uri, door.writer(place)
        self.folder, (self.data, self.jobs), self.stack = folder, jobs, stack

    def sweep(self, sweep_id, count, *, lock=False, tags=None, failed=0, experiment=NAME):
        """Begin a comparison of three jobs, of which so many are recorded; return its run."""
        folder = self.folder / "outputs" / sweep_id
        folder.mkdir(parents=True, exist_ok=True)
        (folder / owner.LOCK).touch()
        if lock:
            self.stack.enter_context(leftovers.lock_new_folder(folder))
        own = leftovers.owner_tags(folder) | {names.PROCESS.key: "1"} if tags is None else tags
        told = {names.JOBS.key: "3", names.COMMAND.key: "normbench", **own}
        parent = self.writer.start_sweep(experiment, sweep_id, told)
        for number, (name, outcome) in enumerate(list(self.jobs.items())[:count]):
            tags = {
                names.SWEEP_ID.key: sweep_id,
                names.NORMALIZER.key: name,
                names.membership(sweep_id).key: str(number),
                names.JOB.key: f"{sweep_id}/{number}",
                names.DESCENT.key: f"{sweep_id}-{name}",
            }
            params = {"normalizer": name, "iterations": "2"}
            place = records.RecordHeader(self.uri, experiment, parent, params, tags)
            record = records.of_outcome(place, self.data, outcome)
            if number < failed:
                told = {**record.scheme.tags, names.VERDICT.key: names.FAILED}
                scheme = replace(record.scheme, tags=told, metrics=[])
                record = replace(record, scheme=scheme, steps=[], arrays={}, failure="lost")
            self.writer.write(record)
        return parent

    def half(self, sweep_id, parent):
        """Leave a job as it is while it is written: a step of it is there, and it has no end."""
        experiment_id = self.writer.run(parent).info.experiment_id
        experiment = self.writer.client.get_experiment(experiment_id).name
        tags = {names.SWEEP_ID.key: sweep_id, names.NORMALIZER.key: "identity"}
        tags[names.membership(sweep_id).key] = "2"
        scheme = self.writer._create(experiment, RunRecord("x", tags), names.SCHEME, parent)
        step = self.writer._create(experiment, RunRecord("y", tags), names.STEP, scheme)
        self.writer.finish(step)

    def delete(self, role, sweep_id, most):
        """Delete runs of a comparison in MLflow, so many."""
        found = self.writer.search_runs(
            f"{names.SWEEP_ID.equals(sweep_id)} and {names.ROLE.equals(role)}"
        )
        for one in found[:most]:
            self.writer.client.delete_run(one.info.run_id)


@pytest.fixture
def store(tmp_path, with_store, jobs, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        yield Store(stores.of(tmp_path), tmp_path, jobs, stack)


def planned(store):
    store.sweep("new", 0, lock=True)


def running(store):
    store.half("new", store.sweep("new", 1, lock=True))


def concluding(store):
    store.sweep("new", 3, lock=True)


def a_job_failed(store):
    store.sweep("new", 2, lock=True, failed=1)


def killed_in_the_first_job(store):
    store.half("new", store.sweep("new", 0))


def killed_later(store):
    store.half("new", store.sweep("new", 2))


def killed_at_its_end(store):
    store.sweep("new", 3)


def interrupted(count):
    def make(store):
        store.writer.finish(store.sweep("new", count), "KILLED")

    return make


def broken_off(store):
    store.writer.finish(store.sweep("new", 1), "FAILED")


def all_failed(store):
    store.writer.finish(store.sweep("new", 3, failed=3), "FAILED")


def one_experiment_to_come(store):
    store.sweep("new", 1, lock=True)
    store.sweep("new", 0, experiment=OTHER)


def finished(store):
    store.writer.finish(store.sweep("new", 3))


def without(role, most):
    def make(store):
        finished(store)
        store.delete(role, "new", most)

    return make


def on_another_machine(store):
    store.sweep("new", 1, tags=ELSEWHERE)


def just_begun_on_another_machine(store):
    store.sweep("new", 0, tags=ELSEWHERE)


def half_imported(store):
    store.sweep("new", 1, tags={names.ORIGIN.key: "abc"})


def another_folder(store):
    """The folder is gone, and of its process nothing is known on this machine."""
    gone = {**leftovers.owner_tags(store.folder / "gone"), names.PROCESS.key: "none"}
    store.sweep("new", 1, tags=gone)


# What makes each state, its phase, how many of three jobs are recorded, and what is said.
REST = "; the same command runs the rest"
STATES = {
    "planned": (planned, Phase.RUNNING, 0, "is still running (0 of 3 jobs done)"),
    "running": (running, Phase.RUNNING, 1, "is still running (1 of 3 jobs done)"),
    "concluding": (concluding, Phase.RUNNING, 3, "is still running (3 of 3 jobs done)"),
    "a job failed": (a_job_failed, Phase.RUNNING, 2, "is still running (2 of 3 jobs done)"),
    "killed in its first job": (
        *(killed_in_the_first_job, Phase.STOPPED, 0),
        f"was stopped (0 of 3 jobs done){REST}",
    ),
    "killed later": (killed_later, Phase.STOPPED, 2, f"was stopped (2 of 3 jobs done){REST}"),
    "killed at its end": (killed_at_its_end, Phase.STOPPED, 3, "was stopped after its last job"),
    "interrupted in its first job": (
        *(interrupted(0), Phase.STOPPED, 0),
        f"was stopped (0 of 3 jobs done){REST}",
    ),
    "interrupted later": (
        *(interrupted(1), Phase.STOPPED, 1),
        f"was stopped (1 of 3 jobs done){REST}",
    ),
    "broken off": (broken_off, Phase.STOPPED, 1, f"was stopped (1 of 3 jobs done){REST}"),
    "all jobs failed": (all_failed, Phase.ENDED, 3, ""),
    "one experiment to come": (
        *(one_experiment_to_come, Phase.RUNNING, 1),
        "is still running (1 of 3 jobs done)",
    ),
    "finished": (finished, Phase.ENDED, 3, ""),
    "all jobs deleted": (
        *(without(names.SCHEME, 3), Phase.EMPTIED, 0),
        "has no jobs in this store any more: they were deleted",
    ),
    "a job deleted": (without(names.SCHEME, 1), Phase.ENDED, 2, ""),
    "its steps deleted": (without(names.STEP, 6), Phase.ENDED, 3, ""),
    "its own run deleted": (without(names.SWEEP, 1), Phase.ENDED, 3, ""),
    "on another machine": (
        *(on_another_machine, Phase.UNKNOWN, 1),
        "has not ended (1 of 3 jobs done): whether it still runs on elsewhere cannot be told",
    ),
    "just begun on another machine": (
        *(just_begun_on_another_machine, Phase.UNKNOWN, 0),
        "has not ended (0 of 3 jobs done): whether it still runs on elsewhere cannot be told",
    ),
    "half imported": (half_imported, Phase.IMPORTED, 1, "is not complete in this store (1 of 3"),
    "another folder": (another_folder, Phase.STOPPED, 1, f"was stopped (1 of 3 jobs done){REST}"),
}
WORDS = [
    ["table"],
    ["table", "--histories"],
    ["table", "--all-steps"],
    ["figure", "histories"],
    ["profile", "--out", "profile"],
    [],
]
DRAWN = WORDS[3:]  # a second each: on one of the states that hold the same jobs
JUDGED_AGAIN = ("its steps deleted", "killed later")  # of several that are alike: it draws, too
SAME_JOBS = (
    "concluding",
    "killed",
    "interrupted",
    "broken",
    "one experiment",
    "finished",
    "a job del",
    "on an",
    "half",
    "another",
)


def said(capsys, *words):
    """Return the exit code and both outputs of `normbench results`; a mistake is one line."""
    code = main(list(words))
    out, err = capsys.readouterr()
    assert code in (0, 2), words
    if code == 2:
        assert err.splitlines()[-1].startswith("normbench: "), words
    return code, out, err


def assert_known(store, name):
    """Assert that the state of a comparison is known, and that a notebook tells it."""
    _, phase, done, words = STATES[name]
    found = state.state_of(runs.load(store.uri, "new"))
    assert (found.phase, found.done) == (phase, done)
    assert words in found.sentence
    assert bool(found.sentence) == bool(words)
    if done:
        comparison = normbench.load("new", store=store.uri)
        assert words in repr(comparison)
        assert words in comparison._repr_html_()
        assert len(comparison) or name in ("all jobs failed", "its steps deleted")


def has_histories(name, word):
    """Return whether a state has what a word shows: its jobs did not fail, its steps are there."""
    if name == "all jobs failed":
        return "--histories" not in word and "--all-steps" not in word
    return name != "its steps deleted" or "--all-steps" not in word


@pytest.mark.commands
@pytest.mark.parametrize("name", STATES)
def test_every_word_on_every_state(store, name, capsys):
    make, _, done, words = STATES[name]
    make(store)
    assert_known(store, name)
    for word in WORDS:
        if word in DRAWN and done and name.startswith(SAME_JOBS):
            continue
        code, out, err = said(capsys, *word, "--store", store.uri)
        assert words in out + err, (word, err)
        assert "No step was made: what" not in out
        if not done:
            assert (code, out) == (2, ""), word
        elif not has_histories(name, word):
            assert (code, out) == (2, ""), word
            assert "has no histories; " in err
        elif "its own run" in name and "new" not in word:  # the last sweep is not to be found
            assert (code, out) == (2, ""), word
            assert "holds no comparison" in err
        elif "figure" not in word and "profile" not in word:
            assert code == 0, (word, err)
    code, out, _ = said(capsys, "list", "--store", store.uri)
    assert code == 0
    assert "its own run" in name or "new" in out
    said(capsys, "studies", "--store", store.uri)
    if not done or name in JUDGED_AGAIN:
        said(capsys, "rejudge", "new", "rules.tail=0.5", "--out", "again", "--store", store.uri)
    said(capsys, "export", "new", "file.zip", "--store", store.uri)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("kind", tables.TABLE_FORMATS)
@pytest.mark.parametrize("name", ["planned", "a job failed", "all jobs failed"])
def test_a_table_of_each_format_tells_the_state(store, name, kind, capsys):
    make, _, done, words = STATES[name]
    make(store)
    for word in ([], ["--histories"]):
        code, out, err = said(capsys, "table", *word, "--format", kind, "--store", store.uri)
        assert words in out + err
        assert bool(out) == (code == 0) == (bool(done) and has_histories(name, word))


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(
    "name",
    [
        "running",
        pytest.param("interrupted later", marks=pytest.mark.slow),
        pytest.param("its steps deleted", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("word", [["figure", "melt"], ["profile"], ["show"], ["show", "new"]])
def test_words_that_say_the_same_as_another_one(store, name, word, capsys):
    make, _, _, words = STATES[name]
    make(store)
    code, out, err = said(capsys, *word, "--store", store.uri)
    assert words in out + err
    if "melt" in word:  # of a descent without theory there are none
        assert code == 2
        assert "nothing recorded for it" in err
    else:
        assert code == 0, err
        assert "standard" in out


@pytest.mark.commands
def test_a_comparison_that_lacks_a_step_is_judged_again(store, capsys):
    without(names.STEP, 1)(store)
    for run_id in runs.load(store.uri, "new").of_role(names.SCHEME)["run_id"]:
        store.writer.client.set_tag(run_id, names.DESCENT.key, run_id)
    code, _, err = said(
        capsys, "rejudge", "new", "rules.tail=0.5", "--out", "again", "--store", store.uri
    )
    assert code == 0, err
    again = runs.load(store.uri, runs.last_sweep_ids(store.uri)[1])
    assert again.sweep_id.startswith("new.")
    assert len(again.of_role(names.STEP)) == 6  # from what the jobs keep
    # Only the job that lacks what theory predicts of a step cannot be reused.
    assert again.of_role(names.SCHEME)[names.FINGERPRINT.column].notna().sum() == 2
    assert len(runs.load(store.uri, "new").of_role(names.STEP)) == 5


def test_a_study_shows_its_last_complete_comparison(store, capsys):
    command = {names.COMMAND.key: "normbench experiment=textbook/two"}
    home = leftovers.owner_tags(store.folder / "outputs" / "gone") | {names.PROCESS.key: "none"}
    words = ("studies", "textbook", "--store", store.uri)
    store.sweep("cut", 0, tags=command | home)
    code, out, err = said(capsys, *words)
    assert (code, out) == (2, "")
    assert f"textbook/two: comparison cut was stopped (0 of 3 jobs done){REST}" in err
    store.sweep("part", 1, tags=command | home)
    code, out, err = said(capsys, *words)
    assert code == 0
    assert "minmax" not in out
    assert "comparison part was stopped (1 of 3 jobs done)" in err
    store.writer.finish(store.sweep("whole", 3, tags=command | home))
    assert said(capsys, *words)[2] == ""
    store.sweep("newer", 2, tags=command | home)
    code, out, err = said(capsys, *words)
    assert code == 0
    assert "pca_sphere" in out
    assert err == (
        f"textbook/two: comparison newer was stopped (2 of 3 jobs done){REST}; shown is whole.\n"
    )


@pytest.mark.parametrize("name", [name for name, of in STATES.items() if not of[2]])
def test_without_a_job_the_last_comparison_with_results_is_shown(store, name, capsys):
    make, _, _, words = STATES[name]
    store.writer.finish(store.sweep("old", 2), "FINISHED")
    make(store)
    code, out, err = said(capsys, "table", "--store", store.uri)
    assert code == 0
    assert "standard" in out
    assert f"The last comparison, new, {words}" in err
    assert "Shown is old" in err
    with pytest.raises(ResultsError, match="comparison new: has no results yet; it "):
        normbench.load("new", store=store.uri)
    assert normbench.load(store=store.uri).sweep.sweep_id == "old"


def test_a_comparison_that_concludes_itself_says_nothing(store):
    store.sweep("new", 2, lock=True, tags=leftovers.owner_tags(store.folder / "outputs" / "new"))
    sweep = runs.load(store.uri, "new")
    assert "This comparison is still running (2 of 3 jobs done)." in page.render(sweep, {})
    assert "still running" not in page.render(sweep, {}, is_complete=True)


def test_of_several_comparisons_the_one_that_runs_is_named(store, capsys):
    finished(store)
    store.sweep("newer", 1, lock=True)
    _, _, err = said(capsys, "table", "new", "newer", "--store", store.uri)
    assert err == "Comparison newer is still running (1 of 3 jobs done).\n"


def test_a_comparison_that_runs_is_not_judged_again(store, capsys):
    running(store)
    code, _, err = said(capsys, "rejudge", "new", "rules.tail=0.5", "--store", store.uri)
    assert code == 2
    assert err.endswith("comparison new: is still running (1 of 3 jobs done); wait for it\n")


def test_the_list_tells_that_a_killed_comparison_no_longer_runs(store):
    killed_later(store)
    store.sweep("newer", 0, lock=True)
    found = runs.sweeps(store.uri).set_index("sweep")["status"]
    assert dict(found) == {"new": "KILLED", "newer": "RUNNING"}


@pytest.mark.slow
@pytest.mark.sqlite("a command that is killed here")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_command_that_runs_and_is_ended(tmp_path, number, capsys):
    words = ["dataset=gaussian", "iterations=10000000", "step_sizes=[0.1]", "theory=none"]
    with subprocess.Popen(
        [sys.executable, "-m", "normbench", *words],
        cwd=tmp_path,
        env=forks.user_environment(COLUMNS="200"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # Where the tests run in the background, a shell has them ignore Ctrl-C, and so would it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as command:
        try:
            uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
            deadline = time.monotonic() + 120
            while not list(tmp_path.glob("outputs/*/sweep.json")):
                assert command.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
            assert "it is still running (0 of 3 jobs done)" in said(capsys, "--store", uri)[2]
        finally:
            os.killpg(command.pid, number)
            try:
                command.wait(60)
            finally:
                command.kill()
    assert f"it was stopped (0 of 3 jobs done){REST}" in said(capsys, "--store", uri)[2]
