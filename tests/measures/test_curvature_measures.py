"""Curvatures, sharpness, spectra, windows and critical steps of Hessians that are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from normbench.measures.descents import (
    measure_curvature,
    sharpness,
)
from normbench.optimizers import lbfgs


class Curved:
    """A Hessian of given eigenvalues."""

    def __init__(self, *values):
        self.values, self.size = values, len(values)

    def matrix(self):
        return np.diag(np.array(self.values))


def test_the_condition_of_a_curvature_is_of_its_live_part(monkeypatch):
    nan = np.nan
    for values, told in (
        ((4.0, 2.0, -3.0), (4, -3, 2)),
        ((4.0, 1e-17, 8.0), (8, 1e-17, 2)),
        ((-1.0, -2.0), (-1, -2, nan)),
    ):
        found = measure_curvature(Curved(*values))
        assert found == pytest.approx(told, nan_ok=True), values
    monkeypatch.setattr(Curved, "extremes", lambda hessian: (7.0, -1.0), raising=False)
    assert measure_curvature(Curved(*np.full(600, 3.0))) == (3, 3, 1)
    found = measure_curvature(Curved(*np.full(601, 3.0)))
    assert found == pytest.approx((7, -1, nan), nan_ok=True)


def test_an_optimizer_that_finds_its_own_step_sizes_has_no_sharpness():
    """Its step size of 1 is a placeholder."""
    descent = SimpleNamespace(optimizer=lbfgs())
    found = sharpness.take(SimpleNamespace(descent=descent, z=range(9)))
    assert (found.series, found.notes) == (
        {},
        ("sharpness: the optimizer finds its own step sizes",),
    )
