"""What all figures share: a fixed colour, marker and line for each scheme, and how a file is made.

Colours are told apart by the colour-blind and, together with markers and lines, in grey.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure


class Look(NamedTuple):
    """How a scheme is drawn in every figure."""

    color: str
    marker: str
    line: str


# Okabe and Ito's palette, and darker or lighter companions; lightness differs between neighbours.
LOOKS = {
    "identity": Look("#000000", "o", "-"),
    "standard": Look("#e69f00", "s", "-"),
    "pca_sphere": Look("#0072b2", "^", "-"),
    "zca_sphere": Look("#009e73", "v", "--"),
    "centre": Look("#999999", "D", "-"),
    "pca": Look("#cc79a7", "P", "-."),
    "cholesky": Look("#56b4e9", "X", ":"),
    "pca_cor": Look("#d55e00", "<", "--"),
    "zca_cor": Look("#7a4f9e", ">", "-."),
    "ledoit_wolf": Look("#8c510a", "p", "--"),
    "minmax": Look("#b8ab00", "h", "-."),
    "maxabs": Look("#5b8c2a", "*", ":"),
    "robust": Look("#a50f3c", "d", "--"),
    "quantile": Look("#35608d", "H", "-."),
    "power": Look("#e377c2", "8", ":"),
    "unit_norm": Look("#4d4d4d", "1", "--"),
    "chain": Look("#1b9e9e", "2", "-."),
}
SPARE = [
    Look("#6a3d9a", "3", ":"),
    Look("#b15928", "4", "--"),
    Look("#33a02c", "+", "-."),
    Look("#fb6a4a", "x", ":"),
]


def look(normalizer: str) -> Look:
    """Return how a scheme is drawn; a scheme of the user's own always gets the same look, too."""
    if normalizer in LOOKS:
        return LOOKS[normalizer]
    digest = hashlib.sha256(normalizer.encode()).digest()
    return SPARE[digest[0] % len(SPARE)]


RC: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.hashsalt": "normbench",  # the same figure gives the same file
    "svg.fonttype": "none",
}


def save(figure: Figure, path: Path, facts: Mapping[str, str]) -> list[Path]:
    """Write a figure as PNG and SVG, with facts (sweep, command) in the metadata; return paths."""
    import matplotlib

    about = "; ".join(f"{key}: {value}" for key, value in facts.items())
    png, svg = path.with_suffix(".png"), path.with_suffix(".svg")
    with matplotlib.rc_context(RC):
        figure.savefig(png, dpi=150, metadata={"Software": "normbench", "Description": about})
        figure.savefig(svg, metadata={"Creator": "normbench", "Description": about, "Date": None})
    return [png, svg]
