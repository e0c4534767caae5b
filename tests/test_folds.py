"""Statistics of all points, as a user sees them."""

import pytest

import normbench
from normbench import names

pytestmark = pytest.mark.commands

WINE = ("dataset=wine", "cost=multiclass_softmax", "step_sizes=[0.1,1]", "iterations=9")


def test_statistics_of_all_points_are_said_wherever_they_show(command, tmp_path):
    words = ("normalizer=standard", "dataset.test_fraction=0.5", "figures=[histories]")
    done = command(*WINE, *words, "dataset.fit_on=train,all")
    assert done.returncode == 0, done.stderr
    assert "standard (fitted on all)" in done.stdout
    (figure,) = tmp_path.glob("outputs/*/histories.svg")
    assert "fitted on the test points too" in figure.read_text()
    (page,) = tmp_path.glob("outputs/*/report.html")
    assert "standard (fitted on all)" in page.read_text()
    labels = normbench.load(folder=tmp_path / "outputs").sweep.of_role(names.SCHEME)["label"]
    assert list(labels) == ["standard", "standard (fitted on all)"]


def test_a_mistake_is_one_line(command, tmp_path):
    done = command(*WINE, "dataset.fit_on=all")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "dataset.fit_on=all: wine has no test points" in line
    assert not list(tmp_path.rglob("*.db"))
