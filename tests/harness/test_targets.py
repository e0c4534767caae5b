"""Targets as a cost takes them."""

import numpy as np
import pytest

from normbench.engine.targets import encoded


@pytest.mark.parametrize(
    ("scores", "classes", "wanted"), [(1, 2, [-1, 1, 1]), (2, 2, [0, 1, 1]), (1, 0, [0, 1, 1])]
)
def test_classes_are_signs_of_one_score_and_numbers_of_several(scores, classes, wanted):
    found = encoded(np.array([0, 1, 1]), scores, classes, np.float32)
    assert found.tolist() == wanted
    assert scores > 1 or found.dtype == np.float32
