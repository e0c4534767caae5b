"""Each golden command does what it did, or a person has read the difference and written it anew."""

import json
from pathlib import Path

import pytest

from tests.shell import golden
from tests.shell.differences import of_records
from tests.shell.record import empty_folder, play
from tests.shell.scenes import SCENES


@pytest.mark.commands
@pytest.mark.parametrize("name", SCENES)
def test_commands_do_what_they_did(name):
    with empty_folder() as folder:
        record = json.loads(json.dumps(play(name, Path(folder))))
    lines = list(of_records(golden.read(name), record))
    assert not lines, "\n".join(
        [f"{len(lines)} differences; write them anew by: python -m tests.shell {name}", *lines[:60]]
    )


def test_a_difference_is_told_and_rounding_is_not():
    before = {
        "kernels": "a",
        "output": ["cost 0.5", "one word"],
        "arrays": {"x (2,)": [2.0, 9.0, 1.0]},
    }
    changes = [
        ("output", ["cost 0.7", "one word"], 2, 2),
        ("output", ["cost 0.5", "other word"], 2, 2),
        ("arrays", {"x (2,)": [2.0, 9.1, 1.0]}, 1, 0),
        ("arrays", {"x (2,)": [1.0, 9.0, 1.0]}, 1, 1),
        ("arrays", {}, 1, 1),
        ("arrays", {"x (2,)": [2.0, 9.0 + 1e-9, 1.0]}, 0, 0),
    ]
    for key, value, lines, with_other_kernels in changes:
        after = before | {key: value}
        assert len([*of_records(before, after)]) == lines, value
        assert len([*of_records(before, after | {"kernels": "b"})]) == with_other_kernels, value
