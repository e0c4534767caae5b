"""A SQLite store without MLflow: what is read and written is what MLflow reads and writes."""

import gc
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from mlflow import MlflowClient

from normbench import names
from normbench.datasets import UserError
from normbench.recording.store import connection, database
from normbench.recording.store.connection import RetryingClient, Store, StoreLostError
from normbench.recording.store.writer import Writer
from normbench.results.store import mlflows_own, stores
from normbench.results.store.database import HISTORY_QUERY, Database, _terms
from normbench.results.store.entities import Metric, Param
from normbench.results.store.errors import RefusedError
from normbench.results.store.job_records import JobRecord, RunRecord
from tests.conftest import ROOT

pytestmark = [pytest.mark.sqlite("of the file itself"), pytest.mark.commands]
NAN, INF = float("nan"), float("inf")
TABLES = {  # without the ids of runs and the times
    "runs": "name, source_type, source_name, entry_point_name, user_id, status, source_version, "
    "lifecycle_stage, experiment_id, deleted_time, end_time is null",
    "tags": "key, case when key = 'mlflow.parentRunId' then '' else value end",
    "params": "key, value",
    "metrics": "key, value, step, is_nan",
    "latest_metrics": "key, value, step, is_nan",
    "datasets": "experiment_id, name, digest, dataset_source_type, dataset_source, "
    "dataset_schema, dataset_profile",
    "inputs": "source_type, destination_type, step",
    "input_tags": "name, value",
    "experiments": "name, lifecycle_stage, workspace",
    "experiment_tags": "key, value, experiment_id",
}


def record(parent):
    """Return a job with more parameters, tags and points than MLflow takes in one call."""
    data = {"name": "d", "digest": "1", "source_type": "t", "source": "{}", "profile": "{}"}
    history = [("train/cost", 1.0 / (k + 1), k) for k in range(2001)]
    many_tags = {f"t{number}": str(number) for number in range(250)}
    odd = [("a", NAN, 0), ("b", INF, 0), ("c", -INF, 1), ("c", 2.0, 1), ("c", 2.0, 1)]
    return JobRecord(
        "-",
        "d-c",
        parent,
        {f"p{number}": str(number) for number in range(250)} | {"long": "x" * 7000},
        RunRecord(
            "scheme", {names.NORMALIZER.key: "standard", "long": "y" * 9000, **many_tags}, history
        ),
        [RunRecord("step", {"verdict": "converged"}, [*history, *odd]), RunRecord("bare", {})],
        data,
        {"spectrum": {"values": [1.0, 2.0]}},
    )


def written(folder, mlflows):
    """Return a writer to a new store, and the run of a job; mlflows: by MLflow's client."""
    folder.mkdir()
    store = Store.at("sqlite:///mlflow.db", "artifacts", folder)
    if mlflows:
        patient = RetryingClient(mlflows_own.make_client(store.uri), store.uri)
        assert store.client
        store.__dict__["client"] = patient
    writer = Writer(store)
    parent = writer.start_sweep("d-c", "s", {"command": "-"})
    scheme = writer.write(record(parent))
    writer.tag(scheme, {"verdict": "converged", names.RUN_NAME.key: "renamed"})
    writer.tag(scheme, {"verdict": "cycling"})
    writer.tag_experiment("d-c", {"note": "1", "too long": "z" * 20_001, "long": "z" * 20_000})
    writer.tag_experiment("d-c", {"note": "2"})
    writer.client.create_experiment("e" * 250, "file:///elsewhere")
    writer.untag(scheme, ["verdict"])
    writer.log_json(parent, [{"a": 1}], "jobs.json")
    writer.finish(parent)
    return writer, scheme


def rows(file):
    """Return what each table holds."""
    with closing(sqlite3.connect(file)) as connection:
        return {
            table: sorted(map(repr, connection.execute(f"select {columns} from {table}")))
            for table, columns in TABLES.items()
        }


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both")
    mine = written(folder / "mine", mlflows=False)
    return mine, written(folder / "theirs", mlflows=True)


def test_what_is_written_is_what_mlflow_writes(both):
    (mine, _), (theirs, _) = both
    assert mine.client.has_transactions
    assert not theirs.client.has_transactions
    found = rows(mine.store.database)
    for table, entries in rows(theirs.store.database).items():
        assert found[table] == entries, table
    assert len(found["params"]) == 251
    assert len(found["metrics"]) > 2 * 2000
    assert len(found["tags"]) > 250
    artifacts = [
        sorted(
            file.relative_to(writer.store.database.parent).parts[3:]
            for file in writer.store.database.parent.joinpath("artifacts").rglob("*")
            if file.is_file()
        )
        for writer in (mine, theirs)
    ]
    assert artifacts[0] == artifacts[1]
    assert len(artifacts[0]) == 2


def plain(run):
    """Return all that is asked of a run."""
    inputs = [
        (dict(one.dataset), {tag.key: tag.value for tag in one.tags})
        for one in run.inputs.dataset_inputs
    ]
    info = {key: getattr(run.info, key) for key in database_columns()}
    metrics = {key: repr(value) for key, value in run.data.metrics.items()}
    last = {key: repr(point) for key, point in mlflows_own.last_points(run).items()}
    return info, dict(run.data.tags), dict(run.data.params), metrics, last, inputs


