"""The launcher of a queue, without one: batches, tasks at once, what became of each, settings."""

import os
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf

from normbench import interrupts, names
from normbench.command.config import hydra_settings
from normbench.command.config.errors import SweepError
from normbench.command.sweep import queues, slurm, task
from normbench.datasets.values import UserError
from tests.cases import CONF


class Task:
    """A task of submitit's that needs some looks until it has ended, with a result or without."""

    at_work = most = 0

    def __init__(self, folder, number, batch, looks=2, result="done"):
        self.job_id, self.batch, self.left, self.outcome = f"7_{number}", batch, looks, result
        self.paths = SimpleNamespace(folder=folder, result_pickle=folder / f"7_{number}_result.pkl")
        Task.at_work += 1
        Task.most = max(Task.most, Task.at_work)

    def done(self):
        self.left -= 1
        if self.left == 0:
            Task.at_work -= 1
            if self.outcome:
                self.paths.result_pickle.write_text("")
        return self.left <= 0

    def result(self):
        from submitit.core.utils import FailedJobError

        if self.outcome == "bug":
            raise FailedJobError("with a traceback")
        return [{"failure": "", "number": number} for number, _ in self.batch]


@pytest.fixture
def launch(tmp_path, monkeypatch):
    """Return a function that launches jobs on a queue of such tasks."""
    monkeypatch.setattr(queues, "POLL_SECONDS", 0)
    monkeypatch.setattr(Task, "at_work", 0)
    monkeypatch.setattr(Task, "most", 0)

    def run(jobs, result=lambda number: "done", queue="local", first=0, **settings):
        given = {"jobs_per_task": 1, "array_parallelism": 2, "cpus_per_task": 1, "timeout_min": 5}
        launcher = queues.Queue(queue, **given | settings)
        tasks = []

        def submitted(executor, batches):
            new = [
                Task(Path(launcher.folder), len(tasks) + n, batch, 2 + n, result(len(tasks) + n))
                for n, batch in enumerate(batches)
            ]
            tasks.extend(new)
            return new

        def executor(folder):
            launcher.folder = folder

        monkeypatch.setattr(launcher, "_submit", submitted)
        monkeypatch.setattr(launcher, "_executor", executor)
        launcher.config = OmegaConf.create({"hydra": {"sweep": {"dir": str(tmp_path)}}})
        words = [[f"seed={n}"] for n in range(jobs)]
        return launcher.launch(list(enumerate(words, first))), tasks

    return run


