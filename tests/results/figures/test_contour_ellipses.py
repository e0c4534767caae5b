"""Contours of a quadratic cost are exact ellipses, and the shape of a panel is said."""

import numpy as np
import pytest

from normbench.results.figures import contours
from tests.results.figures.pictures import of_schemes, valley


@pytest.mark.parametrize("condition", [1.0, 32.0, 5.85e4, 1e8])
def test_each_contour_is_one_closed_ellipse_of_its_cost(condition):
    parts = valley(condition)
    grid = contours.elliptic_grid(parts, np.array([3.5, 4.0, condition / 2 + 3]))
    x, y, costs = grid
    assert costs[0, 0] == pytest.approx(3, abs=1e-6)
    c, s = np.cos(0.3), np.sin(0.3)
    expected = (c * x + s * y) ** 2 * condition + (c * y - s * x) ** 2 + 3
    np.testing.assert_allclose(expected[1:-1], costs[1:-1], rtol=1e-5)
    axis = of_schemes(contours.draw, parts)().axes[0]
    rims = axis.collections[0]
    paths = [path for path in rims.get_paths() if len(path.vertices)]
    assert len(paths) >= contours.MIN_CONTOURS
    for path in paths:  # one closed line a level: no islands along the valley
        assert len(path.to_polygons(closed_only=False)) == 1
        np.testing.assert_allclose(path.vertices[0], path.vertices[-1], atol=1e-6)


def test_other_costs_are_drawn_from_the_grid():
    levels = np.array([4.0, 5.0])
    for parts in (
        valley(4.0, cost=lambda values: np.log(values)),
        valley(0.0),  # a trough has no least cost
        valley(4.0, cost=lambda values: np.where(values > 5, np.nan, values)),
    ):
        assert contours.elliptic_grid(parts, levels) is None
