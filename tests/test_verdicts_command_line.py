"""Verdicts, theory and comparisons as a sweep records and prints them."""

import pytest

import normbench
from tests import forks

pytestmark = pytest.mark.commands


def run(folder, *arguments):
    return forks.run([*arguments, "tracking=none"], folder)


def test_every_start_is_recorded_on_its_step(tmp_path):
    words = ("cost=least_squares", "normalizer=standard,pca_sphere", "step_sizes=[0.01,0.1]")
    done = run(tmp_path, *words, "start=normal", "starts=3", "iterations=15", "figures=[]")
    assert done.returncode == 0, done.stderr
    found = normbench.load(folder=tmp_path / "outputs").sweep
    steps = found.of_role("step")
    best = steps[steps["tags.best"] == "true"]
    assert len(best) == 2
    for row in best.to_dict("records"):
        assert set(found.series(row["run_id"], "start/final_cost")) == {0, 1, 2}
        assert len(row["tags.start_verdicts"].split(", ")) == 3
        predicted = found.series(row["run_id"], "theory/predicted_cost")
        measured = found.series(row["run_id"], "train/cost")
        # Measured: 3e-15.
        assert predicted == pytest.approx(measured, rel=1e-8)


def test_python_and_the_command_line_agree_on_the_verdicts(tmp_path):
    from sklearn.datasets import load_breast_cancer

    from normbench import compare

    done = run(tmp_path, "step_sizes=[0.001,1,100]", "iterations=60", "figures=[]")
    assert done.returncode == 0, done.stderr
    steps = normbench.load(folder=tmp_path / "outputs").sweep.of_role("step")
    logged = {(row.normalizer, row._asdict()["verdict"]) for row in steps.itertuples()}
    x, y = load_breast_cancer(return_X_y=True)
    frame = compare(x, y, step_sizes=[0.001, 1, 100], iterations=60)
    assert {(row.normalizer, row.verdict) for row in frame.itertuples()} == logged
    sizes = {
        (row["normalizer"], float(row["tags.step_size"])): row["verdict"]
        for row in steps.to_dict("records")
    }
    for (normalizer, size), part in frame.groupby(["normalizer", "step_size"]):
        assert set(part.verdict) == {sizes[normalizer, size]}