def database_columns():
    from normbench.results.store.entities import RunInfo

    return RunInfo._fields


@pytest.mark.parametrize(
    "query",
    [
        "",
        names.ROLE.equals(names.SCHEME),
        names.SWEEP_ID.exists,
        f"{names.ROLE.equals(names.STEP)} and attributes.status != 'RUNNING'",
        names.PARENT.equals("none"),
        "params.p1 = '1'",  # which is MLflow's to read
    ],
)
def test_a_query_finds_the_same_runs_in_the_same_order(both, query):
    for writer, _ in both:
        client = Database(writer.store.database, writer.store.uri)
        theirs = MlflowClient(tracking_uri=writer.store.uri)
        found, known = (one.search_runs(["0", "1"], query) for one in (client, theirs))
        assert list(map(plain, found)) == list(map(plain, known))


def test_pages_of_runs_are_those_of_mlflow(both):
    writer, _ = both[0]
    client, token, found = Database(writer.store.database, writer.store.uri), None, []
    for size in (1, 2, 9):
        page = client.search_runs(["1"], "", max_results=size, page_token=token)
        found, token = [*found, *page], page.token
    assert token is None
    assert [run.info.run_id for run in found] == [
        run.info.run_id for run in MlflowClient(writer.store.uri).search_runs(["1"])
    ]


def test_a_history_is_found_by_its_run_and_not_among_those_of_all_runs(both):
    for writer, _ in both:
        with closing(sqlite3.connect(writer.store.database)) as file:
            (step,) = file.execute(f"explain query plan {HISTORY_QUERY}", ["a", "b"]).fetchall()[:1]
        assert step[-1].endswith("(run_uuid=?)")


def test_histories_experiments_and_artifacts_are_those_of_mlflow(both):
    for writer, scheme in both:
        client = Database(writer.store.database, writer.store.uri)
        theirs = MlflowClient(tracking_uri=writer.store.uri)
        step = next(run for run in theirs.search_runs(["1"]) if run.info.run_name == "step")
        for key in ("train/cost", "a", "b", "c", "none"):
            found, known = (
                [repr((p.step, p.value, p.timestamp)) for p in one]
                for one in (
                    client.get_metric_history(step.info.run_id, key),
                    theirs.get_metric_history(step.info.run_id, key),
                )
            )
            assert found == known
        (point, *_) = theirs.get_metric_history(step.info.run_id, "a")
        assert abs(point.timestamp / 1000 - time.time()) < 3600
        for mine, known in zip(client.search_experiments(), theirs.search_experiments()):
            assert mine.name == known.name
            assert mine.artifact_location == known.artifact_location
            assert mine.tags == known.tags
        name = "arrays/spectrum.npz"
        (entry,) = client.list_artifacts(scheme, "arrays")
        assert entry.path == name
        assert [one.path for one in theirs.list_artifacts(scheme, "arrays")] == [name]
        files = [Path(one.download_artifacts(scheme, name)) for one in (client, theirs)]
        assert files[0].read_bytes() == files[1].read_bytes()
        for outside in ("../x", "/etc/passwd", "arrays/../../x", "arrays/none"):
            with pytest.raises(OSError, match="No such artifact"):
                client.download_artifacts(scheme, outside)


def test_what_mlflow_refuses_is_refused_and_leaves_nothing(both):
    writer, scheme = both[0]
    client, before = writer.client, rows(writer.store.database)
    for call in (
        lambda: client.log_batch(scheme, params=[Param("p1", "another")]),
        lambda: client.log_batch(scheme, tags=[Param("new", "1"), Param("a?", "1")]),
        lambda: client.log_batch(scheme, metrics=[Metric("../m", 1.0, 1, 1)]),
        lambda: client.log_batch("none", tags=[Param("a", "1")]),
        lambda: client.delete_tag(scheme, "none"),
        lambda: client.create_experiment("d-c", "file:///elsewhere"),
        lambda: client.create_run("99", None, {}, "run"),
        lambda: client.get_run("none"),
    ):
        with pytest.raises(RefusedError):
            call()
    assert rows(writer.store.database) == before


