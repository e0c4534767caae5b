"""A hundred kills at random moments: nothing lost, nothing doubled, no number another."""

import pytest

from tests import stores
from tests.faults import results_kills
from tests.faults.random_kills import HUNDRED, ON_A_SERVER

pytestmark = [pytest.mark.slow, pytest.mark.whole]


@pytest.mark.parametrize("kind", HUNDRED)
def test_kills_lose_and_double_and_change_nothing(kind, tmp_path):
    assert HUNDRED[kind](tmp_path).complaints == []


@pytest.mark.parametrize("kind", ON_A_SERVER)
def test_kills_with_a_server_lose_and_double_and_change_nothing(kind, tmp_path):
    with stores.on_a_server():
        assert ON_A_SERVER[kind](tmp_path).complaints == []


@pytest.mark.parametrize("kind", results_kills.FAULTS)
def test_a_killed_command_on_results_is_completed_by_the_same_command(kind, tmp_path):
    assert results_kills.FAULTS[kind](tmp_path).complaints == []
