"""A data set's spectrum is found once, whatever the number of schemes that need it."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from normbench import compare
from normbench.normalizers import PCASphere, ZCASphere, spectrum
from normbench.normalizers.spectrum import keeping


@pytest.fixture
def found(monkeypatch):
    """The number of spectra that are found."""
    calls = []
    find = spectrum._find
    monkeypatch.setattr(spectrum, "_find", lambda x, *kind: calls.append(kind) or find(x, *kind))
    return calls


def test_schemes_on_the_same_points_share_one_spectrum(two_classes, found):
    x, _ = two_classes
    alone = PCASphere().fit_transform(x)
    found.clear()
    with keeping(x, "these") as kept:
        assert np.array_equal(PCASphere().fit_transform(x), alone)
        assert kept.saved == 0
        ZCASphere().fit(x)
        assert kept.saved > 0
    with keeping(x, "these") as kept:
        assert np.array_equal(PCASphere().fit_transform(x), alone)
        assert kept.saved > 0
    assert len(found) == 1


def test_other_points_have_a_spectrum_of_their_own(two_classes, found):
    x, _ = two_classes
    with keeping(x, "those"):
        PCASphere().fit(x)
        piped = make_pipeline(StandardScaler(), PCASphere()).fit_transform(x)
        PCASphere().fit(x[:30])
    with keeping(x, "what was written in their place"):
        PCASphere().fit(x)
    assert len(found) == 4
    assert np.allclose(piped, make_pipeline(StandardScaler(), PCASphere()).fit_transform(x))


def test_a_comparison_finds_one_spectrum_a_data_set(two_classes, found):
    x, y = two_classes
    options = {"normalizers": ["pca_sphere", "zca_sphere"], "step_sizes": [1], "iterations": 3}
    compare(x, y, **options)
    compare(2 * x, y, **options)
    assert len(found) == 2
