"""Each golden command does what it did, or a person has read the difference and written it anew."""

import json
from pathlib import Path

import pytest

from tests.shell import golden
from tests.shell.differences import of_records
from tests.shell.record import empty_folder, play
from tests.shell.scenes import SCENES


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.commands] if scene.slow else [])
        for name, scene in SCENES.items()
    ],
)
def test_commands_do_what_they_did(name):
    with empty_folder() as folder:
        record = json.loads(json.dumps(play(name, Path(folder))))
    lines = list(of_records(golden.read(name), record))
    assert not lines, "\n".join(
        [f"{len(lines)} differences; write them anew by: python -m tests.shell {name}", *lines[:60]]
    )
