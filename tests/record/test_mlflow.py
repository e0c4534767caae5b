"""The copy of a comparison in MLflow: all of it under its names, once, whatever was cut off."""

import base64
import json
import os
import random
import shutil
import signal
import sqlite3
import time
import zlib
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from filelock import FileLock

from normbench import names
from normbench.datasets.values import UserError
from normbench.record import mlflow as copying
from normbench.results.pages.views import VIEW
from normbench.results.store.comparison_files import LOCK, RUNNING, Comparison
from normbench.results.store.errors import ResultsError
from normbench.results.store.job_records import JobRecord
from tests.record.made import NAME, compare, key, record
from tests.servers.ports import free_port

MLFLOWS = {names.RUN_NAME.key, names.DESCRIPTION.key, names.COLOR.key, names.USER.key}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A database with MLflow's empty tables, which take two seconds."""
    file = tmp_path_factory.mktemp("tables") / "mlflow.db"
    copying.connect(f"sqlite:///{file}").search_experiments()
    return file


@pytest.fixture
def uri(tables, tmp_path, monkeypatch):
    """The URI of an empty store, in the working folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(tables, tmp_path / "mlflow.db")
    return f"sqlite:///{tmp_path}/mlflow.db"


def runs_of(uri, **tags):
    """Return the runs that have these tags."""
    client = copying.connect(uri)
    experiments = [entry.experiment_id for entry in client.search_experiments()]
    found_runs = copying.search(client, experiments, "attributes.status != 'SCHEDULED'")
    return [run for run in found_runs if tags.items() <= run.data.tags.items()]


def counts(uri):
    """Return how many runs there are of each role and status."""
    return Counter((run.data.tags["role"], run.info.status) for run in runs_of(uri))


def whole(schemes, steps=2, comparisons=1):
    """Return the counts of a whole copy."""
    return {
        ("sweep", "FINISHED"): comparisons,
        ("scheme", "FINISHED"): schemes,
        ("step", "FINISHED"): steps * schemes,
    }


def histories(client, run):
    """Return the points of a run's metrics, sorted."""
    return sorted(
        (metric, point.value, point.step)
        for metric in run.data.metrics
        for point in client.get_metric_history(run.info.run_id, metric)
    )


def test_everything_arrives_under_its_name(uri, tmp_path):
    home = tmp_path / "outputs"
    compare(home, "A", ["standard", "minmax", "broken"])
    record("minmax", points=1200).save(home / "records" / f"{key('minmax')}.npz")
    assert copying.copy(home, "A", uri) == ""
    client = copying.connect(uri)
    (sweep,) = runs_of(uri, role="sweep")
    assert sweep.info.run_name == "sweep A"
    assert sweep.info.status == "FINISHED"
    expected = {"command": "normbench x", "jobs": "3", "git_dirty": "true", "sweep_id": "A"}
    assert expected.items() <= sweep.data.tags.items()
    note = sweep.data.tags[names.DESCRIPTION.key]
    assert f"get-artifact?path=melt.png&run_uuid={sweep.info.run_id}" in note
    assert "`normbench x`" in note
    files = {entry.path for entry in client.list_artifacts(sweep.info.run_id)}
    assert files == {"comparison.json", "melt.png", "report.html"}
    experiment = client.get_experiment(sweep.info.experiment_id)
    assert experiment.name == NAME
    assert experiment.artifact_location == (tmp_path / "mlartifacts" / NAME).as_uri()
    assert experiment.tags[names.DESCRIPTION.key] == note
    for view, role in (("A", "scheme"), ("A-steps", "step")):
        packed = json.loads(experiment.tags[VIEW + view])["state"].removeprefix("deflate;")
        state = json.loads(zlib.decompress(base64.b64decode(packed)))
        shown = client.search_runs([experiment.experiment_id], state["searchFilter"])
        assert {run.info.run_id for run in shown} == {
            run.info.run_id for run in runs_of(uri, role=role)
        }
    for number, scheme in enumerate(("standard", "minmax", "broken")):
        written = JobRecord.load(home / "records" / f"{key(scheme)}.npz")
        (run,) = runs_of(uri, role="scheme", normalizer=scheme)
        place = {"sweep_id": "A", "job": f"A/{number}", "sweep.A": str(number)}
        above = {"mlflow.parentRunId": sweep.info.run_id, "role": "scheme", "key": key(scheme)}
        own = {**written.scheme.tags, **place, **above, "writer": run.data.tags["writer"]}
        assert {k: v for k, v in run.data.tags.items() if k not in MLFLOWS} == own
        assert run.info.run_name == scheme
        assert run.data.params == written.params
        assert histories(client, run) == sorted(written.scheme.metrics)
        (dataset,) = run.inputs.dataset_inputs
        assert {k: v for k, v in dict(dataset.dataset).items() if v} == written.dataset
        artifact = client.download_artifacts(run.info.run_id, f"{key(scheme)}.npz")
        assert Path(artifact).read_bytes() == (home / "records" / f"{key(scheme)}.npz").read_bytes()
        steps = runs_of(uri, **{"mlflow.parentRunId": run.info.run_id})
        assert [step.info.run_name for step in steps] == [s.name for s in written.steps[::-1]]
        for step, step_record in zip(steps[::-1], written.steps):
            assert histories(client, step) == sorted(step_record.metrics)
            assert (step_record.tags | {"role": "step"}).items() <= step.data.tags.items()
            assert "key" not in step.data.tags
            assert step.info.status == "FINISHED"
    assert run.info.status == "FAILED"
    traceback = client.download_artifacts(run.info.run_id, "traceback.txt")
    assert Path(traceback).read_text() == "Traceback: no reason"


