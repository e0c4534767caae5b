"""What a sweep does around its jobs: threads, exit codes, what it tells of jobs that are gone."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf

from normbench import names
from normbench.command.config import compose
from normbench.command.config.compose import JobSpec
from normbench.command.config.errors import SweepError
from normbench.command.startup import kernels
from normbench.command.sweep import sweep_job, sweeper
from normbench.engine.fast import packed
from normbench.recording.store import provenance
from normbench.recording.store.connection import StoreLostError

SCHEMES = """
from sklearn.base import BaseEstimator, TransformerMixin
from normbench.datasets.values import UserError

class Refuses(TransformerMixin, BaseEstimator):
    def fit(self, x, y=None):
        if len(x):
            raise UserError("mine: these points are not mine")
    def transform(self, x):
        return x

class Breaks(Refuses):
    def fit(self, x, y=None):
        if len(x):
            raise ArithmeticError("mine: broke")
"""


@pytest.mark.parametrize(
    ("launcher", "threads"),
    [
        ({"n_jobs": -1}, "1"),
        ({"n_jobs": 2}, "4"),
        ({"n_jobs": 3}, "2"),
        ({"n_jobs": 1}, "8"),
        ({"n_jobs": 50}, "1"),
        ({"cpus_per_task": 3}, "3"),
        ({}, None),
    ],
)
def test_processes_side_by_side_share_the_cores(monkeypatch, launcher, threads):
    for name in sweeper.THREADS:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(sweeper, "available_cores", lambda: 8)
    sweeper._share_threads(OmegaConf.create({"hydra": {"launcher": launcher}}))
    assert {os.environ.get(name) for name in sweeper.THREADS} == {threads}


def test_threads_that_a_user_has_set_stay(monkeypatch):
    for name, value in zip(sweeper.THREADS, ("5", "6", "7")):
        monkeypatch.setenv(name, value)
    sweeper._share_threads(OmegaConf.create({"hydra": {"launcher": {"n_jobs": 1}}}))
    assert [os.environ[name] for name in sweeper.THREADS] == ["5", "6", "7"]


@pytest.mark.slow
@pytest.mark.parametrize(("schemes", "code"), [("Refuses", 2), ("Refuses,Breaks", 1)])
def test_the_exit_code_says_whether_every_failed_job_is_a_mistake(command, tmp_path, schemes, code):
    (tmp_path / "mine.py").write_text(SCHEMES)
    (tmp_path / "options" / "normalizer").mkdir(parents=True)
    for name in ("Refuses", "Breaks"):
        file = tmp_path / "options" / "normalizer" / f"{name}.yaml"
        file.write_text(f"_target_: mine.{name}\n")
    options = ("--config-dir", "options", "packages=[mine]", "iterations=2", "figures=[]")
    done = command(*options, f"normalizer=standard,{schemes}")
    assert done.returncode == code, done.stderr
    assert "mine: these points are not mine" in done.stdout + done.stderr


def test_a_long_command_is_recorded_without_its_last_words():
    words = ["dataset=iris", "step_sizes=[0.1, 1]", f"figures=[{'histories,' * 1000}]", "seed=1"]
    assert sweeper._command_text(words[:2]) == "normbench dataset=iris 'step_sizes=[0.1, 1]'"
    assert sweeper._command_text(words) == "normbench dataset=iris 'step_sizes=[0.1, 1]' ..."
    seeds = [f"seed={number}" for number in range(2000)]
    text = sweeper._command_text(seeds)
    assert 7980 < len(text) <= 8000
    assert text.startswith("normbench seed=0 ")
    assert text.endswith(" ...")


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        (
            (0, 2),
            "the store: its disk is full; 2 of 3 jobs are kept in {folder} and logged by the next "
            "command",
        ),
        (
            (2,),
            "the store: its disk is full; 1 of 3 jobs are kept in {folder} and logged by the next "
            "command; 1 of 3 jobs are neither recorded nor kept: the same command runs them again",
        ),
        (
            (),
            "the store: its disk is full; 2 of 3 jobs are neither recorded nor kept: "
            "the same command runs them again",
        ),
    ],
)
def test_jobs_that_no_store_has_are_told_with_where_they_are(tmp_path, kept, told):
    pending = tmp_path / "pending"
    pending.mkdir()
    for number in kept:
        (pending / f"{number}.npz").write_text("")
    sweep = sweeper.Sweep()
    sweep.folder = tmp_path
    store = SimpleNamespace(statuses=lambda runs: {"r1": "FINISHED"}, safe_uri="sqlite:///a.db")
    sweep.writer = SimpleNamespace(store=store)
    outcomes = [
        {"run_id": run, "failure": failure, "reason": reason}
        for run, failure, reason in (
            ("", "store", "the store: its disk is full"),
            ("r1", "", ""),
            ("", "store", "the store: still full"),
        )
    ]
    with pytest.raises(SweepError) as error:
        sweep._check_recorded(outcomes)
    assert str(error.value) == told.format(folder=tmp_path)


def test_a_run_that_is_deleted_meanwhile_is_told(tmp_path):
    sweep = sweeper.Sweep()
    sweep.folder = tmp_path
    store = SimpleNamespace(statuses=lambda runs: dict.fromkeys(runs[:1], "FINISHED"))
    store.safe_uri = "sqlite:///a.db"
    sweep.writer = SimpleNamespace(store=store)
    outcomes = [{"run_id": run, "failure": "", "reason": ""} for run in ("r1", "r2", "r1")]
    with pytest.raises(SweepError) as error:
        sweep._check_recorded(outcomes)
    assert str(error.value) == (
        "tracking.uri=sqlite:///a.db: what was recorded is there no more; 1 of 3 jobs are neither "
        "recorded nor kept: the same command runs them again"
    )
    sweep._check_recorded(outcomes[::2])


def pool(library, file, threads, **more):
    names = {"internal_api": library, "version": "0.3.31", "user_api": "blas"}
    return {**names, "filepath": file, "num_threads": threads, **more}


@pytest.mark.parametrize("is_packed", [True, False])
def test_the_library_of_matrix_products_is_told(monkeypatch, is_packed):
    pools = [
        pool("openblas", "/b.so", 2, architecture="SkylakeX"),
        pool("openblas", "/c.so", 2, architecture="SkylakeX"),
        pool("flexiblas", "/a.so", 1),
        pool("mkl", "/m.so", 2),
        pool("openmp", "/o.so", 2, user_api="openmp"),
    ]
    monkeypatch.setattr("threadpoolctl.threadpool_info", lambda: pools)
    monkeypatch.setattr(packed, "find_library", lambda: Path("/m.so"))
    monkeypatch.setattr(packed, "is_used", lambda: is_packed)
    monkeypatch.setattr(packed, "version", lambda: "2026.2.0")
    told = "flexiblas 0.3.31 , 1 threads; openblas 0.3.31 SkylakeX, 2 threads"
    assert kernels.describe_blas() == told + "; mkl 2026.2.0 for packed points" * is_packed


def test_a_sweep_holds_the_versions_of_what_it_runs_with(monkeypatch):
    monkeypatch.setattr(provenance, "version", lambda name: f"1 of {name}")
    monkeypatch.setattr(provenance.sys, "version", "3.11.7 (main)")
    versions = provenance._versions()
    assert versions.pop("version.python") == "3.11.7"
    assert versions.pop("version.normbench") == "1 of normbench"
    assert versions == {f"version.{name}": f"1 of {name}" for name in provenance.RECORDED_LIBRARIES}


@pytest.mark.parametrize("state", ["clean", "dirty", "another", "none"])
def test_the_commit_of_a_checkout_is_told_and_of_no_other(monkeypatch, state):
    def git(command, cwd, stderr, text):
        assert cwd == provenance.SOURCE_FOLDER
        if state == "none":
            raise provenance.subprocess.CalledProcessError(128, command)
        answers = {
            "--show-toplevel": "/another" if state == "another" else str(provenance.SOURCE_FOLDER),
            "HEAD": "abc",
            "--porcelain": " M costs/softmax.py" if state == "dirty" else "",
        }
        return answers[command[-1]] + "\n"

    monkeypatch.setattr(provenance.subprocess, "check_output", git)
    told = {"clean": {"git_dirty": "false"}, "dirty": {"git_dirty": "true"}}.get(state)
    found = provenance._commit()
    assert found == ({} if told is None else {names.COMMIT.key: "abc", **told})


@pytest.mark.parametrize(
    ("iterations", "record", "name"),
    [(5, ["path"], "iris-softmax"), (0, ["spectrum"], "iris"), (0, [], "iris-softmax")],
)
def test_only_a_study_without_a_descent_has_no_cost_in_its_name(iterations, record, name):
    plain = {"dataset": {}, "iterations": iterations, "record": record}
    assert JobSpec(plain, {"dataset": "iris", "cost": "softmax"}).experiment == name


@pytest.mark.parametrize(
    ("typed", "recorded"), [(20, "20"), (2e1, "20"), (20.5, "20.5"), (float("inf"), "inf")]
)
def test_a_whole_number_is_recorded_in_one_way(typed, recorded):
    plain = {"dataset": {}, "iterations": typed, "start": "zeros", "cost": {"l2": 1.0}}
    choices = dict.fromkeys(("dataset", "cost", "normalizer", "optimizer", "model"), "x")
    params = JobSpec(plain, choices).parameters()
    assert str(params["iterations"]) == recorded
    assert str(params["cost.l2"]) == "1.0"


@pytest.mark.parametrize(
    ("typed", "recorded"),
    [
        ([0.1, 1.0], "[0.1, 1.0]"),
        ([1, 0.1], "[0.1, 1.0]"),
        ([1], "[1.0]"),
        (1, "[1.0]"),
        ([1, 1.0], "[1, 1.0]"),
        (["a"], "['a']"),
    ],
)
def test_step_sizes_are_recorded_in_one_way(typed, recorded):
    """Those of a mistake stay as they were typed."""
    plain = {"dataset": {}, "step_sizes": typed, "start": "zeros", "cost": {"l2": 1}}
    choices = dict.fromkeys(("dataset", "cost", "normalizer", "optimizer", "model"), "x")
    params = JobSpec(plain, choices).parameters()
    assert str(params["step_sizes"]) == recorded
    assert str(params["cost.l2"]) == "1.0"


class Asked:
    """A store that is asked what it has of a descent and of a grid."""

    def __init__(self, has_descent=False, has_grid=False, is_away=False):
        self.has, self.is_away, self.questions = (has_descent, has_grid), is_away, []

    def runs_of_descent(self, *question):
        self.questions.append(question)
        if self.is_away:
            raise StoreLostError("away")
        return ["a run"] * self.has[0]

    def has_grid(self, *question):
        self.questions.append(question)
        return self.has[1]


@pytest.mark.parametrize("missing", [None, "reuse", names.GRID_DESCENT.key, names.DESCENT.key])
@pytest.mark.parametrize("has_descent", [True, False])
@pytest.mark.parametrize("has_grid", [True, False])
def test_a_job_that_is_recorded_with_another_refine_is_told_of(missing, has_descent, has_grid):
    tags = {names.GRID_DESCENT.key: "grid", names.DESCENT.key: "descent"}
    tags.pop(missing, None)
    spec = SimpleNamespace(plain_settings={"reuse": missing != "reuse"}, experiment="iris-softmax")
    header, writer = SimpleNamespace(tags=tags), Asked(has_descent, has_grid)
    told = sweep_job._explain_rerun(spec, writer, header)
    is_told = missing is None and has_grid and not has_descent
    assert told == (sweep_job.NOT_REUSED_NOTE if is_told else "")
    if missing is None:
        questions = [("iris-softmax", "descent"), ("iris-softmax", "grid", "descent")]
        assert writer.questions == questions[: 1 if has_descent else 2]
        assert sweep_job._explain_rerun(spec, Asked(is_away=True), header) == ""
    else:
        assert writer.questions == []


@pytest.mark.parametrize("written", [{}, {"failure": "store", "reason": "the disk is full"}])
@pytest.mark.parametrize("failure", ["", "user", "bug"])
def test_the_outcome_of_a_job_is_what_became_of_it_and_of_its_record(
    tmp_path, monkeypatch, capsys, written, failure
):
    monkeypatch.setattr(sweep_job.resolvers, "register", lambda: None)
    recovery = "normbench.recording.resume.recovery"
    ledger = {"jobs": 4, "process": 1, "sweep_id": "s", "parents": {}}
    monkeypatch.setattr(f"{recovery}.read_ledger", lambda file: ledger)
    monkeypatch.setattr(f"{recovery}.stop_orphan", lambda folder, ledger: None)
    stored = {"run_id": "" if written else "r7", **written}
    monkeypatch.setattr(f"{recovery}.write_record", lambda *_: dict(stored))
    removed = []
    monkeypatch.setattr(sweep_job, "_make_header", lambda *_: "header")
    monkeypatch.setattr(sweep_job, "_explain_rerun", lambda *_: "; a note")
    monkeypatch.setattr(sweep_job, "_remove_checkpoint", lambda *of: removed.append(of))
    tags = {names.REASON.key: "it broke"} if failure else {}
    record = SimpleNamespace(scheme=SimpleNamespace(tags=tags))
    monkeypatch.setattr(sweep_job, "_compute", lambda *_: ("", failure, record))
    spec = SimpleNamespace(
        overrides=(), folder=tmp_path, experiment="iris-softmax", number=2, title="iris standard"
    )
    spec.writer = lambda: "writer"
    outcome = sweep_job.run_spec(spec)
    expected = written.get("failure", failure)
    assert outcome == {
        "experiment": "iris-softmax",
        "reused": False,
        "failure": expected,
        **stored,
    }
    assert len(removed) == (expected == "")
    said = {"": "done; a note", "store": "not recorded: the store is away"}
    line = said.get(expected, "failed: it broke")
    assert capsys.readouterr().err.startswith(f"job 3 of 4: iris standard: {line} (")


def test_a_job_whose_folder_is_gone_or_whose_store_cannot_be_opened_is_not_run(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(sweep_job.resolvers, "register", lambda: None)
    spec = SimpleNamespace(overrides=(), folder=tmp_path / "gone", experiment="e", number=0)
    outcome = sweep_job.run_spec(spec)
    assert outcome["failure"] == "store"
    assert outcome["reason"].startswith(f"hydra.sweep.dir={tmp_path}/gone: was removed while")
    recovery = "normbench.recording.resume.recovery"
    monkeypatch.setattr(f"{recovery}.read_ledger", lambda file: {"jobs": 1, "process": 1})
    monkeypatch.setattr(f"{recovery}.stop_orphan", lambda folder, ledger: None)
    spec.title = "iris standard"

    def writer():
        raise ValueError("no such driver")

    spec.writer = writer
    done = []  # how many jobs are taken to be finished
    monkeypatch.setattr(
        sweep_job, "estimate_seconds_left", lambda _, jobs_done, jobs: done.append(jobs_done)
    )
    outcome = sweep_job.run_spec(spec)
    assert outcome == {
        **{"experiment": "e", "reused": False, "failure": "store"},
        **{"reason": "no such driver", "run_id": ""},
    }
    assert "job 1 of 1: iris standard: not run: the store cannot be opened (" in (
        capsys.readouterr().err
    )
    spec.number = 2
    sweep_job.run_spec(spec)  # beside other jobs, in a process of its own
    ledger = {"jobs": 4, "process": os.getpid()}
    monkeypatch.setattr(f"{recovery}.read_ledger", lambda file: ledger)
    sweep_job.run_spec(spec)
    assert done == [0, 0, 2]


@pytest.mark.parametrize(("job", "number"), [({"num": 3}, 3), ({"num": None}, 0), ({}, 0)])
def test_a_job_has_its_number_in_the_sweep(monkeypatch, job, number):
    monkeypatch.setattr(compose, "_resolve", lambda config: ({"seed": config.seed}, None))
    hydra = {"runtime": {"choices": {"dataset": "iris"}}, "overrides": {"task": ["seed=1"]}}
    hydra |= {"sweep": {"dir": "outputs/here"}, "job": job}
    spec = JobSpec.from_config(OmegaConf.create({"seed": 1, "hydra": hydra}))
    assert spec.number == number
    assert spec.overrides == ("seed=1",)
    assert spec.folder == Path("outputs/here").absolute()
    assert spec.choices == {"dataset": "iris"}
    assert spec.plain_settings == {"seed": 1}
