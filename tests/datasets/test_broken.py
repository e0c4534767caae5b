"""Points that are broken on purpose: each kind is what it says."""

import numpy as np
import pytest

from normbench.datasets.made import DEFECTS, broken


def test_each_kind_breaks_what_it_says():
    sound, constant, duplicate, few, offset, single = (broken(kind) for kind in DEFECTS)
    values = np.linalg.eigvalsh(np.cov(sound.x.T, bias=True))
    assert values[[0, -1]] == pytest.approx([0.01, 1])
    np.testing.assert_array_equal(constant.x, np.c_[sound.x[:, :-1], np.ones(200)])
    assert (duplicate.x[:, :10] == duplicate.x[:, 10:]).all()
    assert len(few.x) < few.x.shape[1]
    assert offset.x.mean(axis=0) == pytest.approx(np.full(20, 1e8))
    assert offset.x.dtype == np.float64
    assert single.x.dtype == np.float32
    assert single.x.mean(axis=0) == pytest.approx(np.full(20, 1e3), rel=1e-5)
    assert {data.task for data in (sound, few, single)} == {"binary"}


@pytest.mark.parametrize("kind", DEFECTS)
def test_the_scale_is_that_of_all_points(kind):
    plain, large = broken(kind, seed=3), broken(kind, 1e6, seed=3)
    assert large.x == pytest.approx(1e6 * plain.x.astype(float), rel=1e-6)
    assert broken(kind, seed=4).fingerprint != plain.fingerprint
