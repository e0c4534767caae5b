"""The excess that the curvature at the start predicts."""

import numpy as np
import pytest

from normbench.results.compare.directions import LAYER_CURVATURE, LAYER_SHARE, predicted_excess


@pytest.mark.parametrize(
    ("shares", "step", "iterations", "excess"),
    [
        ([1.0, 1.0], 0.5, 1, 0.5 * 0.25 + 0.5 * 0.0),
        ([3.0, 1.0], 0.5, 2, 0.75 * 0.0625),
        ([1.0, 1.0], 5.0, 3, 1.0),  # a direction that grows counts as its start
        ([1.0, 0.0], 1.0, 0, 1.0),
        ([0.0, 0.0], 1.0, 9, 1.0),  # no direction has a share
    ],
)
def test_each_direction_shrinks_by_its_own_factor(shares, step, iterations, excess):
    arrays = {LAYER_CURVATURE: np.array([1.0, 2.0]), LAYER_SHARE: np.array(shares)}
    assert predicted_excess(arrays, step, iterations) == pytest.approx(excess)