@pytest.mark.parametrize(("size", "tasks"), [(1, 7), (3, 3), (7, 1), (100, 1)])
def test_jobs_are_batched_and_come_back_in_their_order(launch, size, tasks):
    returned, made = launch(7, jobs_per_task=size, first=100)
    assert [one.return_value["number"] for one in returned] == list(range(100, 107))
    assert len(made) == tasks
    assert [len(one.batch) for one in made] == [size] * (7 // size) + [7 % size] * (7 % size > 0)
    assert made[0].batch[0] == (100, ["seed=0"])


@pytest.mark.parametrize("most", [1, 2, 5])
def test_no_more_tasks_than_allowed_run_at_once_here(launch, most):
    launch(9, array_parallelism=most)
    assert Task.most == most


def test_a_job_without_a_result_is_lost_and_the_others_are_not(launch):
    returned, made = launch(6, lambda n: "" if n == 1 else "done", jobs_per_task=2)
    outcomes = [one.return_value for one in returned]
    assert [outcome["failure"] for outcome in outcomes] == [
        "",
        "",
        queues.LOST,
        queues.LOST,
        "",
        "",
    ]
    told = queues.describe_lost(outcomes)
    assert told == f"lost: job 3, 4 (task 7_1 ended); logs in {made[0].paths.folder}"
    outcomes[2] |= {"failure": ""}  # its task had recorded it
    assert queues.describe_lost(outcomes).startswith("lost: job 4 (")
    outcomes[3] |= {"failure": ""}
    assert queues.describe_lost(outcomes) == ""


def test_of_many_lost_tasks_the_first_are_told_and_what_helps():
    lost = [
        {"failure": queues.LOST, "reason": f"task 7_{n} timeout", "logs": "f"} for n in range(30)
    ]
    told = queues.describe_lost(lost)
    assert "job 1 (task 7_0 timeout), 2 (" in told
    assert "and those of 20 more tasks; logs in f; hydra.launcher.timeout_min" in told
    assert "mem_gb" not in told


def test_a_bug_in_a_task_is_raised_for_its_jobs(launch, capsys):
    returned, _ = launch(2, lambda n: "bug" if n else "done")
    assert returned[0].return_value["failure"] == ""
    with pytest.raises(RuntimeError, match="with a traceback"):
        _ = returned[1].return_value
    assert "seed=1" in capsys.readouterr().err


def test_a_stop_ends_the_tasks_and_leaves_no_pickle(launch, monkeypatch):
    ended = []

    def stop(self, at_work):
        ended.extend(at_work)

    def interrupt(self):
        self.paths.result_pickle.with_name("secret.pkl").write_text("")
        raise KeyboardInterrupt

    monkeypatch.setattr(queues.Queue, "_cancel", stop)
    monkeypatch.setattr(Task, "done", interrupt)
    with pytest.raises(KeyboardInterrupt):
        launch(5)
    assert [one.job_id for one in ended] == ["7_0", "7_1"]
    assert not list(ended[0].paths.folder.glob("*.pkl"))
    assert ended[0].paths.folder.stat().st_mode & 0o777 == 0o700


def test_every_ten_seconds_a_line_says_how_many_tasks_have_ended(launch, monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(queues.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(slurm.Tasks, "describe_states", lambda self, ids: ", ".join(sorted(ids)))

    def sleep(seconds):
        now[0] += 6

    monkeypatch.setattr(queues.time, "sleep", sleep)
    launch(5)  # two at once, over 2 looks each, and the second over 3
    first, *lines = capsys.readouterr().err.splitlines()
    assert first.startswith("5 tasks for local; their logs: ")
    assert lines == ["2 of 5 tasks have ended; 7_2", "4 of 5 tasks have ended; 7_4"]


class Child:
    """A task of this machine that ends some looks after it was told to."""

    def __init__(self, number, left, ended=False):
        self.job_id, self.left, self.told, self.ended = str(number), left, [], ended

    def done(self):
        self.left -= bool(self.told)
        return self.ended or self.left <= 0


def cancelled(monkeypatch, children):
    """Cancel tasks; return the seconds that it waited."""
    now, by_number = [0.0], {int(child.job_id): child for child in children}
    monkeypatch.setattr(queues.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(queues.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))

    def kill(number, sent):
        by_number[number].told.append(sent)

    monkeypatch.setattr(queues.os, "kill", kill)
    given = {"jobs_per_task": 1, "array_parallelism": 2, "cpus_per_task": 1, "timeout_min": 5}
    queues.Queue("local", **given)._cancel(iter(children))
    return now[0]


def test_tasks_of_this_machine_are_told_to_end_and_waited_for(monkeypatch):
    children = [Child(7, 4), Child(8, 2), Child(9, 1, ended=True)]
    assert cancelled(monkeypatch, children) == 4 * queues.POLL_SECONDS
    assert [child.told for child in children] == [[signal.SIGTERM], [signal.SIGTERM], []]


def test_a_task_that_does_not_end_is_waited_for_only_so_long(monkeypatch):
    assert cancelled(monkeypatch, [Child(7, 1000)]) == queues.CANCEL_SECONDS


def test_the_environment_of_tasks_is_taken_back():
    handler = signal.getsignal(signal.SIGINT)
    before = dict(os.environ)
    with queues._task_environment():
        assert os.environ["PYTHONSAFEPATH"] == "1"
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    assert dict(os.environ) == before
    assert signal.getsignal(signal.SIGINT) is handler


def test_what_a_queue_refuses_is_told_in_one_line():
    from submitit.core.utils import FailedJobError

    class Refuses:
        def map_array(self, *_):
            raise FailedJobError("sbatch: error: no\nmore jobs")

    launcher = queues.Queue("slurm", 1, 2, cpus_per_task=1)
    launcher.context = launcher.function = launcher.config = None
    with pytest.raises(SweepError, match="sbatch: error: no more jobs"):
        launcher._submit(Refuses(), [[(0, ["seed=1"])]])


# Slurm's answers.


@pytest.fixture
def says(monkeypatch):
    """Return Slurm's word on tasks, and the answers that squeue gives; each call is 20 s later."""
    clock = SimpleNamespace(now=0.0)
    answers = []

    def asked(*words):
        assert words[0] == "squeue"
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        code = int(answer is None)
        return subprocess.CompletedProcess(words, code, answer or "", "no\ncontact" if code else "")

    monkeypatch.setattr(slurm, "_run_slurm", asked)
    monkeypatch.setattr(slurm.time, "monotonic", lambda: clock.now)
    told = slurm.Tasks()

    def ended(task, seconds=20.0):
        clock.now += seconds
        return told.ended(task)

    return SimpleNamespace(ended=ended, answers=answers, shown=told.describe_states)


@pytest.mark.parametrize(
    "state", ["PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING", "REQUEUED", "STOPPED"]
)
def test_a_task_that_slurm_has_goes_on(says, state):
    says.answers.append(f"7_1 {state} None\n")
    assert [says.ended("7_1") for _ in range(5)] == [""] * 5


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ("7_1 CANCELLED None", "cancelled"),
        ("7_1 NODE_FAIL None", "node_fail"),
        ("7_1 COMPLETED None", "completed"),  # as one that failed in Python reads
        ("7_10 RUNNING None", "ended"),  # it is forgotten
        ("", "ended"),
    ],
)
def test_a_task_that_slurm_has_no_more_ends_when_its_result_may_no_longer_come(says, answer, word):
    says.answers.append(answer)
    assert says.ended("7_1") == ""
    assert says.ended("7_1", slurm.RESULT_SECONDS - 1) == ""
    assert says.ended("7_1", 2) == word


def test_a_task_that_is_begun_again_goes_on(says):
    says.answers += ["7_1 NODE_FAIL None", "7_1 PENDING BeginTime", "7_1 CANCELLED None"]
    assert [says.ended("7_1") for _ in range(4)] == ["", "", "", "cancelled"]


def test_where_slurm_does_not_answer_tasks_go_on_and_it_is_told_once(says, capsys):
    says.answers += ["7_1 CANCELLED None", *[None] * 3, "7_1 CANCELLED None"]
    assert [says.ended("7_1") for _ in range(5)] == ["", "", "", "", "cancelled"]
    assert capsys.readouterr().err == "squeue does not answer (no contact); its tasks go on\n"


def test_states_are_counted_and_waiting_has_its_reason(says):
    says.answers.append(
        "7_1 RUNNING None\n7_2 PENDING Resources\n7_3 PENDING Resources\n8 RUNNING None"
    )
    says.ended("7_1")
    assert says.shown(["7_1", "7_2", "7_3", "9"]) == "1 running, 2 pending (Resources)"


def test_a_whole_array_is_cancelled_by_its_number(monkeypatch):
    asked = []
    monkeypatch.setattr(slurm, "_run_slurm", lambda *words: asked.append(words))
    slurm.cancel(["7_0", "7_1", "9"])
    slurm.cancel([])
    assert asked == [("scancel", "7", "9")]


def commands(folder, sbatch):
    """Return a PATH with commands by the names of Slurm's."""
    folder.mkdir()
    for name in slurm.SLURM_COMMANDS:
        (folder / name).write_text(f"#!/bin/sh\n{sbatch}\n")
        (folder / name).chmod(0o755)
    return str(folder)


ASKED = {"partition": "short", "account": None, "timeout_min": 5, "mem_gb": 2, "cpus_per_task": 1}


def test_a_task_that_slurm_would_not_run_is_a_mistake(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", commands(tmp_path / "bin", 'echo "$@" >&2; exit 1'))
    with pytest.raises(
        UserError, match=r"hydra.launcher.partition=short .*Slurm takes no such task"
    ) as told:
        slurm.check(ASKED)
    words = "--test-only --partition=short --time=5 --mem=2G --cpus-per-task=1 --wrap=true"
    assert f"({words})" in str(told.value)
    monkeypatch.setenv("PATH", commands(tmp_path / "other", "exit 0"))
    slurm.check(ASKED)


def test_without_slurm_the_rehearsal_is_offered(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"there is no sbatch .*hydra/launcher=submitit_local"):
        slurm.check(ASKED)


# Settings, and what a task finds.


def settings_of(option):
    return OmegaConf.to_container(OmegaConf.load(CONF / "hydra" / "launcher" / f"{option}.yaml"))


@pytest.mark.parametrize("option", ["slurm", "submitit_local"])
def test_what_is_not_installed_is_told_with_what_to_do(monkeypatch, option):
    launcher = settings_of(option)
    hydra_settings._check_queue(launcher, "outputs")
    monkeypatch.setattr(hydra_settings, "find_spec", lambda name: None)
    with pytest.raises(UserError) as told:
        hydra_settings._check_queue(launcher, "outputs")
    assert str(told.value) == (
        f"hydra/launcher={option}: submitit is not installed; pip install submitit"
    )


def test_every_setting_of_an_option_is_checked():
    for option in ("slurm", "submitit_local"):
        launcher = settings_of(option)
        takes = hydra_settings.QUEUE_SETTINGS[launcher["queue"]]
        assert set(launcher) == {"_target_", "queue", *takes}
        for key in takes:
            numbers = (0, -1, 0.5, "1", True, 10**7)
            for wrong in (
                "a\nreboot",
                [1],
                *(numbers if takes[key] else ("", "-x", "a b", "$(a)")),
            ):
                with pytest.raises(UserError, match=f"hydra.launcher.{key}="):
                    hydra_settings._check_queue({**launcher, key: wrong}, "outputs")


def test_an_option_file_of_ones_own_has_every_setting_and_no_other():
    launcher = settings_of("slurm")
    del launcher["timeout_min"]
    with pytest.raises(UserError, match=r"hydra\.launcher\.timeout_min: is missing; the settings"):
        hydra_settings._check_queue(launcher, "outputs")
    for key in ("setup", "python", "additional_parameters", "srun_args", "submitit_folder"):
        with pytest.raises(
            UserError, match=rf"hydra\.launcher\.{key}: cannot be set; the settings"
        ):
            hydra_settings._check_queue({**settings_of("slurm"), key: None}, "outputs")


@pytest.mark.parametrize("folder", ["a%j", "a\nb", "a\\b"])
def test_a_folder_that_means_something_to_a_queue_is_refused(folder):
    launcher = settings_of("slurm")
    with pytest.raises(UserError, match="folder="):
        hydra_settings._check_queue(launcher, folder)


def test_a_task_tells_where_its_log_is(monkeypatch, tmp_path):
    assert task.find_log_tags() == {}
    monkeypatch.setenv("SUBMITIT_FOLDER", str(tmp_path))
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
    # Slurm gives the last task of an array the array's own number.
    given = {"JOB_ID": 7, "ARRAY_JOB_ID": 7, "ARRAY_TASK_ID": 3, "PROCID": 0}
    for name, value in given.items():
        monkeypatch.setenv(f"SLURM_{name}", str(value))
    assert task.find_log_tags() == {
        names.SLURM_JOB.key: "7_3",
        names.LOG.key: str(tmp_path / "7_3_0_log.out"),
    }
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "local")
    monkeypatch.setenv("SUBMITIT_LOCAL_JOB_ID", "55")
    assert task.find_log_tags() == {names.LOG.key: str(tmp_path / "55_0_log.out")}


def test_a_task_takes_what_is_set_and_is_begun_again_only_where_its_jobs_are_taken_over(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("PATH", commands(tmp_path / "bin", "exit 0"))
    given = {"timeout_min": 5, "cpus_per_task": 3, "mem_gb": 2, "partition": "short", "qos": None}
    for reuse in (True, False):
        launcher = queues.Queue("slurm", 1, 4, **given)
        launcher.config = OmegaConf.create({"reuse": reuse})
        found = launcher._executor(tmp_path / "tasks").parameters
        assert ("no-requeue" in found["additional_parameters"]) == (not reuse)
        assert {"partition": "short", "time": 5, "mem": "2GB"}.items() <= found.items()
        assert {"cpus_per_task": 3, "array_parallelism": 4}.items() <= found.items()
        assert found["srun_args"] == ["--cpus-per-task=3"]
        assert "qos" not in found


def test_a_task_that_slurm_stops_ends_as_on_ctrl_c():
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert task.run(None, None, None, []) == []
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    finally:
        interrupts.install_handlers()  # forgets it
        signal.signal(signal.SIGTERM, before)
