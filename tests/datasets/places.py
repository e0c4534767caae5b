"""Where the real data for tests is."""

import pytest

from tests.real_data import FOLDER


def case_file(name):
    """Return a small table on which the program was wrong; skip the test where there is none."""
    file = FOLDER.parent / "cases" / name
    if not file.is_file():
        pytest.skip(f"no such case: {file} is not there (beside the folder of NORMBENCH_DATA)")
    return file


def data_folder():
    """Return the folder of the real data; skip the test where there is none."""
    if not FOLDER.is_dir():
        pytest.skip(f"no real data: {FOLDER} is not there (NORMBENCH_DATA names another)")
    return FOLDER
