"""What is recorded is not computed again; what is cut off is made up for; what fails is told."""

import os
import re
import signal
import time
from itertools import takewhile

import numpy as np
import pytest

import normbench
from normbench.results.store.comparison_files import recorded
from normbench.results.store.job_records import JobRecord
from tests.faults import bench

pytestmark = pytest.mark.slow

STEP = "step_sizes=[1]"
BARE = "figures=[]"  # half of a small command's time is its figures and the report


def rows(text):
    """Return the scheme of each line of a printed table."""
    lines = text.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("scheme"))
    table = takewhile(
        lambda line: line and not line.startswith("excess cost: "), lines[first + 1 :]
    )
    return [line.split()[0] for line in table]


def jobs(folder):
    """Return the records of a folder, the first made first."""
    files = folder.glob("outputs/records/*.npz")
    return [JobRecord.load(file) for file in sorted(files, key=lambda file: file.stat().st_mtime)]


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
    latest = recorded(tmp_path / "outputs")[0]
    assert [job.reused for job in latest.jobs] == [False, True, False]
    drawn = (latest.folder / "histories.svg").read_text()
    assert all(scheme in drawn for scheme in rows(three.stdout))
    assert len(jobs(tmp_path)) == 3
    again = command(*words)
    assert "reused 3 of 3" in again.stdout
    assert rows(again.stdout) == rows(three.stdout)
    # Nothing to draw: it is the same comparison, and its folder has its figures.
    for done in (three, again):
        assert f"files      outputs/{latest.id}: report.html and " in done.stdout
    assert len(recorded(tmp_path / "outputs")) == 2
    (latest.folder / "histories.svg").unlink()
    command(*words)
    assert (latest.folder / "histories.svg").is_file()


def test_a_changed_setting_and_reuse_false_run_again(command, tmp_path):
    words = ("normalizer=standard", STEP, BARE)
    assert command(*words, "iterations=5").returncode == 0
    for more in (["iterations=6"], ["iterations=5", "reuse=false"], ["shadows=false"]):
        assert "reused" not in command(*words, *more).stdout
    twins = command("-m", *words, "iterations=7", "start=zeros", "seed=1,2")  # which draws nothing
    assert twins.returncode == 0, twins.stderr
    assert "reused 1 of 2" in twins.stdout


def test_a_job_is_taken_where_all_that_is_asked_is_recorded(command, tmp_path):
    words = ("normalizer=standard", STEP, BARE, "iterations=5", "start=zeros")
    assert command(*words, "record=[path]").returncode == 0
    # Less is asked, and the seed draws nothing: the start is zero and no point is held out.
    less = ("seed=3", "dataset.split_seed=4", "search.width=0.1")
    assert "reused 1 of 1" in command(*words, *less).stdout
    for more in ("record=[path,points]", "search.critical=true"):
        assert "reused" not in command(*words, more).stdout
    assert len(jobs(tmp_path)) == 3


def test_other_rules_judge_what_is_recorded_and_descend_for_what_is_not(command, tmp_path):
    words = ("normalizer=standard", "step_sizes=[0.1,1]", "iterations=20", BARE)
    assert command(*words, "record=[path]").returncode == 0
    loose = ("rules.variation=0.9", "rules.excess=0.9")
    for more in (loose, (*loose, "shown_step=0.1"), (*loose, "shown_step=0.1", "record=[path]")):
        done = command(*words, *more)
        assert done.returncode == 0, done.stderr
        assert "reused" not in done.stdout
    runs = [job.scheme for job in jobs(tmp_path)]
    seconds = [run.series["time/descent_seconds"][0] for run in runs]
    # Only the path of another step needs a descent.
    assert seconds[0] == seconds[1] == seconds[2] != seconds[3]
    assert [run.tags["verdict"] for run in runs] == ["not converged", *["converged"] * 3]
    lost = [run.tags.get("descend_again", "") for run in runs]
    assert lost[0] == lost[1] == lost[3] == ""
    assert "theory/lipschitz_best" in lost[2]
    again = command(*words, *loose, "shown_step=0.1")
    assert "reused 1 of 1" in again.stdout


def test_a_failed_job_is_run_again(command, tmp_path):
    (tmp_path / "mine.py").write_text(
        "def cost(scores, targets):\n    raise ValueError('broken')\n"
    )
    words = ("packages=[mine]", "cost._target_=mine.cost", "normalizer=standard", STEP, BARE)
    assert command(*words, "iterations=2").returncode in (1, 2)
    working = "import autograd.numpy as np\n\n\ndef cost(scores, targets):\n    "
    (tmp_path / "mine.py").write_text(f"{working}return np.sum(scores[:, 0] ** 2, axis=-1)\n")
    done = command(*words, "iterations=2")
    assert done.returncode == 0, done.stderr
    assert "reused" not in done.stdout


