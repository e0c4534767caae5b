"""Contours of a quadratic cost are exact ellipses, and the shape of a panel is said."""

import numpy as np
import pandas as pd
import pytest

from normbench.results.figures import contours


def plane(condition=1e6, wide=1.0, tall=1.0, cost=None, turn=0.3):
    """A valley that runs aslant through the panel, on the grid of costs that a job keeps."""
    a, b = np.linspace(-wide, wide, 41), np.linspace(-tall, tall, 41)
    c, s = np.cos(turn), np.sin(turn)
    u, v = np.meshgrid(a / wide, b / tall)
    values = (c * u + s * v) ** 2 * condition + (c * v - s * u) ** 2 + 3.0
    values = values if cost is None else cost(values)
    path = np.array([[0.9 * wide, 0.5 * tall], [0.0, 0.0]])
    return {
        **{"a": a, "b": b, "cost": values, "least": 3.0, "path": path},
        **{"path_cost": np.array([values.max() / 2, 3.0]), "iteration": np.array([0, 1])},
        **{"minimum": np.zeros(2), "names": np.array(["x", "y"]), "condition": condition},
        **{"held": "", "step_size": 0.1},
    }


def draw(**arrays):
    rows = pd.DataFrame({"label": list(arrays), "normalizer": "pca"})
    return contours.draw(arrays, rows, "t")


@pytest.mark.parametrize("condition", [1.0, 32.0, 5.85e4, 1e8])
def test_each_contour_is_one_closed_ellipse_of_its_cost(condition):
    parts = plane(condition)
    bowl = contours.fit_bowl(parts)
    assert bowl.least == pytest.approx(3, abs=1e-6)
    for level in (3.5, 4.0, condition / 2 + 3):
        x, y = bowl.ellipse(level).T
        c, s = np.cos(0.3), np.sin(0.3)
        cost = (c * x + s * y) ** 2 * condition + (c * y - s * x) ** 2 + 3
        np.testing.assert_allclose(cost, level, rtol=1e-5)
    axis = draw(a=parts).axes[0]
    (rims,) = [each for each in axis.collections if each.get_label() == "_rims"]
    assert (
        len(rims.get_paths()) >= contours.MIN_CONTOURS
    )  # one path a level: no islands along the valley
    for path in rims.get_paths():
        np.testing.assert_allclose(path.vertices[0], path.vertices[-1], atol=1e-9)


def test_other_costs_are_drawn_from_the_grid():
    assert contours.fit_bowl(plane(4.0, cost=lambda values: np.log(values))) is None
    assert contours.fit_bowl(plane(0.0)) is None  # a trough has no least cost
    assert contours.fit_bowl(
        plane(4.0, cost=lambda values: np.where(values > 5, np.nan, values))
    ) is (None)


def test_a_panel_says_what_shape_it_really_has():
    figure = draw(a=plane(2.0, wide=84.0), b=plane(2.0), c=plane(2.0, tall=50.0))
    titles = [axis.get_title() for axis in figure.axes[:3]]
    assert "really 84 times as wide" in titles[0].replace("\n", " ")
    assert "really" not in titles[1]
    assert "really 50 times as tall" in titles[2].replace("\n", " ")
