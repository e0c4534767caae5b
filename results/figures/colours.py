"""A picture, and copies of it with noise in their colours: along the principal axes, or round."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import style
from normbench.results.figures.base.material import Arrays, of_arrays
from normbench.results.figures.base.style import SCREEN, Shape

SHOWN = 3  # copies of a kind
KINDS = {
    "aligned": "along the principal axes of the colours",
    "round": "of the same size, alike in all directions",
}


def draw(arrays: Arrays, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN) -> Figure:
    """Return the figure: a row a kind of noise, the picture left, copies of it beside.

    arrays: by label, `picture` (h, w, 3), `aligned` and `round` (c, 3). The schemes, one row each
    (`label`), have the same picture.
    """
    parts = next(arrays[label] for label in schemes["label"] if label in arrays)
    picture = parts["picture"].astype(float)
    with style.drawn(shape):
        high, wide = picture.shape[:2]
        figure, axes = style.panels(2 * (SHOWN + 1), shape, title, high / wide + 0.1, SHOWN + 1)
        for row, kind in enumerate(KINDS):
            for number, shift in enumerate([np.zeros(3), *parts[kind][:SHOWN]]):
                axis = axes[row * (SHOWN + 1) + number]
                axis.imshow(np.clip(picture + shift, 0, 255).astype(np.uint8))
                axis.set_axis_off()
                name = f"{kind} noise, copy {number}" if number else "as it is"
                axis.set_title(name, fontsize="small")
        told = "; ".join(f"{kind}: {words}" for kind, words in KINDS.items())
        style.note(figure, shape, f"one shift of colour for all pixels of a copy; {told}")
    return figure


make = of_arrays("colours", draw)
