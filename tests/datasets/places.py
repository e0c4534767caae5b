"""Where the real data for tests is."""

import pytest

from tests.real_data import FOLDER


def data_folder():
    """Return the folder of the real data; skip the test where there is none."""
    if not FOLDER.is_dir():
        pytest.skip(f"no real data: {FOLDER} is not there (NORMBENCH_DATA names another)")
    return FOLDER
