"""A laboratory's comparison on MLflow's server with PostgreSQL, by commands alone: a transcript."""

import shlex

import pytest

from tests import stores
from tests.conftest import TRANSCRIPTS

pytestmark = pytest.mark.slow
SMALL = ("iterations=5", "step_sizes=[0.1]", "figures=[histories]")
TWO = "normalizer=standard,minmax"
COUNTED = "select count(*), (select count(*) from metrics) from runs where lifecycle_stage='active'"


@pytest.mark.long
def test_a_comparison_is_kept_on_a_server_and_taken_home(command, tmp_path):
    servers, lines = stores.Servers(), []

    def told(*words):
        done = command(*words, folder=tmp_path)
        output = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        lines.extend([f"$ normbench {shlex.join(words)}", *output])
        lines.extend([f"exit code {done.returncode}", ""])
        assert done.returncode == 0, done.stderr
        return done.stdout

    try:
        place = servers.own("laboratory")
        at, store = ("tracking=server", f"tracking.uri={place.uri}"), ("--store", place.uri)
        told(*SMALL, *at, "normalizer=standard")
        one = place.ask(COUNTED)[0]
        assert "reused 1 of 2" in told(*SMALL, *at, TWO)
        both = place.ask(COUNTED)[0]
        lines.append(f"runs and metrics on the server: {one}, then {both}")
        assert both[0] > one[0] == 1 + 1 * 2
        sweep = told("results", "list", *store).splitlines()[1].split()[0]
        told("results", "export", "--all", "sweeps.zip", *store)
        assert "2 jobs" in told("results", "import", "sweeps.zip")
        assert sweep in told("results", "list")
        told("results", "delete", sweep, "--yes", *store)
        assert sweep not in command("results", "list", *store, folder=tmp_path).stdout
    finally:
        servers.end()
        TRANSCRIPTS.mkdir(parents=True, exist_ok=True)
        (TRANSCRIPTS / "server.txt").write_text("\n".join([*lines, ""]))
