"""Steps, passes and updates over the size of a batch, and the sentence on them."""

import numpy as np
import pytest

from normbench import names
from normbench.results.answer import closing
from normbench.results.compare.batch_gains import batch_table
from normbench.results.figures import batch_sizes, drawing
from normbench.results.store.runs import Sweep
from tests.results.made import runs

SIZES = ("1", "10", "None")


def sweep(*passes, knee=11.0, sizes=SIZES):
    """A sweep of two schemes on 100 points: the second takes twice the passes."""
    jobs = [
        ("x", scheme, {1.0: (factor * count, 0.001)}, {"batch": size})
        for factor, scheme in ((1, "standard"), (2, "pca_sphere"))
        for count, size in zip(passes, sizes)
    ]
    frame = runs(*jobs).runs.assign(train_points=100)
    return Sweep("-", "s", frame.assign(**{names.KNEE.column: knee}))


@pytest.mark.parametrize("sizes", [("1", "10", "10"), ("1", "None", "None")])
def test_few_sizes_or_no_batch_say_nothing(sizes):
    assert closing.remarks(sweep(3, 30, 30, sizes=sizes), "x") == []
    assert drawing.figure(sweep(3, 30, 30, sizes=sizes), "x", "batch_sizes") is None
    full = sweep(3, sizes=("None",))
    assert batch_table(full.of_role("scheme")).empty
    assert drawing.figure(full, "x", "batch_sizes") is None


@pytest.mark.parametrize("knee", [11.0, np.nan])
def test_the_figure_marks_the_knee(knee):
    figure = drawing.figure(sweep(3, 4, 30, knee=knee), "x", "batch_sizes")
    figure.draw_without_rendering()
    assert [axis.get_ylabel() for axis in figure.axes] == [
        *(text for name, text in batch_sizes.BATCH_PANELS.items() if name != "stable")
    ]
    for axis in figure.axes:
        assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
        marked = [line for line in axis.get_lines() if line.get_label() == "_knee"]
        assert len(marked) == (0 if np.isnan(knee) else 2)
    note = figure.legends[0].get_title().get_text().replace("\n", " ")
    assert ("the knee of theory" in note) == (not np.isnan(knee))
    assert "upper bounds" not in note
    bounded = drawing.figure(sweep(1, 4, 30, knee=knee), "x", "batch_sizes")
    assert "upper bounds" in bounded.legends[0].get_title().get_text().replace("\n", " ")
    passes, updates = (axis.get_lines()[0].get_ydata() for axis in figure.axes)
    np.testing.assert_array_equal(updates / passes, [100, 10, 1])
