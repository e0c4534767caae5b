"""Copies of two folders on MLflow's server with PostgreSQL: whole, once, and read from there."""

import time

import psycopg
import pytest

from normbench.record import mlflow as copying
from normbench.results.store.comparison_files import Comparison
from tests.record.made import NAME, compare
from tests.servers.mlflows import Server, serving
from tests.servers.postgres import postgres

pytestmark = pytest.mark.slow
SCHEMES = ["standard", "minmax", "robust"]


@pytest.mark.long
def test_two_folders_copy_to_a_server_that_is_killed_meanwhile(tmp_path):
    homes = [tmp_path / "mine", tmp_path / "theirs"]
    with postgres() as base, serving(Server(base.create("mlflow"), tmp_path)) as server:
        for home, comparison_id in zip(homes, "AB"):
            compare(home, comparison_id, SCHEMES)
        copies = [copying.begin_copy(home, c, server.uri) for home, c in zip(homes, "AB")]
        end = time.monotonic() + 600  # the copy gives way to all else
        while not _rows(base, "status = 'FINISHED'"):
            assert time.monotonic() < end
            time.sleep(0.05)
        server.kill()
        lines = [copy.finish() for copy in copies]
        assert all("the next command completes it" in line for line in lines)
        server.begin()
        for home, comparison_id in zip(homes, "AB"):
            copying.publish(home, comparison_id, server.uri)
            assert copying.copies(Comparison.read(home / comparison_id))[server.uri]["jobs"]
        # The run of each comparison, and of each of its schemes with its two step sizes.
        active = "lifecycle_stage = 'active'"
        assert len(_rows(base, active)) == len(_rows(base, f"{active} and status = 'FINISHED'"))
        assert len(_rows(base, active)) == 2 * (1 + len(SCHEMES) * 3)
        elsewhere = tmp_path / "elsewhere"
        assert copying.fetch(server.uri, elsewhere, "A") == "A"
        for file in homes[0].glob("records/*.npz"):
            assert (elsewhere / "records" / file.name).read_bytes() == file.read_bytes()
        client = copying.connect(server.uri)
        assert client.get_experiment_by_name(NAME).artifact_location.startswith("mlflow-artifacts:")


def _rows(base, where):
    try:
        return base.ask("mlflow", f"select run_uuid from runs where {where}")
    except psycopg.errors.UndefinedTable:  # the server makes them
        return []
