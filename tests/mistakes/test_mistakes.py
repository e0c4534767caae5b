"""A mistake is one line and exit code 2, leaves nothing, runs nothing, and is told in seconds."""

import pytest

from tests.mistakes import files, grids, programs, schemes, settings, stores
from tests.mistakes.bench import Case, ask, typed

CASES = (
    *programs.CASES,
    *schemes.CASES,
    *settings.CASES,
    *files.CASES,
    *stores.CASES,
    *grids.CASES,
)


@pytest.mark.commands
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind[:60])
def test_a_mistake_is_one_line_and_leaves_nothing(case, tmp_path):
    assert ask(case, tmp_path).complaints(case.fragments) == []


@pytest.fixture(scope="module")
def address():
    with stores.server() as found:
        yield found


@pytest.mark.parametrize("words", [("tracking.uri=",), ("results", "--store", "")], ids=str)
@pytest.mark.parametrize("answer", stores.ANSWERS)
@pytest.mark.slow
def test_a_server_that_is_none_of_mlflows_is_told_by_its_answer(answer, words, address, tmp_path):
    *others, last = words
    case = Case(answer, typed(*others, f"{last}{address}/{answer}"), (address,))
    assert ask(case, tmp_path).complaints([address, stores.ANSWERS[answer]]) == []


@pytest.mark.slow
@pytest.mark.parametrize("case", stores.SLOW, ids=lambda case: case.kind)
def test_what_takes_long_to_make_as_well(case, tmp_path):
    assert ask(case, tmp_path).complaints(case.fragments) == []


def test_there_are_many_each_once():
    assert len({case.kind for case in CASES}) == len(CASES) >= 140
