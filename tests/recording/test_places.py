"""Places of artifacts: tried before anything is recorded, and without credentials in their URI."""

from pathlib import Path

import pytest
from mlflow.store.artifact import artifact_repository_registry as registry

from normbench.datasets import UserError
from normbench.recording.store.connection import Store


class Kept:
    """A place of artifacts in memory; lost: what of it fails."""

    def __init__(self, lost=""):
        self.lost, self.files, self.calls = lost, {}, []

    def log_artifact(self, file):
        self.calls.append("write")
        if self.lost == "write":
            raise ModuleNotFoundError("No module named 'boto3'")
        self.files[Path(file).name] = b"x" if self.lost == "content" else Path(file).read_bytes()

    def download_artifacts(self, name, folder):
        self.calls.append("read")
        if self.lost == "read":
            raise OSError("forbidden")
        file = Path(folder) / name
        file.write_bytes(self.files[name])
        return str(file)

    def delete_artifacts(self):
        self.calls.append("delete")
        if self.lost == "delete":
            raise NotImplementedError
        self.files.clear()


@pytest.fixture
def opened(tmp_path, monkeypatch):
    def opening(place):
        monkeypatch.setattr(registry, "get_artifact_repository", lambda *told: place)
        return Store.at("sqlite:///mlflow.db", "s3://bucket/folder", tmp_path).client

    return opening


@pytest.mark.parametrize("lost", ["", "delete"])
def test_a_probe_is_written_read_and_deleted(lost, opened):
    place = Kept(lost)
    assert opened(place).search_experiments()
    assert place.calls == ["write", "read", "delete"]


@pytest.mark.parametrize(
    ("lost", "words"), [("write", "boto3"), ("read", "forbidden"), ("content", "is not what")]
)
def test_artifacts_that_go_nowhere_are_refused_before_anything_is_recorded(
    lost, words, opened, tmp_path
):
    place = Kept(lost)
    with pytest.raises(UserError, match=rf"artifacts=s3://bucket/folder: cannot be .*{words}"):
        opened(place)
    assert not list(tmp_path.glob("*.db"))
    assert not place.files or lost == "write"


@pytest.mark.parametrize(
    "uri",
    [
        "http://me:SECRETWORD@host/a",
        "sftp://me:SECRETWORD@host/a",
        "abfss://me:SECRETWORD@host/a",
    ],
)
def test_credentials_in_the_place_of_artifacts_are_refused(uri, tmp_path):
    with pytest.raises(UserError, match=r"^tracking\.artifacts=.*leave it out") as caught:
        Store.at("sqlite:///mlflow.db", uri, tmp_path)
    assert "SECRETWORD" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_container_is_no_credential(tmp_path):
    assert Store.at("sqlite:///mlflow.db", "abfss://box@host/a", tmp_path).artifacts


def test_artifacts_may_be_in_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", "/homes/ada")
    store = Store.at("sqlite:///mlflow.db", "~/kept", tmp_path)
    assert store.artifacts == "file:///homes/ada/kept"
    assert Store.at("sqlite:///mlflow.db", "kept", tmp_path).artifacts == f"file://{tmp_path}/kept"
