"""What is recorded is not computed again; what is cut off is made up for; what fails is told."""

import json
import re
from itertools import takewhile
from pathlib import Path

import pytest

from tests import stores
from tests.faults import bench, cases
from tests.faults.nights import content
from tests.test_command_line import of_role

pytestmark = pytest.mark.slow

NAME = "breast_cancer-softmax"
STEP = "step_sizes=[1]"
BARE = "figures=[]"  # half of a small command's time is its figures and the report
OF_COMMANDS = pytest.mark.sqlite("what the command does before it writes")


def client(folder):
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=stores.of(folder).uri)


def rows(text):
    """Return the scheme of each line of a printed table."""
    lines = text.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("scheme"))
    table = takewhile(
        lambda line: line and not line.startswith("excess cost: "), lines[first + 1 :]
    )
    return [line.split()[0] for line in table]


def sweeps(folder):
    """Return the sweep runs, the first made first."""
    return sorted(of_role(client(folder), NAME, "sweep"), key=lambda run: run.info.start_time)


def jobs_of(folder, sweep):
    file = client(folder).download_artifacts(sweep.info.run_id, "jobs.json", str(folder))
    return json.loads(Path(file).read_text())


def test_a_larger_sweep_reuses_the_smaller_and_lists_both(command, tmp_path):
    settings = ("iterations=5", STEP, "figures=[histories]")
    one = command("normalizer=standard", *settings)
    assert one.returncode == 0, one.stderr
    assert "reused" not in one.stdout
    words = ("normalizer=identity,standard,pca_sphere", *settings)
    three = command(*words)
    assert "reused 1 of 3" in three.stdout
    # In the order of the command, wherever a job comes from.
    assert rows(three.stdout) == ["identity", "standard", "pca_sphere"]
    drawn = next(
        tmp_path.glob(f"outputs/{sweeps(tmp_path)[1].data.tags['sweep_id']}/histories.svg")
    )
    for scheme in rows(three.stdout):
        assert scheme in drawn.read_text()
    jobs = jobs_of(tmp_path, sweeps(tmp_path)[1])
    assert [job["reused"] for job in jobs] == [False, True, False]
    known = {run.info.run_id for run in of_role(client(tmp_path), NAME, "scheme")}
    assert {job["run_id"] for job in jobs} == known
    assert len(known) == 3
    again = command(*words)
    assert "reused 3 of 3" in again.stdout
    assert rows(again.stdout) == rows(three.stdout)
    # Nothing to draw: the figures are those of before, and there is no other folder.
    figures = sorted(tmp_path.glob("outputs/*/histories.svg"))
    for done in (three, again):
        assert f"files      outputs/{figures[-1].parent.name}: report.html and " in done.stdout
    assert len(list(tmp_path.glob("outputs/[!.]*"))) == len(figures) == 2
    assert len(of_role(client(tmp_path), NAME, "scheme")) == 3


def test_a_changed_setting_and_reuse_false_run_again_and_a_twin_does_not(command, tmp_path):
    words = ("normalizer=standard", STEP, BARE)
    assert command(*words, "iterations=5").returncode == 0
    assert "reused" not in command(*words, "iterations=6").stdout
    assert "reused" not in command(*words, "iterations=5", "reuse=false").stdout
    assert len(of_role(client(tmp_path), NAME, "scheme")) == 3
    twins = command("-m", *words, "iterations=7", "seed=1,2")  # which draws nothing
    assert twins.returncode == 0, twins.stderr
    assert "reused 1 of 2" in twins.stdout
    assert len(of_role(client(tmp_path), NAME, "scheme")) == 4


def test_a_job_is_taken_where_all_that_is_asked_is_recorded(command, tmp_path):
    words = ("normalizer=standard", STEP, BARE, "iterations=5")
    assert command(*words, "record=[path]").returncode == 0
    # Less is asked, and the seed draws nothing: the start is zero and no point is held out.
    less = ("seed=3", "dataset.split_seed=4", "search.width=0.1")
    assert "reused 1 of 1" in command(*words, *less).stdout
    for more in ("record=[path,points]", "search.critical=true"):
        assert "reused" not in command(*words, more).stdout
    assert len(of_role(client(tmp_path), NAME, "scheme")) == 3


def test_other_rules_judge_what_is_recorded_and_descend_for_what_is_not(command, tmp_path):
    words = ("normalizer=standard", "step_sizes=[0.1,1]", "iterations=20", BARE)
    assert command(*words, "record=[path]").returncode == 0
    loose = ("rules.variation=0.9", "rules.excess=0.9")
    for more in (loose, (*loose, "shown_step=0.1"), (*loose, "shown_step=0.1", "record=[path]")):
        done = command(*words, *more)
        assert done.returncode == 0, done.stderr
        assert "reused" not in done.stdout
    runs = of_role(client(tmp_path), NAME, "scheme")
    runs = sorted(runs, key=lambda run: run.info.start_time)
    seconds = [run.data.metrics["time/descent_seconds"] for run in runs]
    # Only the path of another step needs a descent.
    assert seconds[0] == seconds[1] == seconds[2] != seconds[3]
    assert [run.data.tags["verdict"] for run in runs] == [
        "not converged",
        "converged",
        *["converged"] * 2,
    ]
    lost = [run.data.tags.get("descend_again", "") for run in runs]
    assert lost[0] == lost[1] == lost[3] == ""
    assert "theory/lipschitz_best" in lost[2]
    again = command(*words, *loose, "shown_step=0.1")
    assert "reused 1 of 1" in again.stdout


