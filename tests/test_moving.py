"""Sweeps from a laptop to MLflow's server and to another laptop, by commands: all goes on there."""

import pytest

from tests import stores
from tests.results.stores import everything
from tests.servers.mlflows import Server, serving

pytestmark = [pytest.mark.slow, pytest.mark.sqlite("a server of its own stands between two files")]
SMALL = ("iterations=5", "step_sizes=[0.1]", "figures=[histories]")


def shown(done):
    """What a command prints of a comparison, without where it is and how long it took."""
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("\nfiles ")[0]


@pytest.fixture
def server(tmp_path):
    """A server with a database and a folder of artifacts of its own."""
    (tmp_path / "server").mkdir()
    database = f"sqlite:///{tmp_path}/server/mlflow.db"
    with serving(Server(database, tmp_path / "server")) as found:
        yield found


@pytest.mark.long
def test_a_sweep_is_at_home_wherever_it_moves(command, server, tmp_path):
    first, second = stores.file(tmp_path / "first"), stores.file(tmp_path / "second")
    for store in (first, second):
        store.kept.parent.mkdir()

    def at(place, *words):
        return command(*words, folder=place.kept.parent)

    assert at(first, *SMALL, "normalizer=identity,standard").returncode == 0
    assert at(first, *SMALL, "normalizer=standard,minmax").returncode == 0  # took `standard` in
    before = shown(at(first, "results"))
    for step in (
        (first, "export", "--all", "../out.zip"),
        (first, "import", "../out.zip", "--store", server.uri),
        (first, "export", "--all", "../back.zip", "--store", server.uri),
        (second, "import", "../back.zip"),
        (second, "import", "../out.zip"),
    ):
        done = at(step[0], "results", *step[1:])
        assert done.returncode == 0, done.stderr
    assert "; 3 of 3 jobs were there" in done.stdout
    assert everything(second) == everything(first)
    between = stores.file(tmp_path / "server").ask
    assert between("select count(*) from runs")[0] == first.ask("select count(*) from runs")[0]
    listed = at(second, "results", "list").stdout
    assert listed == at(first, "results", "list").stdout
    sweep = listed.splitlines()[1].split()[0]
    assert shown(at(second, "results")) == before
    place = at(first, "results", "show", sweep, "--store", server.uri)
    assert shown(place) == before
    again = at(second, *SMALL, "normalizer=identity,standard,minmax")
    assert "reused 3 of 3" in again.stdout
