"""Figures are drawn side by side, in forked processes, and are those of one process."""

import os
import signal
import time
from multiprocessing import get_context
from pathlib import Path

import pytest

from normbench.results.figures import drawing
from normbench.results.figures.base import forks
from normbench.results.store.errors import ResultsError

PATIENCE = 30  # seconds


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(forks, "_cores", lambda: 2)


def both(number):
    """Return the square of a number and its process; slow enough for the other to take some."""
    time.sleep(0.05)
    return number**2, os.getpid()


@pytest.mark.parametrize(("cores", "most"), [(2, 2), (64, forks.MAX_PROCESSES)])
def test_values_are_in_order_and_several_processes_return_them(cores, most, monkeypatch):
    monkeypatch.setattr(forks, "_cores", lambda: cores)
    values = forks.map_forked(both, range(16))
    assert [square for square, _ in values] == [number**2 for number in range(16)]
    processes = {process for _, process in values}
    assert 1 < len(processes) <= most


def test_an_error_of_a_forked_process_is_raised(two_cores):
    def work(number):
        raise OSError(number)

    with pytest.raises(OSError, match=r"\d"):
        forks.map_forked(work, range(6))
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


@pytest.mark.slow
def test_a_forked_process_ends_after_the_one_that_was_killed(two_cores, tmp_path):
    def work(number):
        (tmp_path / str(number)).write_text(str(os.getpid()))
        time.sleep(0.05)

    parent = os.fork()
    if parent == 0:
        forks.map_forked(work, range(1000))
        os._exit(0)
    await_file(tmp_path / "1")
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    await_end((tmp_path / "1").read_text())
    assert len(list(tmp_path.iterdir())) < 20


def await_file(file):
    until = time.monotonic() + PATIENCE
    while not (file.exists() and file.read_text()):
        assert time.monotonic() < until
        time.sleep(0.01)


def await_end(process):
    status, until = Path(f"/proc/{process}/stat"), time.monotonic() + PATIENCE
    # Where nobody waits for orphans, an ended one stays as a zombie.
    while status.exists() and status.read_text().rpartition(") ")[2][0] != "Z":
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("limit", "cores"), [("", 3), ("2", 2), ("1", 1), ("8", 3), ("0", 3), ("4,2", 3)]
)
def test_cores_are_those_that_the_environment_grants(limit, cores, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 5})
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert forks._cores() == cores
    monkeypatch.setattr(forks.sys, "platform", "darwin")
    assert forks._cores() == 1


@pytest.fixture
def prepared():
    """Return a function that prepares a call, whose process is ended after the test."""
    calls = []

    def of(prepare, call):
        calls.append(forks.PreparedCall(prepare, call))
        return calls[-1]

    yield of
    for call in calls:
        call.end()


def test_a_prepared_call_is_made_by_a_process_that_has_prepared_it(two_cores, prepared):
    ready = {}
    call = prepared(lambda: ready.update(at=os.getpid()), lambda *given: (ready, given))
    call.begin("a", 1)
    (at, given), again = call.result(), call.result()
    assert at["at"] != os.getpid()
    assert given == ("a", 1)
    assert again == (at, given)
    assert not ready
    assert not Path(f"/proc/{at['at']}").exists()


@pytest.mark.parametrize("way", ["one core", "is killed", "fails to prepare", "fails", "unsent"])
def test_a_call_that_no_other_process_makes_is_made_here(way, monkeypatch, prepared, capfd):
    here, tries = os.getpid(), get_context("fork").Value("i", 0)
    monkeypatch.setattr(forks, "_cores", lambda: 1 if way == "one core" else 2)

    def prepare():
        if way == "fails to prepare":
            raise ImportError

    def work(number):
        tries.value += 1
        if os.getpid() == here:
            return os.getpid()
        if way == "fails":
            raise KeyError(number)
        return lambda: number

    call = prepared(prepare, work)
    if way == "is killed":
        os.kill(call._child.pid, signal.SIGKILL)
        call._child.join()
    call.begin(1)
    assert call.result() == call.result() == here
    assert tries.value == (2 if way in ("fails", "unsent") else 1)
    assert capfd.readouterr() == ("", "")


def test_a_prepared_process_ends_with_the_one_that_was_killed(two_cores, tmp_path):
    parent = os.fork()
    if parent == 0:
        (tmp_path / "child").write_text(str(forks.PreparedCall(lambda: None, both)._child.pid))
        time.sleep(PATIENCE)
        os._exit(0)
    await_file(tmp_path / "child")
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    await_end((tmp_path / "child").read_text())


@pytest.mark.slow
def test_figures_of_two_processes_are_those_of_one(three, tmp_path, monkeypatch):
    files = {}
    for cores in (1, 2):
        monkeypatch.setattr(forks, "_cores", lambda cores=cores: cores)
        written = drawing.write(three.sweep, tmp_path / str(cores), ["histories", "data"])
        files[cores] = {
            name: {file.name: file.read_bytes() for file in files}
            for name, files in written.items()
        }
        assert {file.name for file in (tmp_path / str(cores)).iterdir()} == set(
            files[cores][three.name]
        )
    assert files[1] == files[2]
    assert len(files[1][three.name]) > 3


def test_a_folder_that_cannot_be_written_is_one_error(three, tmp_path, two_cores):
    (tmp_path / "file").touch()
    with pytest.raises(ResultsError, match="file"):
        drawing.write(three.sweep, tmp_path / "file")
