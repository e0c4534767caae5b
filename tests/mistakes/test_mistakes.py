"""A mistake is one line and exit code 2, leaves nothing, runs nothing, and is told in seconds."""

import pytest

from tests.mistakes import files, programs, settings
from tests.mistakes.bench import ask

CASES = (*programs.CASES, *settings.CASES, *files.CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind[:60])
def test_a_mistake_is_one_line_and_leaves_nothing(case, tmp_path):
    assert ask(case, tmp_path).complaints(case.fragments) == []


@pytest.mark.slow
@pytest.mark.parametrize("case", files.SLOW, ids=lambda case: case.kind)
def test_what_takes_long_to_make_as_well(case, tmp_path):
    assert ask(case, tmp_path).complaints(case.fragments) == []


def test_there_are_many_each_once():
    assert len({case.kind for case in CASES}) == len(CASES) >= 120
