"""Contours of a quadratic cost are exact ellipses, and the shape of a panel is said."""

import numpy as np
import pytest

from normbench.results.figures import contours
from tests.results.figures.pictures import of_schemes, valley


@pytest.mark.parametrize("condition", [1.0, 32.0, 5.85e4, 1e8])
def test_each_contour_is_one_closed_ellipse_of_its_cost(condition):
    parts = valley(condition)
    bowl = contours.fit_bowl(parts)
    assert bowl.least == pytest.approx(3, abs=1e-6)
    for level in (3.5, 4.0, condition / 2 + 3):
        x, y = bowl.ellipse(level).T
        c, s = np.cos(0.3), np.sin(0.3)
        cost = (c * x + s * y) ** 2 * condition + (c * y - s * x) ** 2 + 3
        np.testing.assert_allclose(cost, level, rtol=1e-5)
    axis = of_schemes(contours, parts)().axes[0]
    (rims,) = [each for each in axis.collections if each.get_label() == "_rims"]
    assert (
        len(rims.get_paths()) >= contours.MIN_CONTOURS
    )  # one path a level: no islands along the valley
    for path in rims.get_paths():
        np.testing.assert_allclose(path.vertices[0], path.vertices[-1], atol=1e-9)


def test_other_costs_are_drawn_from_the_grid():
    assert contours.fit_bowl(valley(4.0, cost=lambda values: np.log(values))) is None
    assert contours.fit_bowl(valley(0.0)) is None  # a trough has no least cost
    assert contours.fit_bowl(
        valley(4.0, cost=lambda values: np.where(values > 5, np.nan, values))
    ) is (None)
