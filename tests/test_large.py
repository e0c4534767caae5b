"""Points larger than the memory that a command may take: the same answers, within the limit."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

POINTS, FEATURES = 200_000, 250  # 400 MB
LIMIT = 360 * 2**20
# The command, and then the most memory that it held. Not getrusage's: that counts what the process
# held before it became this one.
PEAK = """
import sys
from pathlib import Path
from normbench.__main__ import main
try:
    code = main()
except SystemExit as exit:
    code = exit.code
lines = Path("/proc/self/status").read_text().splitlines()
print("PEAK", next(line.split()[1] for line in lines if line.startswith("VmHWM")), file=sys.stderr)
sys.exit(code)
"""
STATUS = Path("/proc/self/status")
pytestmark = pytest.mark.skipif(not STATUS.is_file(), reason=f"{STATUS} tells the peak")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Points and targets in npy files, written block by block; gone at the end."""
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(0)
    scale, weights = np.geomspace(1, 30, FEATURES), rng.standard_normal(FEATURES)
    targets = np.empty(POINTS, np.int8)
    with open(folder / "x.npy", "wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (POINTS, FEATURES)}
        np.lib.format.write_array_header_1_0(file, header)
        for first in range(0, POINTS, 50_000):
            rows = rng.standard_normal((50_000, FEATURES))
            noise = 5 * rng.standard_normal(50_000)
            targets[first : first + 50_000] = rows @ weights + noise > 0
            file.write((rows * scale + 10).data)
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
        "normalizer=pca_sphere",
        "step_sizes=[0.1]",
        "iterations=1",
        "theory=none",
        "refine=false",
        "shadows=false",
        "figures=[]",
        *more,
    ]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *arguments],
        cwd=folder,
        env=os.environ | {"COLUMNS": "200"},  # so that no column is left out, however long it took
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("scheme"))
    end = lines[first].index("misclassified")  # seconds stand behind it, where there is room
    table = [line[:end] for line in lines[first : first + 2]]
    return table, 1024 * int(done.stderr.rsplit("PEAK", 1)[1])


@pytest.mark.long
@pytest.mark.slow
def test_points_beyond_the_limit_are_compared_within_it(files, tmp_path):
    table, peak = ran(files, tmp_path / "limited", f"memory={LIMIT}")
    assert peak < LIMIT  # the points alone are 1.06 of it
    whole, more = ran(files, tmp_path / "held", "dataset.in_blocks=false")
    assert table == whole
    assert more > 8 * POINTS * FEATURES + peak / 2
