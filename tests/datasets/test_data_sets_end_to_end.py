"""Whole commands on data sets: what is recorded, and the numbers that are known."""

import pytest

import normbench
from normbench import names
from tests.datasets.places import case_file, data_folder


@pytest.fixture
def of_mnist(command, tmp_path):
    """Return a function that compares on MNIST's digits; return the only run of a role."""

    def run(role, *words):
        place = f"data_dir={data_folder()}"
        words = ("dataset=mnist", place, "cost=multiclass_softmax", "figures=[]", *words)
        done = command(*words, patience=400)  # 60 s on a free machine
        assert done.returncode == 0, done.stderr
        (row,) = normbench.load(folder=tmp_path / "outputs").sweep.of_role(role).to_dict("records")
        return row

    return run


@pytest.mark.slow
def test_mnist_has_the_numbers_that_are_known(of_mnist):
    words = ("normalizer=pca_sphere", "iterations=10", "step_sizes=[10]", "start=zeros")
    run = of_mnist(names.STEP, *words, "theory=none", "shadows=false")
    assert run["metrics.train/misclassifications"] == 250
    assert run["metrics.train/cost"] == pytest.approx(0.137108, abs=5e-7)  # 0.1371077


@pytest.mark.long
@pytest.mark.slow
def test_mnist_is_explained_by_the_curvature_along_the_way(of_mnist):
    """The best step lies 6 times above 2/L, and near the 2/L of the weights it leads to."""
    words = ("normalizer=identity", "step_sizes=[0.1]", "dataset.points=2500", "iterations=60")
    run = of_mnist(names.SCHEME, *words, "refine=false", "shadows=false")
    step, bound = float(run[names.STEP_TAG.column]), run[names.THRESHOLD.column]
    assert step > 5 * bound  # measured: 6.3
    there = run[names.THRESHOLD_BEST.column]
    assert there / 10 < step < 10 * there  # measured: 0.75 of it


def test_openml_gives_its_name_to_the_experiment():
    from normbench.command.config.compose import JobSpec

    choices = {"cost": "c", "dataset": "d"}
    names = [
        JobSpec({"dataset": dataset, "iterations": 1, "record": []}, choices).experiment
        for dataset in ({"name": "letter"}, {"id": 6, "name": None}, {"path": "x/my.csv"}, {})
    ]
    assert names == ["letter-c", "d_6-c", "my-c", "d-c"]


PRESSURES = "141 127 127 152 121 129 136 145 134 142 120 130 129 132 129 128 119 121 128 136"
AGES = "56 35 30 71 27 35 52 60 52 64 20 39 48 41 38 38 20 23 47 43"


@pytest.mark.commands
def test_whole_numbers_of_many_kinds_are_real_targets(command, tmp_path):
    rows = [f"{age},{pressure}" for age, pressure in zip(AGES.split(), PRESSURES.split())]
    (tmp_path / "my.csv").write_text("\n".join(["age,pressure", *rows]))
    done = command(
        *("dataset=csv", "dataset.path=my.csv", "dataset.target=pressure", "cost=least_squares"),
        *("normalizer=identity", "step_sizes=[0.0005]", "iterations=1000", "figures=[]"),
    )
    assert done.returncode == 0, done.stderr
    assert "target: real numbers, 119 to 152\n" in done.stdout
    # By plain gradient descent in numpy, from zero weights.
    assert " 954.623377 " in done.stdout
    assert "misclassified" not in done.stdout


@pytest.mark.commands
def test_whole_numbers_that_are_classes_for_least_squares_are_noted(command, tmp_path):
    rows = [f"{n % 7},{n % 3}" for n in range(21)]
    (tmp_path / "my.csv").write_text("\n".join(["a,b", *rows]))
    words = ("dataset=csv", "dataset.path=my.csv", "dataset.target=b", "iterations=2")
    words += ("normalizer=identity", "step_sizes=[0.1]", "figures=[]")
    note = "whole numbers of the target are taken for 3 classes; dataset.task=regression takes them"
    for _ in range(2):  # the second time they are reused
        done = command(*words, "cost=least_squares")
        assert done.returncode == 0, done.stderr
        assert note in done.stderr
        assert "target: 3 classes (0 7, 1 7, 2 7)\n" in done.stdout
    assert "whole numbers" not in command(*words, "cost=multiclass_softmax").stderr


@pytest.mark.commands
def test_labels_that_are_written_differently_are_noted_and_merged(command):
    words = ("dataset=csv", f"dataset.path={case_file('labels_written_differently.csv')}")
    words += ("dataset.target=Churn", "dataset.drop=[customerID]", "dataset.fill=median")
    words += ("normalizer=standard", "step_sizes=[10]", "figures=[]")
    done = command(*words, "cost=multiclass_softmax", "iterations=2")
    assert done.returncode == 0, done.stderr
    assert "4 classes (No 42, Yes 78, no 12, yes 28), some of which differ by" in done.stderr
    assert "target: 4 classes (No 42, Yes 78, no 12, yes 28)\n" in done.stdout
    done = command(*words, "dataset.merge_labels=true", "iterations=200")
    assert done.returncode == 0, done.stderr
    assert "differ by" not in done.stderr
    assert "target: 2 classes (No 54, Yes 106)\n" in done.stdout
    (row,) = (line.split() for line in done.stdout.splitlines() if line.startswith("standard  "))
    assert "0.178783" in row
    assert row[-1] == "14"  # misclassified
