"""Figures of recorded arrays: how they are registered, and those with one panel for each scheme."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import landmarks, material, style
from normbench.results.figures.base.material import ArraysByLabel, DrawnScheme, SchemeArrays
from normbench.results.figures.base.style import SCREEN, Look, Shape
from normbench.results.store.runs import Sweep

Draw = Callable[..., Figure]  # of arrays by label, scheme rows, a title, and the keyword `shape`


class Panel(NamedTuple):
    """What a function draws that draws the panel of one scheme.

    Attributes:
        axis: the empty panel.
        label, row, arrays, look: those of the scheme, see `DrawnScheme`.
        shape: the format of the figure.
        first_arrays: the arrays of the first panel's scheme.
        landmark_indices: the points of the first panel that carry letters in all panels.
    """

    axis: Any
    label: str
    row: Mapping[Any, Any]
    arrays: SchemeArrays
    look: Look
    shape: Shape
    first_arrays: SchemeArrays
    landmark_indices: Sequence[int]


def arrays_figure(
    name: str,
    record: str,
    is_drawable: Callable[[SchemeArrays], bool] = material.always,
    **others: Any,
) -> Callable[[Draw], Draw]:
    """Return a decorator that registers a function as the one that draws a figure of arrays.

    Args:
        name: the name of the figure.
        record: the name in the setting `record=[...]` that records the arrays.
        is_drawable: whether the arrays of one scheme can be drawn.
        **others: more fields of `material.Maker`.
    """

    def register(draw: Draw) -> Draw:
        @material.figure(name, **others)
        def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
            rows = material.schemes(sweep, experiment)
            figure_title = material.title_of_first_repeat(experiment, rows)
            rows = material.of_first_repeat(sweep, rows)
            arrays = material.drawable_arrays(sweep, rows, record, is_drawable)
            return draw(arrays, rows, figure_title, shape=options.shape) if arrays else None

        return draw

    return register


def panel_figure(
    name: str,
    record: str,
    layout: float | Callable[[Sequence[DrawnScheme], Shape], dict[str, Any]],
    *,
    is_drawable: Callable[[SchemeArrays], bool] = material.always,
    lettered_points: Callable[[SchemeArrays], Any] | None = None,
    finish: Callable[[Figure, Sequence[DrawnScheme], Shape], Sequence[str]] | None = None,
) -> Callable[[Callable[[Panel], str]], Draw]:
    """Return a decorator that makes a figure of a function that draws the panel of one scheme.

    The function returns what stands behind the scheme's label in the title of the panel.

    Args:
        name: the name of the figure.
        record: the name in the setting `record=[...]` that records the arrays.
        layout: the height of a panel over its width, or a function that returns arguments of
            `style.panels` for the drawn schemes and the format.
        is_drawable: whether the arrays of one scheme can be drawn.
        lettered_points: returns the points (p, N) of the first panel of which the outermost carry
            letters; None for a figure without letters.
        finish: completes the figure, as by a legend, and returns the lines of the note below it.
    """

    def make_draw(draw_panel: Callable[[Panel], str]) -> Draw:
        @arrays_figure(name, record, is_drawable)
        def draw(
            arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
        ) -> Figure:
            drawn_schemes = material.with_arrays(schemes, arrays)
            first_arrays = drawn_schemes[0].arrays
            with style.figure_style(shape):
                options = layout(drawn_schemes, shape) if callable(layout) else {"aspect": layout}
                figure, axes = style.panels(len(drawn_schemes), shape, title, **options)
                landmark_indices: Sequence[int] = ()
                if lettered_points:
                    landmark_indices = landmarks.choose_for_panels(
                        drawn_schemes, lettered_points(first_arrays)
                    )
                for axis, scheme in zip(axes, drawn_schemes):
                    panel = Panel(axis, *scheme, shape, first_arrays, landmark_indices)
                    style.name_panel(axis, scheme.label + draw_panel(panel), scheme.look)
                notes = [*finish(figure, drawn_schemes, shape)] if finish else []
                if landmark_indices:
                    notes.append(landmarks.describe_letters(landmark_indices))
                if notes:
                    style.add_note(figure, shape, "\n".join(notes))
            return figure

        return draw

    return make_draw


def add_class_legend(figure: Figure, schemes: Sequence[DrawnScheme], shape: Shape) -> Sequence[str]:
    """Add the legend of the classes of the points, the same in all panels; it needs no note."""
    style.add_legend(figure, shape, style.class_handles(schemes[0].arrays["class_names"]))
    return ()