def test_nothing_is_written_twice_and_a_reused_job_joins_another_comparison(uri, tmp_path):
    home = tmp_path / "outputs"
    compare(home, "A", ["standard", "minmax"])
    for _ in range(2):
        assert copying.copy(home, "A", uri) == ""
    assert counts(uri) == whole(2)
    (copied_run,) = runs_of(uri, role="scheme", normalizer="minmax")
    compare(home, "B", ["minmax", "robust"])
    assert copying.copy(home, "B", uri) == ""
    assert counts(uri) == whole(3, comparisons=2)
    (run,) = runs_of(uri, **{"sweep.B": "0", "role": "scheme"})
    assert run.info.run_id == copied_run.info.run_id
    assert run.data.tags["job"] == "A/1"
    assert len(runs_of(uri, **{"sweep.B": "0", "role": "step"})) == 2


def test_a_description_of_ones_own_stays(uri, tmp_path):
    compare(tmp_path / "outputs", "A", ["standard"])
    copying.copy(tmp_path / "outputs", "A", uri)
    client = copying.connect(uri)
    experiment = client.get_experiment_by_name(NAME).experiment_id
    client.set_experiment_tag(experiment, names.DESCRIPTION.key, "mine")
    copying.copy(tmp_path / "outputs", "A", uri)
    assert client.get_experiment(experiment).tags[names.DESCRIPTION.key] == "mine"


def test_large_comparisons_have_no_runs_of_step_sizes(uri, tmp_path, monkeypatch):
    compare(tmp_path / "outputs", "A", ["standard", "minmax"])
    monkeypatch.setattr(copying, "MAX_JOBS_WITH_STEPS", 1)
    copying.copy(tmp_path / "outputs", "A", uri)
    assert counts(uri)["step", "FINISHED"] == 0
    compare(tmp_path / "outputs", "B", ["robust", "maxabs"])
    copying.copy(tmp_path / "outputs", "B", uri, steps=True)
    assert counts(uri)["step", "FINISHED"] == 4


def test_what_was_cut_off_is_written_anew_and_a_failed_job_that_succeeds_later_too(uri, tmp_path):
    home = tmp_path / "outputs"
    compare(home, "A", ["standard", "broken"])
    copying.copy(home, "A", uri)
    client = copying.connect(uri)
    (run,) = runs_of(uri, role="scheme", normalizer="standard")
    client.update_run(run.info.run_id, "RUNNING")
    record("broken").save(home / "records" / f"{key('broken')}.npz")
    compare(home, "B", ["broken", "standard"], written=[])
    assert copying.copy(home, "B", uri) == ""
    assert counts(uri) == whole(2, comparisons=2)
    assert {run.info.run_id for run in runs_of(uri)}.isdisjoint({run.info.run_id})
    assert len(runs_of(uri, **{"sweep.A": "0", "sweep.B": "1", "role": "scheme"})) == 1
    assert len(runs_of(uri, **{"sweep.A": "1", "sweep.B": "0", "role": "scheme"})) == 1


