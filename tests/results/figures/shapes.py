"""Formats of figures in tests: the narrowest and the largest quickly, the others slowly."""

import pytest

from normbench.results.figures.base import style

EXTREMES = ("column", "slide")
SHAPES = [
    pytest.param(name, marks=() if name in EXTREMES else pytest.mark.slow)
    for name in sorted(style.FORMATS)
]
