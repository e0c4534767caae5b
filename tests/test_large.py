"""Points larger than the memory that a command may take: the same answers, within the limit."""

import os
import subprocess
import sys

import numpy as np
import pytest

POINTS, FEATURES = 400_000, 250  # 800 MB
LIMIT = 700 * 2**20
# The command, and then the most memory that the process ever held, in bytes.
PEAK = """
import resource, sys
from normbench.__main__ import main
try:
    code = main()
except SystemExit as exit:
    code = exit.code
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print("PEAK", peak, file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Points and targets in npy files, written block by block; gone at the end."""
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(0)
    scale, weights = np.geomspace(1, 30, FEATURES), rng.standard_normal(FEATURES)
    targets = np.empty(POINTS, np.int8)
    x = np.lib.format.open_memmap(
        folder / "x.npy", mode="w+", dtype=np.float64, shape=(POINTS, FEATURES)
    )
    for first in range(0, POINTS, 50_000):
        rows = rng.standard_normal((50_000, FEATURES))
        noise = 5 * rng.standard_normal(50_000)
        targets[first : first + 50_000] = rows @ weights + noise > 0
        x[first : first + 50_000] = rows * scale + 10
    x.flush()
    del x
    np.save(folder / "y.npy", targets)
    yield folder
    (folder / "x.npy").unlink()


def ran(files, folder, *more):
    """Return the lines of a command's table, without seconds, and its peak memory."""
    folder.mkdir()
    arguments = [
        "dataset=npy",
        f"dataset.path={files}/x.npy",
        f"dataset.targets={files}/y.npy",
        "dataset.test_fraction=0.25",
        "step_sizes=[0.001,0.1,1,10]",
        "iterations=4",
        "figures=[histories]",
        *more,
    ]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *arguments],
        cwd=folder,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("scheme"))
    table = [line.rsplit(maxsplit=1)[0] for line in lines[first : first + 4]]
    return table, int(done.stderr.rsplit("PEAK", 1)[1])


@pytest.mark.slow
def test_points_beyond_the_limit_are_compared_within_it(files, tmp_path):
    table, peak = ran(files, tmp_path / "limited", f"memory={LIMIT}")
    assert peak < 1.1 * LIMIT  # measured: 0.66 of it; the points alone are 1.09 of it
    whole, more = ran(files, tmp_path / "held", "dataset.in_blocks=false")
    assert table == whole
    assert more > 8 * POINTS * FEATURES + peak / 2