def test_a_job_that_is_cut_off_leaves_no_run(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    writer = Writer(Store.at("sqlite:///mlflow.db", "artifacts", tmp_path / "a"))
    parent = writer.start_sweep("d-c", "s", {})
    before = rows(writer.store.database)
    calls = []

    def cut(self, run_id, *rest):
        calls.append(run_id)
        raise KeyboardInterrupt

    monkeypatch.setattr(database.WritableDatabase, "set_terminated", cut)
    with pytest.raises(KeyboardInterrupt):
        writer.write(record(parent))
    assert len(calls) == 1
    assert rows(writer.store.database) == before


def test_a_transaction_that_is_cut_off_as_it_begins_is_rolled_back(both, monkeypatch):
    class Interrupted:
        """A connection on which Ctrl-C arrives as a transaction begins."""

        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def execute(self, words):
            self.inner.execute(words)
            if words.startswith("begin"):
                raise KeyboardInterrupt

    writer, _ = both[0]
    known = Database(writer.store.database, f"sqlite:///{writer.store.database}")
    inner = known._connection
    monkeypatch.setattr(known, "_connection", Interrupted(inner))
    with pytest.raises(KeyboardInterrupt), known._snapshot():
        pass
    assert not inner.in_transaction


@pytest.mark.parametrize(
    ("revision", "words"),
    [
        ("f4a9b2c7d1e6", "a newer MLflow has upgraded it"),  # of MLflow 3.18
        ("451aebb31d03", "run 'mlflow db upgrade"),  # MLflow's own words on its first one
    ],
)
def test_a_file_of_another_schema_is_mlflows(both, tmp_path, revision, words):
    writer, _ = both[0]
    other = tmp_path / "mlflow.db"
    with (
        closing(sqlite3.connect(writer.store.database)) as source,
        closing(sqlite3.connect(other)) as copied,
    ):
        source.backup(copied)
        copied.execute("update alembic_version set version_num = ?", [revision])
        copied.commit()
    with pytest.raises(sqlite3.DatabaseError, match="another version"):
        Database(other, f"sqlite:///{other}")
    with pytest.raises(stores.ResultsError, match=words):
        stores.connect(f"sqlite:///{other}")
    with pytest.raises(
        UserError, match=f"cannot be opened .*{words}.*; give a URI .*tracking.uri="
    ):
        _ = Store(f"sqlite:///{other}", None).client


def test_what_nobody_reads_any_more_is_closed_without_garbage_collection(both, monkeypatch):
    """Else the last connection of a command would not be the last, and the log would stay."""
    writer, _ = both[0]
    closed = []
    monkeypatch.setattr("normbench.results.store.database.sqlite3", Watched(closed))
    gc.disable()
    try:
        client = Database(writer.store.database, writer.store.uri)
        assert client.search_experiments()
        del client
        assert closed == ["closed"]
    finally:
        gc.enable()


class Watched:
    """The module sqlite3, whose connections say that they are closed."""

    def __init__(self, closed):
        class Connection(sqlite3.Connection):
            def close(self):
                closed.append("closed")
                super().close()

        self.Error, self.DatabaseError = sqlite3.Error, sqlite3.DatabaseError
        self.connect = lambda *given, **more: sqlite3.connect(*given, **more, factory=Connection)


def test_a_locked_file_is_waited_for_as_long_as_the_store_says(tmp_path):
    store = Store.at("sqlite:///mlflow.db?timeout=0.05", "artifacts", tmp_path)
    client = store.client
    client._seconds = 0.1
    with closing(sqlite3.connect(store.database)) as other:
        other.execute("begin immediate")
        with pytest.raises(StoreLostError, match="locked"):
            client.set_experiment_tag("0", "a", "1")


@pytest.mark.parametrize(
    "query",
    [
        "params.dataset = 'digits'",
        "tags.a = 'x' or tags.b = 'y'",
        'tags.a = "x"',
        "tags.a LIKE 'x%'",
        "attributes.run_name = 'x'",
        "attributes.status LIKE '%'",
        "tags.a = 'x'  and tags.b = 'y'",
        "metrics.`train/cost` < 1",
    ],
)
def test_a_filter_of_the_users_own_is_mlflows(query):
    assert _terms(query) is None


def test_a_filter_of_this_project_is_read():
    query = f"{names.PARENT.equals('a b and c')} and {names.membership('s.1').exists}"
    assert _terms(query) == [
        ("tags", names.PARENT.key, "=", "a b and c"),
        ("tags", names.membership("s.1").key, "LIKE", "%"),
    ]


def test_a_state_is_asked_for_by_equality_alone():
    terms = [("attributes", "status", "=", "RUNNING"), ("attributes", "status", "!=", "KILLED")]
    assert _terms("attributes.status = 'RUNNING' and attributes.status != 'KILLED'") == terms
    assert _terms("") == []


@pytest.mark.parametrize("at_rest", [True, False])
def test_a_file_that_cannot_be_written_is_read_at_rest(at_rest, tmp_path, with_store, monkeypatch):
    file = tmp_path / "mlflow.db"
    writer = Writer(Store.at(f"sqlite:///{file}", None, tmp_path))
    sweep = writer.start_sweep("a", "s", {"command": "-"})
    if at_rest:
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert (Path(f"{file}-wal").stat().st_size == 0) == at_rest
    before = sorted(path.name for path in tmp_path.glob("mlflow.db*"))
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and access(path, mode))
    reader = Database(file, f"sqlite:///{file}")
    assert reader.get_run(sweep).data.tags["sweep_id"] == "s"
    assert sorted(path.name for path in tmp_path.glob("mlflow.db*")) == before  # nothing is made
    reader.close()


def test_a_store_is_waited_for_as_long_as_the_guide_says():
    guide = " ".join((ROOT / "CONTRIBUTING.md").read_text().split())
    assert f"A server that is away for more than {connection.PATIENCE:.0f} s takes no more" in guide