def test_two_folders_write_to_one_store_and_neither_touches_the_other(uri, tmp_path):
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    compare(mine, "A", ["standard"])
    copying.copy(mine, "A", uri)
    (run,) = runs_of(uri, role="scheme")
    client = copying.connect(uri)
    client.update_run(run.info.run_id, "RUNNING")  # mine is at work
    compare(theirs, "B", ["standard"])
    assert copying.copy(theirs, "B", uri) == ""
    assert counts(uri)["scheme", "RUNNING"] == counts(uri)["scheme", "FINISHED"] == 1
    copying.copy(mine, "A", uri)
    assert counts(uri) == whole(2, comparisons=2)


def kill_and_copy_again(uri, tables, tmp_path, kills):
    """Kill copies of three jobs at random, then hold that the last one completes the store."""
    home = tmp_path / "outputs"
    schemes = ["standard", "minmax", "robust"]
    compare(home, "A", schemes)
    spare = tmp_path / "spare.db"
    shutil.copy(tables, spare)
    seconds = copy_in_fork(home, f"sqlite:///{spare}", patience=60)
    draw = random.Random(kills)
    for _ in range(kills):
        copy_in_fork(home, uri, patience=draw.uniform(0, seconds))
    copy_in_fork(home, uri, patience=60)
    assert counts(uri) == whole(3)
    client = copying.connect(uri)
    for scheme in schemes:
        written = JobRecord.load(home / "records" / f"{key(scheme)}.npz")
        (run,) = runs_of(uri, role="scheme", normalizer=scheme)
        assert histories(client, run) == sorted(written.scheme.metrics)
        artifact = client.download_artifacts(run.info.run_id, f"{key(scheme)}.npz")
        assert Path(artifact).read_bytes() == (home / "records" / f"{key(scheme)}.npz").read_bytes()


def copy_in_fork(home, uri, patience):
    """Copy in a process that is killed after so many seconds; return how long it took."""
    started = time.monotonic()
    process = os.fork()
    if process == 0:
        line = "an error"
        try:
            copying._prepare_sqlite([])
            line = copying.copy(home, "A", uri)
        finally:
            os._exit(1 if line else 0)
    while time.monotonic() - started < patience:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            assert os.waitstatus_to_exitcode(status) == 0
            return time.monotonic() - started
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return patience


def test_a_copy_that_is_killed_is_completed(uri, tables, tmp_path):
    kill_and_copy_again(uri, tables, tmp_path, kills=2)


@pytest.mark.slow
def test_a_copy_that_is_killed_again_and_again_is_completed(uri, tables, tmp_path):
    kill_and_copy_again(uri, tables, tmp_path, kills=12)


def test_a_store_that_is_away_is_one_line_and_the_next_comparison_completes_it(uri, tmp_path):
    home = tmp_path / "outputs"
    compare(home, "A", ["standard"])
    away = f"http://me:secret@127.0.0.1:{free_port()}"
    line = copying.copy(home, "A", away)
    assert line == (
        f"tracking.uri={away.replace('secret', '***')}: the copy in MLflow is not complete "
        "(connection refused); the records are safe, and the next command completes it"
    )
    with pytest.raises(UserError, match=r"tracking.uri=.*connection refused\).*tracking=none"):
        copying.check_store(away)
    copying.keep(Comparison.read(home / "A"), uri)  # as if the file had been away
    compare(home, "B", ["minmax"])
    assert copying.copy(home, "B", uri) == ""
    assert counts(uri) == whole(2, comparisons=2)


