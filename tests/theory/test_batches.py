"""Theory of batches: the limit against all batches of a small problem, the floor by simulation."""

from itertools import combinations, product

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from normbench.datasets.made import gaussian
from normbench.normalizers import PCASphere
from normbench.theory import batches


def points(count=7, features=3, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([np.ones(count), rng.standard_normal((count, features))])


def radius(x, step, chosen):
    """Return the spectral radius of the mean of `S -> (I - a H_B) S (I - a H_B)` over batches."""
    size = x.shape[1]
    total = np.zeros((size**2, size**2))
    for batch in chosen:
        rows = x[list(batch)]
        shrink = np.eye(size) - step * 2 * rows.T @ rows / len(rows)
        total += np.kron(shrink, shrink)
    return np.abs(np.linalg.eigvals(total / len(chosen))).max()


@pytest.mark.parametrize("batch", [1, 2, 3, 6])
def test_the_limit_of_a_batch_is_where_the_mean_square_stops_shrinking(batch):
    x = points()
    for replacement in (False, True):
        numbers = range(len(x))
        chosen = list(
            product(numbers, repeat=batch) if replacement else combinations(numbers, batch)
        )
        if len(chosen) > 1000:
            continue
        step = batches.mean_square_steps(x, batch)[replacement]
        assert radius(x, step, chosen) == pytest.approx(1, abs=1e-8)  # measured: 2e-10
        assert radius(x, 0.99 * step, chosen) < 1 < radius(x, 1.01 * step, chosen)


def exact_over_approximate(z, sizes=()):
    """Return the exact limit over the approximate one, at the knee and at these batches."""
    x = np.column_stack([np.ones(len(z)), z])
    gram = x.T @ x / len(x)
    largest = np.linalg.eigvalsh(gram)[-1]
    knee = batches.knee(largest, np.trace(gram))
    return [
        batches.mean_square_steps(x, size)[0] / batches.approximate_step(2 * largest, knee, size)
        for size in (round(knee), *sizes)
    ]


def test_the_approximate_limit_is_within_8_percent_at_most_knees_and_26_percent_anywhere():
    """Of 10 and 30 features: raw, standardized, sphered, and raw with an offset of 3.

    Measured at the knee: 0.90 and 0.91 of the approximate limit for 10 features, raw and
    standardized, and 0.93 to 1.07 of it in the six other settings. (Of 60 features, which take a
    minute, two of four are within 8 percent, and raw and standardized ones are 1.16.) Measured at
    batches of 1, 4, 16 and 64: 0.74, of one standardized point of 10 features, to 1.13.
    """
    ratios = []
    for features in (10, 30):
        x = gaussian(1000, features, task="regression").x
        schemes = (StandardScaler(), PCASphere(ridge=0))
        transformed = [x, *(scheme.fit_transform(x) for scheme in schemes)]
        transformed.append(gaussian(1000, features, task="regression", offset=3).x)
        ratios += [exact_over_approximate(z, (1, 4, 16, 64)) for z in transformed]
    ratios = np.array(ratios)
    at_knee = np.abs(ratios[:, 0] - 1)
    assert np.sum(at_knee < 0.08) == 6
    assert at_knee.max() < 0.1
    assert 0.74 < ratios.min() < ratios.max() < 1.13


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_constant_step_hovers_at_the_noise_floor(share):
    rng = np.random.default_rng(4)
    x, batch, runs = points(200, 4, 2), 4, 4000
    y = 0.5 * rng.standard_normal(200)
    gram = x.T @ x / 200
    minimum = np.linalg.lstsq(x, y, rcond=None)[0]
    variance = np.mean((x @ minimum - y) ** 2)
    largest = batches.mean_square_steps(x, batch)[True]
    step = share * largest
    expected = batches.noise_floor(step, variance, np.trace(gram), batch, largest)
    distance = np.zeros((runs, 5))
    excesses = []
    for k in range(800):
        rows = rng.integers(0, 200, (runs, batch))
        residuals = np.einsum("rmn,rn->rm", x[rows], distance) + (x @ minimum - y)[rows]
        distance -= step * 2 * np.einsum("rm,rmn->rn", residuals, x[rows]) / batch
        if k >= 400:
            excesses.append(np.einsum("rn,nk,rk->r", distance, gram, distance).mean())
    # Measured: 4 and 5 percent below; with other seeds of the draws 0 to 4.
    assert np.mean(excesses) == pytest.approx(expected, rel=0.1)
    assert batches.noise_floor(largest, variance, 1.0, batch, largest) == np.inf


@pytest.mark.parametrize("batch", [1, 3])
def test_one_point_has_one_limit_however_it_is_drawn(batch):
    x = np.array([[1.0, 2.0, -1.0]])
    limits = batches.mean_square_steps(x, batch)
    assert limits == pytest.approx((1 / 6, 1 / 6))  # 2/L, of L = 2 |x|^2
    assert limits[0] == limits[1]


def test_knees_and_approximate_steps_are_their_formulas():
    assert batches.knee(2.0, 10.0) == 5.0
    assert np.isnan(batches.knee(0.0, 0.0))
    assert batches.approximate_step(4.0, 5.0, 3) == pytest.approx(0.5 * 3 / 7)
    assert batches.noise_floor(0.1, 2.0, 5.0, 4, 0.4) == pytest.approx(0.1 * 2 * 5 / 4 / 0.75)
    assert batches.noise_floor(0.5, 2.0, 5.0, 4, 0.4) == np.inf
