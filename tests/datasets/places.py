"""Where the real data for tests is: NORMBENCH_DATA, or `shared/data` beside the checkout."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def data_folder():
    """Return the folder of the real data; skip the test where there is none."""
    folder = Path(os.environ.get("NORMBENCH_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is not there (NORMBENCH_DATA names another)")
    return folder
