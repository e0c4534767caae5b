"""A data set's spectrum is found once, whatever the number of schemes that need it."""

import numpy as np
import pytest

from normbench import compare
from normbench.engine.scheme import normalize
from normbench.normalizers import PCASphere, ZCASphere, spectrum
from normbench.normalizers.spectrum import Spectra


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
    spectra = Spectra(x)
    assert np.array_equal(PCASphere().fit_from(x, spectra).transform(x), alone)
    assert spectra.saved == 0
    ZCASphere().fit_from(x, spectra)
    saved = spectra.saved
    assert saved > 0
    z, _ = normalize(PCASphere(), x, x[:0], np.float64, spectra)
    assert np.array_equal(z, alone)
    assert spectra.saved > saved
    assert len(found) == 1


def test_a_spectrum_is_found_anew_without_them(two_classes, found):
    x, _ = two_classes
    PCASphere().fit(x)
    PCASphere().fit(x[:30])
    normalize(PCASphere(), x, x[:0], np.float64)
    assert len(found) == 3


def test_a_comparison_finds_one_spectrum_a_data_set(two_classes, found):
    x, y = two_classes
    options = {"normalizers": ["pca_sphere", "zca_sphere"], "step_sizes": [1], "iterations": 3}
    compare(x, y, **options)
    compare(2 * x, y, **options)
    assert len(found) == 2
