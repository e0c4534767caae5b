"""A sweep on a real Slurm, on this machine: what is cancelled or lost is told, and made up for."""

import re
import shlex
import signal
from pathlib import Path

import pytest

from normbench import names
from tests.cluster import one_machine
from tests.conftest import TRANSCRIPTS
from tests.faults import bench
from tests.servers.mlflows import Server, serving
from tests.test_readme import ON_A_CLUSTER

pytestmark = [pytest.mark.slow, pytest.mark.long]

QUICK = ("iterations=20", "step_sizes=[0.1,1]", "theory=none", "figures=[histories]")
SMALL = "hydra.launcher.mem_gb=1"
SLURM = ("hydra/launcher=slurm", SMALL)
JOBS, AT_ONCE = 8, 3  # jobs of a sweep, tasks at a time: more than one node takes
SWEEP = ("normalizer=standard,pca_sphere", "dataset.split_seed=range(0,4)", *QUICK, *SLURM)
SWEEP += ("dataset.test_fraction=0.25", f"hydra.launcher.array_parallelism={AT_ONCE}")
SWEEP += ("hydra.launcher.jobs_per_task=2",)
SQUEUE = "squeue --noheader --array --states=all --sort=i"


@pytest.fixture(scope="module")
def cluster():
    why = one_machine.missing()
    if why:
        pytest.skip(why)
    with one_machine.Cluster() as found:
        yield found


@pytest.fixture
def start(cluster):
    """Return a function that starts a command on the cluster; one that a test leaves is killed."""
    begun = []

    def run(folder, *words):
        begun.append(bench.start(folder, *words, SLURM_CONF=cluster.environment["SLURM_CONF"]))
        return begun[-1]

    yield run
    for one in begun:
        if one.process.poll() is None:
            bench.end(one, 0)
            cluster.says("scancel --user=root")
        for file in (one.out, one.err):
            file.close()


@pytest.fixture
def told(cluster):
    """Return a function that keeps what was done and said, in a file that outlives the test."""
    TRANSCRIPTS.mkdir(parents=True, exist_ok=True)
    lines = []

    def tell(*words):
        lines.extend(str(word).rstrip() for word in words)
        (TRANSCRIPTS / "slurm.txt").write_text("\n".join([*lines, ""]))

    return tell


def running(cluster, node):
    """Return the tasks that are at work on a node."""
    tasks = cluster.says(f"{SQUEUE} --states=RUNNING --nodelist={node} --format=%i")
    return tasks.split()


def test_a_sweep_loses_a_task_and_a_node_and_the_same_command_finishes_it(
    cluster, start, tmp_path, told
):
    line = f"$ normbench {shlex.join(SWEEP)}"
    with cluster.holding(1):
        first = start(tmp_path, *SWEEP)
        cluster.wait("a finished task", lambda: " CD " in cluster.says(SQUEUE))
        cluster.wait("a task on node2", lambda: running(cluster, "node2"))
        cancelled = running(cluster, "node2")[0]
        cluster.says(f"scancel {cancelled}")
        cluster.wait("a task on node1", lambda: running(cluster, "node1"))
        lost = running(cluster, "node1")
        cluster.end("node1")
    done = bench.end(first, 400)
    told(line, f"(meanwhile: scancel {cancelled}; node1's slurmd is killed, with {lost} on it)")
    told(done.out, done.err, f"exit code {done.code}", "", f"$ {SQUEUE}", cluster.says(SQUEUE))

    assert done.code == 1
    last = done.err.splitlines()[-1]
    assert last.startswith("normbench: lost: job ")
    assert f"(task {cancelled} cancelled)" in last
    for task in lost:
        assert f"(task {task} node_fail)" in last
    assert "the same command runs them again" in last
    folder = Path(re.search(r"logs in ([^;]+);", last)[1])
    assert (folder / f"{cancelled}_0_log.out").is_file()
    assert not list(folder.glob("*.pkl"))
    before = len(bench.recorded(tmp_path))
    gone = len(re.findall(r"\d+(?=,| \(task)", last.partition("; logs")[0]))
    assert 0 < JOBS - before <= gone

    again = bench.end(start(tmp_path, *SWEEP), 400)
    told("", line, again.out, again.err, f"exit code {again.code}")
    assert again.code == 0, again.err
    assert f"reused {before} of {JOBS}" in again.out
    places = [*zip(bench.tags(tmp_path, names.LOG), bench.tags(tmp_path, names.SLURM_JOB))]
    assert len(places) == JOBS
    for log, job in places:
        assert Path(log).name == f"{job}_0_log.out"
        assert ": done" in Path(log).read_text()
    told("", "log and job of each run:", *(f"{job} {log}" for log, job in places))
    cluster.begin("node1")


