"""Which tests run which lines, and a run of chosen tests: a process of its own for either.

python -m tests.mutation.lines FILE TEST...: run tests, write the lines that each runs to a file.
python -m tests.mutation.lines --only FILE: run the tests that a file lists, up to one that fails.
"""

import inspect
import json
import os
import resource
import sys
import threading
from collections import defaultdict
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

MEMORY = 4 << 30  # bytes: a mutant that never ends may fill it before its time is up
WORDS = ["-q", "-x", "-n", "0", "-m", "not slow", "-p", "no:cacheprovider"]


class Lines:
    """A plugin of pytest that notes the lines of the checkout, without its tests, by test.

    seconds: of each test. ran: by file and line the tests that run it. What is run while a test is
    set up is noted for every test of its file: they may share what is made there. Bodies of modules
    and classes are not noted: they run once, for whoever imports them first.
    """

    def __init__(self, checkout: Path) -> None:
        self.seconds: dict[str, float] = {}
        self.ran: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._checkout = f"{checkout.resolve()}{os.sep}"
        self._known: dict[str, str] = {}
        self._now = ""

    def called(self, frame: FrameType, event: str, given: Any) -> Any:
        """Return the function that notes a frame's lines; None for a file that is not noted."""
        name = frame.f_code.co_filename
        if name not in self._known:
            inside = os.path.realpath(name).removeprefix(self._checkout)
            noted = not os.path.isabs(inside) and not inside.startswith(("tests", "<"))
            self._known[name] = inside if noted else ""
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
        """Note what a test runs."""
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


def main(words: list[str]) -> int:
    """Run tests; return pytest's exit code."""
    if words[0] == "--only":
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        tests = json.loads(Path(words[1]).read_text())
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        return pytest.main([*WORDS, *files], plugins=[Only(tests)])
    lines = Lines(Path.cwd())
    code = pytest.main([*WORDS, *words[1:]], plugins=[lines])
    ran = {
        file: {number: sorted(tests) for number, tests in noted.items()}
        for file, noted in lines.ran.items()
    }
    Path(words[0]).write_text(json.dumps({"seconds": lines.seconds, "ran": ran}))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
