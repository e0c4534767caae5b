"""MLflow's own accounts: who has one records and reads, and the password is told nowhere."""

import pytest

from tests.servers.mlflows import Server, serving

pytestmark = pytest.mark.slow

USER, SECRET = "admin", "s3cret-W0rd-0f-m1ne"
QUICK = ("normalizer=standard", "step_sizes=[1]", "iterations=2", "figures=[histories]")
LETTERS = "of-a-server-on-this-machine"  # with which its pages are signed
# MLflow's own, but for the last: a password is compared with its hash, 50 ms, once and not at each
# of a sweep's requests.
SETTINGS = """[mlflow]
default_permission = READ
database_uri = sqlite:///basic_auth.db
admin_username = admin
authorization_function = mlflow.server.auth:authenticate_request_basic_auth
auth_cache_ttl_seconds = 600
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server that asks who is there."""
    folder = tmp_path_factory.mktemp("guarded")
    settings = folder / "basic_auth.ini"
    settings.write_text(SETTINGS)
    own = {
        "MLFLOW_AUTH_CONFIG_PATH": str(settings),
        "MLFLOW_AUTH_ADMIN_PASSWORD": SECRET,
        "MLFLOW_FLASK_SERVER_SECRET_KEY": LETTERS,
    }
    words = ("--app-name", "basic-auth")
    with serving(Server(f"sqlite:///{folder}/mlflow.db", folder, 1, own, words)) as server:
        yield server


def by_environment(folder, password):
    return {"MLFLOW_TRACKING_USERNAME": USER, "MLFLOW_TRACKING_PASSWORD": password}


def by_file(folder, password):
    place = folder / "home" / ".mlflow"
    place.mkdir(parents=True)
    lines = ("[mlflow]", f"mlflow_tracking_username = {USER}")
    (place / "credentials").write_text(
        "\n".join((*lines, f"mlflow_tracking_password = {password}"))
    )
    return {"HOME": str(place.parent)}


WAYS = (by_environment, by_file)


def told_nowhere(folder, secret, *commands):
    """Hold that a password is in no output, and in no file below a folder but MLflow's own."""
    for done in commands:
        assert secret not in done.stdout + done.stderr
    for file in folder.rglob("*"):
        own = file.name == "credentials"
        assert own or not file.is_file() or secret.encode() not in file.read_bytes(), file


def test_who_has_an_account_records_and_reads(command, tmp_path, guarded):
    words = (*QUICK, "tracking=server", f"tracking.uri={guarded.uri}", "record=[path]")
    by_password = by_environment(tmp_path, SECRET)
    done = command(*words, **by_password)
    assert done.returncode == 0, done.stderr
    by_credentials = by_file(tmp_path, SECRET)
    again = command(*words, **by_credentials)
    assert "reused 1 of 1" in again.stdout
    shown = command("results", "table", "--store", guarded.uri, **by_password)
    assert shown.returncode == 0, shown.stderr
    assert list(guarded.artifacts.rglob("*.npz"))
    told_nowhere(tmp_path, SECRET, done, again, shown)
    told_nowhere(guarded.folder, SECRET)


def test_an_address_with_the_password_does_not_tell_it(command, tmp_path, guarded):
    uri = f"http://{USER}:{SECRET}@127.0.0.1:{guarded.port}"
    done = command(*QUICK, "tracking=server", f"tracking.uri={uri}")
    shown = command("results", "--store", uri)
    assert [done.returncode, shown.returncode] == [0, 0], done.stderr + shown.stderr
    told_nowhere(tmp_path, SECRET, done, shown)


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_password_is_one_line_and_is_not_told(command, tmp_path, guarded, way):
    wrong = "another-W0rd-0f-m1ne"
    who = way(tmp_path, wrong)
    done = command(*QUICK, "tracking=server", f"tracking.uri={guarded.uri}", **who)
    read = command("results", "--store", guarded.uri, **who)
    for ended in (done, read):
        line = ended.stderr.splitlines()[-1]
        assert "401" in line
        assert "MLFLOW_TRACKING_USERNAME" in line
    # MLflow alone reads its file of credentials: the copy fails then, and the answer is there.
    assert (done.returncode, read.returncode) == (2 if way is by_environment else 1, 2)
    assert (tmp_path / "outputs").exists() == (way is by_file)
    told_nowhere(tmp_path, wrong, done, read)
    told_nowhere(guarded.folder, wrong)
