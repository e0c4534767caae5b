"""The parts of a data set: what is held out, and what has no targets."""

import numpy as np
import pytest

from normbench.datasets import UserError, make_dataset, split

X = np.arange(6.0).reshape(3, 2)


def test_a_split_leaves_two_training_points_at_least():
    data = make_dataset("few", X, [0.0, 1.0, 2.0], source="arrays")
    assert len(split(data, 0.4, 0).x) == 2
    with pytest.raises(UserError, match=r"test_fraction=0\.7: leaves a part"):
        split(data, 0.7, 0)


def test_a_test_part_of_points_without_targets_has_none():
    data = make_dataset("bare", X, None, x_test=X[:1], source="arrays")
    assert data.task == "unlabelled"
    assert data.x_test.shape == (1, 2)
    assert data.y_test.shape == (0,)