@pytest.mark.parametrize(
    ("store", "reason"),
    [
        ("mlflow.db", "is no URI"),
        (None, "is no URI"),
        ("sqlite:///no/folder/mlflow.db", "unable to open"),
        ("sqlite:///text.db", "is not a database"),
        ("sqlite:///.", "unable to open"),
        ("nothing://host/name", "nothing"),
    ],
)
def test_a_store_that_cannot_be_had_is_a_mistake(store, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("text.db").write_text("a text of more than sixteen letters")
    with pytest.raises(UserError, match=reason):
        copying.check_store(store)
    assert [file.name for file in tmp_path.iterdir()] == ["text.db"]


def test_a_database_of_a_newer_mlflow_is_one_line(uri, tmp_path):
    compare(tmp_path / "outputs", "A", ["standard"])
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection:
        connection.execute("update alembic_version set version_num = 'f4a9b2c7d1e6'")
        connection.commit()
    copying.check_store(uri)
    line = copying.copy(tmp_path / "outputs", "A", uri)
    assert "a newer MLflow has upgraded it than" in line
    assert "the records are safe" in line
    assert "\n" not in line


def test_a_comparison_is_fetched_as_it_was_and_nothing_is_replaced(uri, tmp_path):
    home, elsewhere = tmp_path / "outputs", tmp_path / "elsewhere"
    compare(home, "A", ["standard", "broken"])
    compare(home, "B", ["standard", "minmax"])
    for comparison_id in "AB":
        copying.copy(home, comparison_id, uri)
    assert copying.fetch(uri, elsewhere) == "B"
    assert copying.fetch(uri, elsewhere, "A") == "A"
    for file in (*home.glob("records/*.npz"), *home.glob("*/comparison.json")):
        assert (elsewhere / file.relative_to(home)).read_bytes() == file.read_bytes()
    assert {file.name for file in elsewhere.rglob("*") if file.is_file()} == {
        "comparison.json",
        *(f"{key(scheme)}.npz" for scheme in ("standard", "broken", "minmax")),
    }
    for ended, command in (("", "normbench x"), ("2999", "mine")):
        here = Comparison.read(elsewhere / "A")
        here.command, here.ended = "mine", ended
        here.write()
        copying.fetch(uri, elsewhere, "A")
        assert Comparison.read(elsewhere / "A").command == command  # the later one
    with pytest.raises(ResultsError, match="holds no comparison C; run normbench there first"):
        copying.fetch(uri, elsewhere, "C")
    (tmp_path / "mlartifacts").rename(tmp_path / "moved")
    with pytest.raises(
        ResultsError, match=r"--store .*npz cannot be read from file:.*its own machine"
    ):
        copying.fetch(uri, tmp_path / "third")


def test_a_comparison_that_was_killed_before_its_first_record_is_copied_as_killed(uri, tmp_path):
    compare(tmp_path / "outputs", "A", ["standard"], RUNNING, written=[])
    assert copying.copy(tmp_path / "outputs", "A", uri) == ""
    assert counts(uri) == {("sweep", "KILLED"): 1}


@pytest.mark.commands
def test_a_second_process_copies_jobs_as_they_are_done(uri, tmp_path):
    home = tmp_path / "outputs"
    compare(home, "A", ["standard", "minmax"], RUNNING, written=["standard"])
    with FileLock(home / "A" / LOCK):
        copy = copying.begin_copy(home, "A", uri)
        wait_for(uri, "scheme", "FINISHED")
        assert counts(uri)["sweep", "RUNNING"] == 1
        comparison = compare(home, "A", ["standard", "minmax"])
    assert copy.finish() == ""
    assert counts(uri) == whole(2)
    assert copying.begin_copy(home, "A", uri).process is None
    assert list(copying.copies(comparison)[uri]["pages"]) == [NAME]
    other = f"sqlite:///{tmp_path}/other.db"
    copying.publish(home, "A", other)
    assert not (tmp_path / "other.db-wal").exists()  # the file alone is whole
    (tmp_path / "other.db").unlink()
    assert copying.begin_copy(home, "A", other).finish() == ""
    assert counts(other) == whole(2)


@pytest.mark.commands
def test_a_copy_ends_with_the_command_that_was_killed(uri, tmp_path):
    home = tmp_path / "outputs"
    compare(home, "A", ["standard", "minmax"], RUNNING, written=["standard"])
    with FileLock(home / "A" / LOCK):
        copy = copying.begin_copy(home, "A", uri)
        wait_for(uri, "scheme", "FINISHED")
    assert copy.finish() == ""
    assert counts(uri)["sweep", "KILLED"] == counts(uri)["scheme", "FINISHED"] == 1
    with FileLock(home / "A" / LOCK):  # the same command again
        copy = copying.begin_copy(home, "A", uri)
        compare(home, "A", ["standard", "minmax"])
    assert copy.finish() == ""
    assert counts(uri) == whole(2)


def wait_for(uri, role, status):
    end = time.monotonic() + 300  # the copy gives way to all else
    while not counts(uri)[role, status]:
        assert time.monotonic() < end
        time.sleep(0.2)
