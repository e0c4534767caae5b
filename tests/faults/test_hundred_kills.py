"""A hundred kills at random moments: nothing lost, nothing doubled, no number another."""

import pytest

from tests.faults.random_kills import HUNDRED


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize("kind", HUNDRED)
def test_a_hundred_kills_lose_and_double_and_change_nothing(kind, tmp_path):
    assert HUNDRED[kind](tmp_path).complaints == []
