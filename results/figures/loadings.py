"""What each principal component is made of: the entry of each feature, as a coloured table."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import style
from normbench.results.figures.base.material import Arrays, Parts, of_arrays, with_arrays
from normbench.results.figures.base.style import SCREEN, Shape

MOST_FEATURES, MOST_COMPONENTS = 20, 8  # of a table that can be read
ALONE = 0.999  # of a component's length 1: it is one feature
LINE = 1.9  # a row's height, in heights of a letter


def draw(arrays: Arrays, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: a panel a scheme, a row a feature, a column a component.

    arrays: by label, `entries` (m, K), `deviations` (K,), `names` (m,), `shares` (2,). schemes: one
    row a scheme (`label`, `normalizer`), in order. Of many features those with the longest arrows
    in the biplot are shown.
    """
    shown = with_arrays(schemes, arrays)
    columns = min(len(shown), shape.columns, 2)
    most = max(min(len(scheme.parts["names"]), MOST_FEATURES) for scheme in shown)
    height = (most + 4) * LINE * shape.font / 72 / (shape.width / columns)
    with style.drawn(shape):
        figure, axes = style.panels(len(shown), shape, title, height, columns)
        for axis, scheme in zip(axes, shown):
            _table(axis, scheme.parts, shape)
            style.name_panel(axis, scheme.label, scheme.look)
        figure.supxlabel(
            "entries of each component, a vector of length 1; below its share of the variance",
            fontsize="small",
        )
    return figure


def _turns(parts: Parts) -> bool:
    """Return whether the components shown mix features: a sphered scheme's are its coordinates."""
    entries = np.abs(parts["entries"][:, :MOST_COMPONENTS])
    return not bool((entries.max(axis=0) > ALONE).all())


def _table(axis: Any, parts: Parts, shape: Shape) -> None:
    lengths = np.hypot(*parts["loadings"].T)
    shown = np.sort(np.argsort(-lengths, kind="stable")[:MOST_FEATURES])
    entries = parts["entries"][shown, :MOST_COMPONENTS]
    whole = parts["deviations"][0] ** 2 / (parts["shares"][0] or 1.0)
    shares = parts["deviations"][:MOST_COMPONENTS] ** 2 / (whole or 1.0)
    axis.imshow(entries, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    for (place, column), entry in np.ndenumerate(entries):
        color = "white" if abs(entry) > 0.7 else "black"
        words = {"ha": "center", "va": "center", "fontsize": 0.7 * shape.font, "color": color}
        axis.text(column, place, f"{entry:.2f}".replace("-0.00", "0.00"), **words)
    axis.set_yticks(range(len(shown)), [style.plain(str(parts["names"][n])[:22]) for n in shown])
    axis.set_xticks(range(len(shares)), [f"{n + 1}\n{share:.1%}" for n, share in enumerate(shares)])
    axis.grid(False)


make = of_arrays("biplot", draw, _turns)
