"""A database that is moved with its artifacts is read where it is now."""

import shutil
from urllib.parse import urlsplit

import numpy as np
import pytest

from normbench.command.results.commands import main
from normbench.datasets import UserError
from normbench.recording.store.connection import Store
from normbench.recording.store.writer import Writer
from normbench.results.pages import dashboard
from normbench.results.store import mlflows_own
from normbench.results.store.errors import ResultsError
from normbench.results.store.runs import load
from normbench.results.store.stores import connect

pytestmark = pytest.mark.sqlite("a database that is moved")


def test_artifacts_are_found_beside_a_database_that_was_moved(two, tmp_path_factory):
    before = load(two.uri, "a")
    arrays = before.arrays(before.of_role("scheme"), "descent")
    assert len(arrays) == 2
    new = shutil.copytree(two.folder, tmp_path_factory.mktemp("moved") / "new")
    shutil.rmtree(two.folder / "mlartifacts")
    after = load(f"sqlite:///{new}/mlflow.db", "a")
    found = after.arrays(after.of_role("scheme"), "descent")
    for label, parts in arrays.items():
        for key, part in parts.items():
            np.testing.assert_array_equal(found[label][key], part)
    shutil.move(new / "mlartifacts", new / "elsewhere")
    after = load(f"sqlite:///{new}/mlflow.db", "a")  # what was read once is kept
    with pytest.raises(ResultsError, match="move the folder of artifacts back there") as caught:
        after.arrays(after.of_role("scheme"), "descent")
    assert str(two.folder / "mlartifacts") in str(caught.value)


def places(writer, two):
    """The folders of artifacts that a store names: of its experiment, of a job and of a step."""
    job = two.runs["a", "StandardScaler"]
    step = next(
        run for run in writer.runs_of_sweep("a") if run.data.tags.get("mlflow.parentRunId") == job
    )
    experiment = writer.client.get_experiment(step.info.experiment_id)
    runs = (writer.run(job), step)
    return [
        urlsplit(place).path
        for place in (experiment.artifact_location, *(run.info.artifact_uri for run in runs))
    ]


def opened(folder):
    return Writer(Store.at("sqlite:///mlflow.db", "mlartifacts", folder))


@pytest.mark.parametrize("whole", [True, False], ids=["copied", "moved"])
def test_what_is_recorded_next_goes_beside_a_database_that_was_moved(two, tmp_path_factory, whole):
    mlflows_own.close_connections()
    new = tmp_path_factory.mktemp("an other") / "home"
    (shutil.copytree if whole else shutil.move)(two.folder, new)
    before = sorted(two.folder.rglob("*")) if whole else []
    writer = opened(new)
    (sweep,) = writer.sweep_runs("a").values()  # MLflow keeps the places of runs that it wrote to
    for place in places(writer, two):
        assert place.replace("%20", " ").startswith(f"{new}/")
    made = writer.start_sweep("two-softmax", "c", {})
    for run in (sweep, made):
        writer.log_json(run, [], "jobs.json")
    assert {file.parts[-3] for file in new.glob("mlartifacts/**/jobs.json")} == {sweep, made}
    assert (sorted(two.folder.rglob("*")) if whole else []) == before


def test_the_dashboard_finds_the_artifacts_of_a_copy(two, tmp_path_factory, monkeypatch):
    mlflows_own.close_connections()
    new = shutil.copytree(two.folder, tmp_path_factory.mktemp("moved") / "new")
    monkeypatch.setattr(dashboard, "serve", lambda *_: 0)
    uri = f"sqlite:///{new}/mlflow.db"
    assert main(["dashboard", "--store", uri]) == 0
    run = connect(uri).get_run(two.runs["a", "StandardScaler"])
    assert run.info.artifact_uri.startswith(new.as_uri())


def test_what_is_at_the_old_place_alone_is_left_there(two, tmp_path_factory):
    mlflows_own.close_connections()
    new = shutil.copytree(two.folder, tmp_path_factory.mktemp("moved") / "new")
    job = two.runs["a", "StandardScaler"]
    shutil.rmtree(new / "mlartifacts" / "two-softmax" / job)
    experiment, scheme, step = places(opened(new), two)
    assert experiment.startswith(str(new))
    assert scheme.startswith(str(two.folder))
    assert step.startswith(str(new))  # which has no artifacts anywhere


def test_a_store_that_never_moved_is_left_as_it_is(two):
    before = places(two.writer, two)
    assert all(place.startswith(str(two.folder)) for place in before)
    assert places(opened(two.folder), two) == before


def test_artifacts_that_were_left_where_nobody_can_write_are_told_of(two, tmp_path_factory):
    mlflows_own.close_connections()
    new = tmp_path_factory.mktemp("moved")
    shutil.move(two.folder / "mlflow.db", new)
    (two.folder / "mlartifacts").rename(two.folder / "left")
    (two.folder / "mlartifacts").write_text("no folder")
    with pytest.raises(UserError, match="move the folder mlartifacts, as it was, beside the data"):
        opened(new).start_sweep("two-softmax", "c", {})


def test_a_folder_of_another_database_is_not_taken_for_moved_artifacts(tmp_path):
    own, other = (str(tmp_path / name / "mlartifacts") for name in ("far", "home"))
    (tmp_path / "home").mkdir()
    for database, artifacts in (("mlflow.db", own), ("other.db", other)):
        writer = Writer(Store.at(f"sqlite:///{database}", artifacts, tmp_path / "home"))
        writer.log_json(writer.start_sweep("two-softmax", "a", {}), [], "jobs.json")
    writer = Writer(Store.at("sqlite:///mlflow.db", own, tmp_path / "home"))
    (experiment,) = writer.sweep_runs("a")
    assert writer.client.get_experiment(experiment).artifact_location == f"file://{own}/two-softmax"


def test_artifacts_in_a_cloud_never_were_beside_the_database(tmp_path):
    (tmp_path / "mlartifacts" / "digits").mkdir(parents=True)
    place, parts = "bucket/mlartifacts/digits", mlflows_own.OF_EXPERIMENT
    assert mlflows_own.moved_with_database(tmp_path / "mlflow.db", f"s3://{place}", parts) is None
    assert mlflows_own.moved_with_database(tmp_path / "mlflow.db", f"file:///{place}", parts)
