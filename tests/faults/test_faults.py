"""Every fault, and a hundred kills at random moments: nothing lost, doubled or changed."""

import pytest

from tests import stores
from tests.faults import cases
from tests.faults.random_kills import HUNDRED, ON_A_SERVER

pytestmark = [pytest.mark.slow, pytest.mark.whole]
FAULTS = {**cases.FAULTS, **HUNDRED}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_loses_and_doubles_and_changes_nothing(kind, tmp_path):
    try:
        row = FAULTS[kind](tmp_path)
    except PermissionError as error:
        pytest.skip(str(error))
    assert row.complaints == []


@pytest.mark.parametrize("kind", ON_A_SERVER)
def test_kills_with_a_server_lose_and_double_and_change_nothing(kind, tmp_path):
    with stores.on_a_server():
        assert ON_A_SERVER[kind](tmp_path).complaints == []