def test_a_mistake_leaves_a_folder_of_the_users_as_it_is(command, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").write_text("mine")
    failed = command("iterations=-3", "folder=mine")
    assert failed.returncode == 2
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["precious.txt"]
    words = ("normalizer=standard", STEP, BARE, "iterations=1")
    assert command(*words, "hydra.sweep.dir=mine").returncode == 0  # as it was called
    assert (tmp_path / "mine" / "precious.txt").read_text() == "mine"
    assert len(recorded(tmp_path / "mine")) == 1


def test_names_from_data_stay_in_their_folder(command, tmp_path):
    name = "../../%2e%2e%2fx y<b>&amp;$^{;z.csv"
    folder = tmp_path / "one" / "two"
    folder.mkdir(parents=True)
    text = "a/../b,$x^{,<i>,y\n" + "\n".join(
        f"{n % 5},{n},{n * n % 7},<{n % 2}/..$_{{>" for n in range(30)
    )
    (folder / name).resolve().write_text(text)
    before = {file for file in tmp_path.rglob("*") if not file.is_relative_to(folder)}
    words = ("dataset=csv", f'dataset.path="{name}"', "dataset.target=y", STEP)
    words += ("normalizer=standard,identity", "record=[points,spectrum]")
    done = command(*words, folder=folder)
    assert done.returncode == 0, done.stderr
    after = {file for file in tmp_path.rglob("*") if not file.is_relative_to(folder)}
    assert after == before
    assert {file.name for file in folder.iterdir()} <= {name, "outputs"}


def test_what_a_start_of_null_stands_for_is_recorded(command, tmp_path):
    drawn = ("cost=perceptron", "normalizer=standard,quantile", "iterations=5", STEP, BARE)
    first = command(*drawn)
    assert "make that function, so start=normal draws another" in first.stdout.replace("\n", " ")
    starts = {job.params["normalizer"]: job.params["start"] for job in jobs(tmp_path)}
    assert starts == {"standard": "same_function", "quantile": "normal"}


RUNNING_WORDS = ("model.normalize=batch", "model.statistics=running", "dataset.test_fraction=0.3")
PASSES = {
    "linear": ("batch=7",),
    # The running statistics of each run move with every batch.
    "network": (
        *("batch=7", "model=mlp", "model.hidden=[5,4]", "model.affine_step=0.1"),
        *RUNNING_WORDS,
    ),
}


@pytest.mark.parametrize("kind", PASSES)
def test_a_kill_in_the_middle_of_a_descent_loses_no_number(tmp_path, kind):
    words = ("normalizer=standard", "optimizer=momentum", "iterations=400", *PASSES[kind])
    words += ("step_sizes=[0.01,1,1e200]", "records_per_pass=3", "figures=[]")
    struck, whole = tmp_path / "struck", tmp_path / "whole"
    for folder in (struck, whole):
        folder.mkdir()
    started, patience = bench.start(struck, *words, "checkpoint=0.001"), time.monotonic() + 60
    while not list(struck.glob("outputs/checkpoints/*.npz")) and time.monotonic() < patience:
        time.sleep(0.02)
    os.killpg(started.process.pid, signal.SIGKILL)
    bench.end(started)
    assert not bench.recorded(struck)
    again = bench.run(struck, *words)
    assert again.code == 0, again.err
    assert re.search(r"goes on from iteration \d+ of 1200", again.err)
    assert bench.run(whole, *words).code == 0
    (after, before) = (next(iter(bench.descents(place).values())) for place in (struck, whole))
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)


OWN_MODEL = """
from dataclasses import dataclass

from normbench.models import Mlp


@dataclass(frozen=True)
class Own(Mlp):
    def forward(self, *arguments, **named):
        made = super().forward(*arguments, **named)
        return made._replace(scores=1.0 * made.scores)
"""


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
    assert len(jobs(tmp_path)) == 3


def test_a_comparison_that_is_loaded_is_the_one_that_was_printed(command, tmp_path):
    done = command("normalizer=standard,minmax", STEP, BARE, "iterations=5")
    loaded = normbench.load(folder=tmp_path / "outputs")
    assert loaded.sentence.split(".")[0] in done.stdout.replace("\n", " ")
    assert rows(done.stdout) == loaded.table["scheme"].tolist()
