"""The linear-algebra kernels that a comparison names; see `tests/test_same_conclusions.py`."""

import numpy as np
import pytest

from normbench.record.provenance import describe_blas


def test_what_ran_is_told():
    assert np.ones((2, 2)) @ np.ones(2) == pytest.approx([2, 2])
    assert "threads" in describe_blas()
