"""A database that is moved with its artifacts is read where it is now."""

import shutil

import numpy as np
import pytest

from normbench.results.errors import ResultsError
from normbench.results.runs import load


def test_artifacts_are_found_beside_a_database_that_was_moved(two, tmp_path_factory):
    before = load(two.uri, "a")
    arrays = before.arrays(before.of_role("scheme"), "descent")
    assert len(arrays) == 2
    new = shutil.copytree(two.folder, tmp_path_factory.mktemp("moved") / "new")
    shutil.rmtree(two.folder / "artifacts")
    after = load(f"sqlite:///{new}/mlflow.db", "a")
    found = after.arrays(after.of_role("scheme"), "descent")
    for label, parts in arrays.items():
        for key, part in parts.items():
            np.testing.assert_array_equal(found[label][key], part)
    shutil.move(new / "artifacts", new / "elsewhere")
    after = load(f"sqlite:///{new}/mlflow.db", "a")  # what was read once is kept
    with pytest.raises(ResultsError, match="move the folder of artifacts back there") as caught:
        after.arrays(after.of_role("scheme"), "descent")
    assert str(two.folder / "artifacts") in str(caught.value)
