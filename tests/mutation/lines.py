"""Which tests run which lines, and runs of chosen tests: `python -m tests.mutation.lines`.

It loads the libraries once, and forks into each run, which imports the checkout's own code anew.
Its orders are lines of JSON: run the tests of a file and note the lines that each runs of some
files, or run the tests of a list up to one that fails.
"""

import gc
import importlib
import inspect
import json
import os
import resource
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

LOADED = (
    *("autograd.numpy", "matplotlib.figure", "matplotlib.backends.backend_agg"),
    *("mlflow.tracking", "omegaconf", "pandas", "pyarrow.parquet", "scipy.optimize"),
    *("scipy.stats", "sklearn.datasets", "sklearn.decomposition", "sqlalchemy"),
)
MEMORY = 4 << 30  # bytes: a mutant that never ends may fill it before its time is up
WORDS = ["-q", "-x", "-n", "0", "-m", "not slow or quick_cases", "-p", "no:cacheprovider"]
# Plugins of libraries that the server has loaded keep their assertions as they are.
WORDS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]


class Lines:
    """A plugin of pytest that notes the lines of chosen files of the checkout, by test.

    seconds: of each test. ran: by file and line the tests that run it. What is run while a test is
    set up is noted for every test of its file: they may share what is made there. Bodies of modules
    and classes are not noted: they run once, for whoever imports them first.
    """

    def __init__(self, checkout: Path, files: Iterable[str]) -> None:
        self.seconds: dict[str, float] = {}
        self.ran: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._checkout = f"{checkout.resolve()}{os.sep}"
        self._files = set(files)
        self._known: dict[str, str] = {}
        self._now = ""

    def called(self, frame: FrameType, event: str, given: Any) -> Any:
        """Return the function that notes a frame's lines; None for a file that is not noted."""
        name = frame.f_code.co_filename
        if name not in self._known:
            inside = os.path.realpath(name).removeprefix(self._checkout)
            self._known[name] = inside if inside in self._files else ""
        file = self._known[name]
        if not file or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            return None
        ran = self.ran[file]

        def line(frame: FrameType, event: str, given: Any) -> Any:
            ran[frame.f_lineno].add(self._now)
            return line

        return line

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Any:
        """Note what is run while a test is set up, for its file."""
        return (yield from self._note(item.nodeid.partition("::")[0]))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        """Note what a test runs, with all that functions of its file keep from an earlier one."""
        for helper in vars(item.module).values():  # type: ignore[attr-defined]
            if getattr(helper, "__module__", "") == item.module.__name__:  # type: ignore[attr-defined]
                getattr(helper, "cache_clear", int)()
        return (yield from self._note(item.nodeid))

    def _note(self, who: str) -> Any:
        self._now = who
        sys.settrace(self.called)
        threading.settrace(self.called)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up how long each test takes."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration


class Only:
    """A plugin of pytest that leaves the tests of a list, in its order."""

    def __init__(self, tests: list[str]) -> None:
        self.order = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the others."""
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order),
            key=lambda item: self.order[item.nodeid],
        )


def run_chosen(chosen: list[str]) -> int:
    """Run the tests of a list, up to one that fails; return pytest's exit code."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    files = list(dict.fromkeys(test.partition("::")[0] for test in chosen))
    return pytest.main([*WORDS, *files], plugins=[Only(chosen)])


def note_lines(test_file: str, files: list[str], report: str) -> int:
    """Run the tests of a file; write their seconds, and which of them runs which lines of files."""
    lines = Lines(Path.cwd(), files)
    code = pytest.main([*WORDS, test_file], plugins=[lines])
    ran = {
        file: {number: sorted(tests) for number, tests in tests_by_line.items()}
        for file, tests_by_line in lines.ran.items()
    }
    Path(report).write_text(json.dumps({"seconds": lines.seconds, "ran": ran}))
    return code


def serve() -> None:
    """Answer each order, a line of JSON, with the exit code of a forked process that follows it."""
    for name in LOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _follow(order)
        print(json.dumps(_exit_code(child, order["patience"])), flush=True)


def _follow(order: dict[str, Any]) -> None:
    """Run the tests of an order without output, and end with their exit code."""
    os.setsid()
    silence = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(silence, number)
    # Compiled files are of sound code: a mutant's would be taken for it.
    sys.dont_write_bytecode = "chosen" in order
    code = 1
    try:
        code = (
            run_chosen(order["chosen"])
            if "chosen" in order
            else note_lines(order["test_file"], order["files"], order["report"])
        )
    finally:
        os._exit(code)


def _exit_code(child: int, patience: float | None) -> int:
    """Return the exit code of a process; one that outlasts the patience, in seconds, is ended."""
    end = time.monotonic() + (patience or float("inf"))
    ended, status = 0, 0
    while not ended and time.monotonic() < end:
        time.sleep(0.02)
        ended, status = os.waitpid(child, os.WNOHANG)
    with suppress(ProcessLookupError):  # what it has left running
        os.killpg(child, signal.SIGKILL)
    if not ended:
        status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    serve()
