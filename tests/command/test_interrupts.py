"""Ctrl-C and SIGTERM, of which a library makes an error of its own: a stop, and no failed job."""

import os
import signal
import sys
from contextlib import nullcontext
from types import SimpleNamespace
from unittest import mock

import pytest
from hydra.core.utils import JobReturn, JobStatus
from omegaconf import OmegaConf

from normbench import interrupts
from normbench.command import entry
from normbench.command.sweep import hydras_own, sweep_job, task

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def handlers():
    """Put back how this process handles both signals, and forget those that came."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    interrupts.install_handlers()
    for number, handler in before.items():
        signal.signal(number, handler)


def converted(number, *_, **__):
    """Do as a library that a signal finds at work, and that raises its own error then."""
    try:
        os.kill(os.getpid(), number)
    except KeyboardInterrupt as error:
        raise ImportError("multiarray failed to import") from error


@pytest.mark.parametrize("number", SIGNALS)
def test_an_error_after_a_signal_is_a_stop(number):
    interrupts.install_handlers(*SIGNALS)
    interrupts.raise_if_interrupted(ValueError("before"))
    with pytest.raises(ImportError) as failed:
        converted(number)
    with pytest.raises(KeyboardInterrupt) as stopped:
        interrupts.raise_if_interrupted(failed.value)
    assert stopped.value.__cause__ is failed.value
    interrupts.install_handlers(*SIGNALS)  # another command of this process
    interrupts.raise_if_interrupted(failed.value)


def test_a_signal_that_is_ignored_stays_so():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as of a shell's background job
    interrupts.install_handlers(*SIGNALS)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_command_is_stopped(monkeypatch, capsys):
    monkeypatch.setattr(sys, "warnoptions", ["default"])
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setattr(entry, "disable_collection", lambda: None)
    monkeypatch.setattr("normbench.command.sweep.line.run", lambda _: converted(signal.SIGINT))
    assert entry.run(["iterations=5"]) == 130
    assert capsys.readouterr().err == (
        "normbench: stopped; the same command runs what is not recorded\n"
    )


@pytest.mark.parametrize("stopped", [True, False])
def test_a_job_is_stopped_and_has_not_failed(stopped):
    def build():
        return converted(signal.SIGTERM) if stopped else 1 / 0

    interrupts.install_handlers(*SIGNALS)
    spec = mock.Mock(job=build, plain_settings={"reuse": False}, record_tags={})
    failures = "normbench.record.outcome.of_failure"
    with (
        mock.patch(failures, return_value="failed"),
        pytest.raises(KeyboardInterrupt) if stopped else nullcontext(),
    ):
        assert sweep_job._compute(spec, mock.Mock()) == ("failed", "bug")


@pytest.mark.parametrize("composes", [True, False])
@pytest.mark.parametrize("stopped", [True, False])
def test_a_task_is_stopped_and_has_no_bug(monkeypatch, stopped, composes):
    """Also while it composes the config of its next job."""

    def load(*_):
        return config if composes else converted(signal.SIGTERM) if stopped else 1 / 0

    def failed(*_):
        try:
            return converted(signal.SIGTERM) if stopped else 1 / 0
        except Exception as error:
            return JobReturn(status=JobStatus.FAILED, _return_value=error)

    monkeypatch.setattr("hydra.core.utils.run_job", failed)
    monkeypatch.setattr(hydras_own, "load_plugins", lambda: None)
    config = OmegaConf.create({"hydra": {"sweep": {"dir": "."}, "job": {"num": 0, "id": "0"}}})
    context = SimpleNamespace(config_loader=SimpleNamespace(load_sweep_config=load))
    error = KeyboardInterrupt if stopped else ZeroDivisionError
    with pytest.raises(error):
        task.run(context, None, config, [(3, [])])


@pytest.mark.parametrize("paths", [["/libraries"], ["", "/libraries"], ["/libraries", "{here}"]])
def test_the_folder_of_a_command_is_looked_into_last(monkeypatch, tmp_path, paths):
    monkeypatch.chdir(tmp_path)
    before = [path.format(here=tmp_path) for path in paths]
    monkeypatch.setattr(sys, "warnoptions", ["default"])
    monkeypatch.setattr(sys, "path", list(before))
    monkeypatch.setattr(entry, "disable_collection", lambda: None)
    monkeypatch.setattr(entry, "run_with_checked_output", lambda command: 7)
    assert entry.run([]) == 7
    assert sys.path == before + [str(tmp_path)] * (len(paths) == 1)


def test_a_folder_that_was_removed_is_named_in_one_line(monkeypatch, tmp_path, capsys):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    monkeypatch.setattr(entry, "disable_collection", lambda: None)
    monkeypatch.setattr(sys, "warnoptions", ["default"])
    assert entry.run(["results"]) == 2
    words = "normbench: the working folder was removed; work in another one\n"
    assert capsys.readouterr().err == words
    monkeypatch.chdir(tmp_path)