def test_a_failed_job_is_not_reused(command, tmp_path):
    row = cases.job_failing(tmp_path)
    assert row.complaints == []


def test_a_mistake_leaves_a_folder_of_the_users_as_it_is(command, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").write_text("mine")
    failed = command("iterations=-3", "hydra.sweep.dir=mine")
    assert failed.returncode == 2
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["precious.txt"]


@OF_COMMANDS
def test_files_beside_a_folder_of_the_users_stay_as_they_are(command, tmp_path):
    words = ("normalizer=standard", STEP, "iterations=1", "hydra.sweep.dir=mine")
    (tmp_path / "theirs" / "pending").mkdir(parents=True)
    for name in ("a.draft", "b.npz"):
        (tmp_path / "theirs" / "pending" / name).write_text("theirs")
    assert command(*words).returncode == 0
    found = {file.name for file in (tmp_path / "theirs").rglob("*")}
    assert found == {"pending", "a.draft", "b.npz"}


def test_a_password_in_a_word_that_hydra_cannot_read_is_not_told(command, tmp_path):
    done = command("tracking.uri=postgresql://me:s3#ret!@h/db")
    assert done.returncode == 2
    assert "s3#ret" not in done.stderr + done.stdout


def test_the_folder_of_a_sweep_may_be_used_again(command, tmp_path):
    words = ("normalizer=standard", STEP, BARE, "hydra.sweep.dir='outputs/a b;c'")
    assert command(*words, "iterations=5").returncode == 0
    second = command(*words, "iterations=6")
    assert second.returncode == 0, second.stderr
    ids = [run.data.tags["sweep_id"] for run in sweeps(tmp_path)]
    assert ids == ["a_b_c", "a_b_c.2"]


# A few of each kind; `make whole` goes through them all, for many minutes.
FAULTS = ("SIGINT, starting", "SIGKILL, amid writing")
OF_SERVERS = [
    pytest.param(name, marks=pytest.mark.server("a server that is away"))
    for name in ("server away for a while", "server silent")
]
OF_FILES = [
    pytest.param(name, marks=pytest.mark.sqlite(reason))
    for name, reason in {
        "cost leaving": "a failure before anything is written",
        "night, kills": "a checkpoint, a file of this machine",
    }.items()
]


@pytest.mark.parametrize("fault", [*FAULTS, *OF_SERVERS, *OF_FILES])
def test_a_fault_loses_nothing_and_doubles_nothing(tmp_path, fault):
    row = cases.FAULTS[fault](tmp_path)
    assert row.complaints == [], row


@pytest.mark.parametrize(("moment", "left"), [("amid writing", 0), ("before its end", 1)])
def test_a_job_cut_off_while_it_was_written_is_not_shown(command, tmp_path, moment, left):
    """In a file its runs are written at once, or not at all; then its artifacts, and it ends."""
    bench.struck(tmp_path, moment, "SIGKILL", *bench.JOBS)
    shown = command("results", "show")
    assert shown.returncode == 0, shown.stderr
    assert rows(shown.stdout) == ["identity"]
    begun = 1 if stores.of(tmp_path).server else left  # a server is told call by call
    assert len(of_role(client(tmp_path), NAME, "scheme")) == 1 + begun


def test_a_record_that_no_store_takes_is_set_aside(command, tmp_path):
    assert bench.struck(tmp_path, "before writing", "SIGKILL", *bench.JOBS).code == -9
    (file,) = tmp_path.glob("outputs/*/pending/*.npz")
    file.write_bytes(b"PK\x03\x04 broken off")
    again = bench.run(tmp_path, *bench.JOBS, BARE)
    assert again.code == 0, again.err
    assert "is set aside" in again.err
    assert "Traceback" not in again.err
    assert file.with_suffix(".refused").exists()
    assert bench.complaints(tmp_path, [again], 3) == []


@OF_COMMANDS
def test_names_from_data_stay_in_their_folder(command, tmp_path):
    name = "../../%2e%2e%2fx y<b>&amp;$^{;z.csv"
    folder = tmp_path / "one" / "two"
    folder.mkdir(parents=True)
    text = "a/../b,$x^{,<i>,y\n" + "\n".join(
        f"{n % 5},{n},{n * n % 7},<{n % 2}/..$_{{>" for n in range(30)
    )
    (folder / name).resolve().write_text(text)
    before = {file for file in tmp_path.rglob("*") if not file.is_relative_to(folder)}
    done = command(
        "dataset=csv",
        f'dataset.path="{name}"',
        "dataset.target=y",
        "normalizer=standard,identity",
        "record=[points,spectrum]",
        STEP,
        folder=folder,
    )
    assert done.returncode == 0, done.stderr
    after = {file for file in tmp_path.rglob("*") if not file.is_relative_to(folder)}
    assert after == before
    assert {file.name for file in folder.iterdir()} <= {name, "mlflow.db", "mlartifacts", "outputs"}
    assert len(list(stores.of(folder).kept.glob("*/*/artifacts"))) >= 3


def test_the_dashboard_is_this_machines_alone():
    from normbench.command.results.arguments import parse
    from normbench.results.pages import dashboard

    assert parse(["dashboard"]).host == dashboard.LOOPBACK_HOST == "127.0.0.1"


@OF_COMMANDS
def test_what_no_start_stands_for_is_recorded_and_reused(command, tmp_path):
    """So what was recorded with start=zeros is not descended again under the default."""
    words = ("normalizer=standard", "iterations=5", STEP, BARE)
    assert command(*words, "start=zeros").returncode == 0
    assert "reused 1 of 1" in command(*words).stdout
    drawn = ("cost=perceptron", "normalizer=standard,quantile", "iterations=5", STEP, BARE)
    first = command(*drawn)
    assert "make that function, so start=normal draws another" in first.stdout.replace("\n", " ")
    schemes = of_role(client(tmp_path), "breast_cancer-perceptron", "scheme")
    starts = {run.data.params["normalizer"]: run.data.params["start"] for run in schemes}
    assert starts == {"standard": "same_function", "quantile": "normal"}
    told = command("cost=perceptron", *words, "start=same_function", "seed=0,1").stdout
    assert "reused 1 of 2" in told


RUNNING_WORDS = ("model.normalize=batch", "model.statistics=running", "dataset.test_fraction=0.3")
PASSES = {
    "linear": ("amid a pass", ("batch=7",), ("100",)),
    # The running statistics of each run move with every batch.
    "network": (
        "amid a pass",
        ("batch=7", "model=mlp", "model.hidden=[5,4]", "model.affine_step=0.1", *RUNNING_WORDS),
        ("100",),
    ),
    "whitened network": (
        "amid a pass",
        ("batch=14", "model=mlp", "model.hidden=[4]", "model.normalize=zca", *RUNNING_WORDS[1:]),
        ("100",),
    ),
}


@pytest.mark.sqlite("a checkpoint, a file of this machine")
@pytest.mark.parametrize(
    "kind", ["linear", "network", pytest.param("whitened network", marks=pytest.mark.whole)]
)
def test_a_kill_in_the_middle_of_a_pass_of_batches_loses_no_number(tmp_path, kind):
    moment, own, calls = PASSES[kind]
    words = ("normalizer=standard", "optimizer=momentum", "iterations=6", *own)
    words += ("step_sizes=[0.01,1,1e200]", "records_per_pass=3", "figures=[]")
    struck, whole = tmp_path / "struck", tmp_path / "whole"
    for folder in (struck, whole):
        folder.mkdir()
    # A pass has 28 to 82 updates: the first kill is in the second or a later one.
    for call in calls:
        killed = bench.struck(struck, moment, "SIGKILL", *words, "checkpoint=0.001", CALL=call)
        assert killed.code == -9, killed.err
        assert not bench.recorded(struck)
    again = bench.run(struck, *words)
    assert again.code == 0, again.err
    assert re.search(r"goes on from iteration \d+ of 18", again.err)
    assert bench.run(whole, *words).code == 0
    assert content(struck, 1) == content(whole, 1)


OWN_MODEL = """
from dataclasses import dataclass

from normbench.models import Mlp


@dataclass(frozen=True)
class Own(Mlp):
    def forward(self, *arguments, **named):
        made = super().forward(*arguments, **named)
        return made._replace(scores=1.0 * made.scores)
"""


@OF_COMMANDS
def test_what_is_recorded_of_one_model_is_not_reused_for_a_new_one(command, tmp_path):
    words = ("packages=[mine]", "model=mlp", "model.hidden=[3]", "normalizer=standard", STEP, BARE)
    words = (*words, "iterations=3")
    (tmp_path / "mine.py").write_text(OWN_MODEL)
    assert "reused" not in command(*words).stdout
    own = (*words, "model._target_=mine.Own")
    added = command(*own)
    assert added.returncode == 0, added.stderr
    assert "reused" not in added.stdout
    (tmp_path / "mine.py").write_text(OWN_MODEL.replace("1.0", "2.0"))
    assert "reused" not in command(*own).stdout
    assert len(of_role(client(tmp_path), NAME, "scheme")) == 3
