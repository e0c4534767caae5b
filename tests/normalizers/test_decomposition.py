"""A data set's decomposition is found once, whatever the number of schemes that need it."""

import time

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from normbench import compare
from normbench.normalizers import PCASphere, ZCASphere, decomposition
from normbench.normalizers.decomposition import PointsCache
from tests.door import normalize


@pytest.fixture
def found(monkeypatch):
    """The number of decompositions that are found."""
    calls = []
    find = decomposition._decompose
    monkeypatch.setattr(
        decomposition, "_decompose", lambda factor, *kind: calls.append(kind) or find(factor, *kind)
    )
    return calls


def test_schemes_on_the_same_points_share_one_decomposition(two_classes, found):
    x, _ = two_classes
    alone = PCASphere().fit_transform(x)
    found.clear()
    tick = time.perf_counter()
    moments = PointsCache(x)
    assert np.array_equal(PCASphere().learn(moments).transform(x), alone)
    assert moments.saved == 0
    ZCASphere().learn(moments)
    saved = moments.saved
    assert 0 < saved < time.perf_counter() - tick
    z, _ = normalize(PCASphere(), x, x[:0], np.float64, moments)
    assert np.array_equal(z, alone)
    assert moments.saved > saved
    assert len(found) == 1


def test_a_decomposition_is_found_anew_without_them(two_classes, found):
    x, _ = two_classes
    PCASphere().fit(x)
    PCASphere().fit(x[:30])
    normalize(PCASphere(), x, x[:0], np.float64)
    assert len(found) == 3


def test_a_comparison_finds_one_decomposition_a_data_set(two_classes, found):
    x, y = two_classes
    options = {"normalizers": ["pca_sphere", "zca_sphere"], "step_sizes": [1], "iterations": 3}
    compare(x, y, **options)
    compare(2 * x, y, **options)
    assert len(found) == 2


@pytest.mark.parametrize("correlation", [True, False])
def test_a_feature_that_varies_by_a_millionth_of_a_percent_is_not_constant(correlation):
    noise = np.random.default_rng(1).standard_normal((60, 2))
    x = np.column_stack([1 + 1e-8 * noise[:, 0], 1e-8 * noise[:, 1]])
    found = PointsCache(x).get(correlation, False)
    # The first feature is stored to 1e-16, a hundred-millionth of how far it varies.
    wanted = np.corrcoef(noise.T) if correlation else 1e-16 * np.cov(noise.T, bias=True)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(wanted)[::-1], rtol=1e-6)


def extended_decomposition(x):
    """Return mean, variances and directions (rows) in extended precision: one-sided Jacobi."""
    rows = x.astype(np.longdouble)
    mean = rows.mean(axis=0)
    rows = rows - mean
    vectors = np.eye(rows.shape[1], dtype=np.longdouble)
    for _ in range(40):
        largest = np.longdouble(0)
        for i in range(rows.shape[1] - 1):
            for j in range(i + 1, rows.shape[1]):
                one, other = rows[:, i] @ rows[:, i], rows[:, j] @ rows[:, j]
                both = rows[:, i] @ rows[:, j]
                cosine = abs(both) / np.sqrt(one * other)
                largest = max(largest, cosine)
                if cosine < 1e-18:
                    continue
                ratio = (other - one) / (2 * both)
                tangent = np.copysign(1, ratio) / (abs(ratio) + np.sqrt(1 + ratio**2))
                cos = 1 / np.sqrt(1 + tangent**2)
                turn = np.array([[cos, cos * tangent], [-cos * tangent, cos]])
                rows[:, [i, j]] = rows[:, [i, j]] @ turn
                vectors[:, [i, j]] = vectors[:, [i, j]] @ turn
        if largest < 1e-17:
            break
    variances = (rows**2).mean(axis=0)
    order = np.argsort(-variances)
    vectors = vectors.T[order]
    largest_entry = np.abs(vectors).argmax(axis=1)
    return (
        mean,
        variances[order],
        vectors * np.sign(vectors[np.arange(len(vectors)), largest_entry])[:, None],
    )


@pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18, reason="long double is no wider than double here"
)
@pytest.mark.parametrize("scheme", [PCASphere, ZCASphere])
def test_sphered_points_are_those_of_extended_precision(scheme):
    x = load_breast_cancer().data
    mean, variances, directions = extended_decomposition(x)
    wanted = (x - mean) @ directions.T / np.sqrt(variances + np.longdouble(1e-7))
    if scheme is ZCASphere:
        wanted = wanted @ directions
    gap = np.abs(scheme().fit_transform(x) - wanted).max()
    assert gap < 2e-10, gap  # 2.4e-11 measured; an eigendecomposition of S is off by 8e-8
