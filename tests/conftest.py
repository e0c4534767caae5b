"""What several tests share: the command line as a process, and small data."""

import gc
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests import forks

ROOT = Path(__file__).resolve().parent.parent
SCREENSHOTS = Path(os.environ.get("NORMBENCH_SCREENSHOTS", ROOT / "outputs" / "screenshots"))
# In each file with a slow test: a mark, or the shapes of a picture, some of which are slow.
SLOW_SIGN = re.compile(r"slow|commands|quick_cases|SHAPES")
# Why a test may be skipped in CI; any other reason is a failure there.
SKIPS = re.compile(
    "PyTorch|JAX|no GPU|[Ss]lurm|munge|real data|such case|shared/data|NORMBENCH_DATA"
    "|studies' files|kinds? of kernels|family of kernels|alone:|t10k|digits|tells the peak"
)
TRANSCRIPTS = ROOT / "outputs" / "transcripts"  # of commands on a cluster


def pytest_configure(config):
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.import_plugin("tests.recorded")  # fixtures, where tests are run
        gc.disable()  # until the tests are collected, since what is made for them stays


def pytest_ignore_collect(collection_path, config):
    """Leave files without a slow test to the quick tests: collecting them takes some seconds."""
    if collection_path.suffix != ".py" or not config.option.markexpr.startswith("(slow or"):
        return None
    return SLOW_SIGN.search(collection_path.read_text()) is None or None


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items):
    """Mark the cases of a test that are not quick as slow, and put the long tests first.

    Fail where a slow test is in a file without a sign of one, see `pytest_ignore_collect`.
    """
    counts = Counter()
    for item in items:
        if mark := item.get_closest_marker("quick_cases"):
            if counts[item.function] % mark.args[0]:
                item.add_marker("slow")
            counts[item.function] += 1
    slow_files = {
        item.path for item in items if {"slow", "commands"} & {m.name for m in item.iter_markers()}
    }
    for file in slow_files:
        assert SLOW_SIGN.search(file.read_text()), (
            f"{file}: a test of it is slow, and no word of it says so"
        )
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def fail_in_ci(report):
    """Return the report of a skipped test or file; in CI as a failure without a known reason."""
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        if not SKIPS.search(str(reason)):
            report.outcome, report.longrepr = "failed", f"in CI nothing is {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Fail a test that vanishes in CI."""
    return fail_in_ci((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """Fail a file that vanishes in CI."""
    return fail_in_ci((yield))


def pytest_collection_finish():
    """Spare the collector what is there to the end: it takes half a second to look through."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter):
    """Say where the browser's pictures and the transcripts are, in CI's log too."""
    if any(SCREENSHOTS.glob("*.png")):
        terminalreporter.write_line(f"screenshots: {SCREENSHOTS}")
    if any(TRANSCRIPTS.glob("*.txt")):
        terminalreporter.write_line(f"transcripts: {TRANSCRIPTS}")


@pytest.fixture(autouse=True)
def as_it_was():
    """Fail a test that leaves the environment, the working folder or `sys.path` changed."""

    def state():
        # threadpoolctl sets KMP_ variables where it is first imported, for the OpenMP of others.
        others = ("PYTEST_CURRENT_TEST", "KMP_")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(others)}
        return environment, os.getcwd(), list(sys.path)

    before = state()
    yield
    after = state()
    changed = [key for key in {*before[0], *after[0]} if before[0].get(key) != after[0].get(key)]
    assert (changed, after[1], after[2]) == ([], before[1], before[2])


@pytest.fixture(autouse=True)
def without_mlflows_settings(as_it_was):
    """Take away what opening a store in this process sets: a child must set it for itself."""
    before = {key for key in os.environ if key.startswith("MLFLOW_")}
    yield
    for key in [key for key in os.environ if key.startswith("MLFLOW_") and key not in before]:
        del os.environ[key]


@pytest.fixture
def command(tmp_path):
    """Return a function that runs `normbench ...` in an empty folder of its own."""

    def run(*arguments, folder=tmp_path, patience=forks.PATIENCE, **environment):
        settings = forks.user_environment(**environment)
        if arguments[:1] not in (("results",), ("dashboard",)) and not any(
            word.startswith(("-", "tracking")) for word in arguments
        ):
            arguments = (*arguments, "tracking=none")  # the copy in MLflow is tested by itself
        if any(word.startswith("hydra/launcher=") for word in arguments):
            # Its processes begin as this one's own would, and not in the midst of a fork.
            words = [sys.executable, "-m", "normbench", *arguments]
            options = {"capture_output": True, "text": True, "timeout": patience}
            return subprocess.run(words, cwd=folder, env=settings, **options)
        return forks.run(arguments, folder, settings, patience=patience)

    return run


@pytest.fixture
def two_classes():
    """Points (60, 3) of two overlapping classes, features of different ranges, and labels."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 60)
    x = (rng.standard_normal((60, 3)) + y[:, None]) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
    return x, y
