"""A picture, and copies with random colour shifts along the principal axes, or isotropic ones."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import style
from normbench.results.figures.base.material import ArraysByLabel, maker_from_arrays
from normbench.results.figures.base.style import SCREEN, Shape

DRAWN_COPIES = 3  # copies for each noise
NOISE_TEXTS = {
    "aligned": "along the principal axes of the colours",
    "round": "of the same size, alike in all directions",
}


def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: one row for each noise, with the picture left, copies beside it.

    Args:
        arrays: by label, `picture` (h, w, 3), from 0 to 255, and for each noise in `NOISE_TEXTS`
            its colour shifts `aligned` and `round` (c, 3), one for each copy.
        schemes: one row for each scheme (`label`); all have the same picture.
        title: the title of the figure.
        shape: the format of the figure.
    """
    scheme_arrays = next(arrays[label] for label in schemes["label"] if label in arrays)
    picture = scheme_arrays["picture"].astype(float)
    with style.figure_style(shape):
        height, width = picture.shape[:2]
        figure, axes = style.panels(
            2 * (DRAWN_COPIES + 1), shape, title, height / width + 0.1, DRAWN_COPIES + 1
        )
        for row, noise in enumerate(NOISE_TEXTS):
            # Copy 0 is the picture itself, without a shift.
            for copy, shift in enumerate([np.zeros(3), *scheme_arrays[noise][:DRAWN_COPIES]]):
                axis = axes[row * (DRAWN_COPIES + 1) + copy]
                axis.imshow(np.clip(picture + shift, 0, 255).astype(np.uint8))
                axis.set_axis_off()
                panel_title = f"{noise} noise, copy {copy}" if copy else "as it is"
                axis.set_title(panel_title, fontsize="small")
        noise_note = "; ".join(f"{noise}: {text}" for noise, text in NOISE_TEXTS.items())
        style.add_note(figure, shape, f"one shift of colour for all pixels of a copy; {noise_note}")
    return figure


make = maker_from_arrays("colours", draw)
