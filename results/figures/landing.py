"""Where steps land on the local parabola: at its start, at its minimum, or as high as before."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from normbench.results.figures.base import style
from normbench.results.figures.base.material import (
    ArraysByLabel,
    SchemeArrays,
    maker_from_arrays,
    with_arrays,
)
from normbench.results.figures.base.style import SCREEN, Look, Shape

LIMITS = (-0.15, 2.3)  # positions beyond are drawn at the edge
STEP_HEIGHT = -0.14  # of the ticks below the parabola
MARKS = {0.0: "0: at the start", 1.0: "1: at the\nminimum", 2.0: "2: as high\nas before"}
STEPS_NOTE = "ticks: the steps, along themselves"
DIRECTIONS_NOTE = "circles: directions of the Hessian at the start"


def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: one panel for each scheme, with a parabola and the landings on it.

    Args:
        arrays: by label, `position` (k,), where each step lands on the parabola along the step: 0
            at its start, 1 at its minimum, 2 as high as at the start; for plain descent also
            `direction` (n,), where a step lands along each eigendirection of the Hessian at the
            start: step size times curvature.
        schemes: one row for each scheme in order (`label`, `normalizer`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    with style.figure_style(shape):
        figure, axes = style.panels(len(drawn_schemes), shape, title, 0.62)
        for axis, scheme in zip(axes, drawn_schemes):
            _draw_landings(axis, scheme.arrays, scheme.look)
            style.name_panel(axis, scheme.label, scheme.look)
        has_circles = any("direction" in scheme.arrays for scheme in drawn_schemes)
        notes = [STEPS_NOTE, DIRECTIONS_NOTE] if has_circles else [STEPS_NOTE]
        style.add_note(figure, shape, "; ".join(notes))
    return figure


def _draw_landings(axis: Any, scheme_arrays: SchemeArrays, look: Look) -> None:
    """Draw a parabola, circles on it for the directions, and ticks below it for the steps.

    The parabola is `(position - 1)^2`, which is as high at position 2 as at the start, 0.

    Args:
        axis: the panel.
        scheme_arrays: with `position` (k,), optionally `direction` (n,), see `draw`.
        look: the look of the scheme.
    """
    along = np.linspace(*LIMITS, 100)
    axis.plot(along, (along - 1) ** 2, color="#b0b0b0", zorder=1)
    # Without `direction`, as for other optimizers than plain descent, there are no circles.
    directions = _clipped(scheme_arrays.get("direction", np.empty(0)))
    circle_style = {"alpha": 0.5, "s": 40, "linewidths": 0, "zorder": 2}
    axis.scatter(directions, (directions - 1) ** 2, color=look.color, **circle_style)
    steps = _clipped(scheme_arrays["position"])
    heights = np.full(len(steps), STEP_HEIGHT)
    axis.plot(steps, heights, "|", color=look.color, markersize=9, alpha=0.6)
    axis.set_xticks([*MARKS], [*MARKS.values()])
    axis.set(xlim=LIMITS, ylim=(-0.3, 1.8), yticks=[])


def _clipped(positions: Any) -> NDArray[np.float64]:
    """Return positions, with those beyond the panel moved to its edge."""
    return np.clip(positions, *LIMITS)


# There is no figure of a run without a recorded step.
make = maker_from_arrays("landing", draw, lambda arrays: len(arrays["position"]) > 0)