def test_a_requeued_task_takes_over_what_it_recorded_and_finishes(cluster, start, tmp_path, told):
    sweep = ("dataset.test_fraction=0.25", "dataset.split_seed=range(0,4)", "iterations=3000")
    sweep += (*QUICK[1:], *SLURM, "normalizer=standard", "hydra.launcher.jobs_per_task=4")
    command = start(tmp_path, *sweep)
    cluster.wait("a recorded job", lambda: bench.recorded(tmp_path))
    tasks = f"{SQUEUE} --name=normbench --format=%i_%T"
    task = cluster.says(f"{tasks} --states=RUNNING").split()[-1].removesuffix("_RUNNING")
    for change in (f"update JobId={task} Requeue=1", f"requeue {task}"):
        cluster.says(f"scontrol {change}")
    cluster.wait("a requeued task", lambda: f"{task}_PENDING" in cluster.says(tasks))
    requeued = len(bench.recorded(tmp_path))
    cluster.says(f"scontrol update JobId={task} StartTime=now")  # Slurm waits two minutes
    ended = bench.end(command, 400)
    log = next(tmp_path.rglob(f"{task}_0_log.out")).read_text()
    told(f"$ normbench {shlex.join(sweep)}", f"(meanwhile: scontrol requeue {task})", ended.out)
    told(ended.err, f"exit code {ended.code}", "", log)
    assert ended.code == 0, ended.err
    assert "DUE TO JOB REQUEUE" in log
    assert log.count(": reused") == requeued
    assert 1 <= requeued < 4
    assert len(bench.recorded(tmp_path)) == 4
    again = bench.end(start(tmp_path, *sweep), 400)
    assert again.code == 0, again.err
    assert "reused 4 of 4" in again.out


def test_a_stopped_command_leaves_nothing_in_the_queue(cluster, start, tmp_path):
    words = (*QUICK, *SLURM, "hydra.launcher.array_parallelism=1", "hydra.launcher.jobs_per_task=2")
    first = start(tmp_path, *words, "start=normal", "seed=0,1")
    at_work = f"{SQUEUE} --name=normbench --states=RUNNING,PENDING,COMPLETING"
    cluster.wait("a task at work", lambda: " R " in cluster.says(at_work))
    first.process.send_signal(signal.SIGINT)
    done = bench.end(first)
    assert done.code == 130, done.err
    assert "the same command runs what is not recorded" in done.err
    cluster.wait("an empty queue", lambda: not cluster.says(at_work))
    assert not list(tmp_path.rglob("*.pkl"))


def test_what_slurm_would_never_run_is_told_before_anything_is_made(start, tmp_path):
    for word in ("hydra.launcher.partition=nope", "hydra.launcher.mem_gb=9000"):
        done = bench.end(start(tmp_path, *QUICK, SLURM[0], word))
        assert done.code == 2
        assert len(done.err.splitlines()) == 1
        assert word in done.err
        assert "Slurm takes no such task" in done.err
        assert not list(tmp_path.iterdir())


def test_the_readmes_commands_run_on_a_cluster(start, tmp_path):
    assert len(ON_A_CLUSTER) == 2
    with serving(Server(f"sqlite:///{tmp_path}/server.db", tmp_path)) as server:
        for words in ON_A_CLUSTER:
            words = [word.replace("http://host:5000", server.uri) for word in words]
            fewer = "dataset.split_seed=0,1"
            words = [fewer if word.startswith("dataset.split_seed=") else word for word in words]
            words += [*QUICK, SMALL, "normalizer=standard"]
            done = bench.end(start(tmp_path, *words[1:]))
            assert done.code == 0, done.err
