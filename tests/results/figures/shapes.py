"""Formats of figures in tests: the narrowest and the largest; the others in `make whole`."""

import pytest

from normbench.results.figures.base import style

EXTREMES = ("column", "slide")
SHAPES = [
    pytest.param(name, marks=() if name in EXTREMES else [pytest.mark.slow, pytest.mark.whole])
    for name in sorted(style.FORMATS)
]
