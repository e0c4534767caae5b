"""Formulas of layers: derivatives by differences, and those written by hand against autograd."""

from functools import partial

import autograd.numpy as anp
import numpy as np
import pytest
from autograd.core import make_vjp
from autograd.test_util import check_grads

from normbench.models import formulas
from normbench.models.formulas import ACTIVATIONS, eigh, inverse_root

SHAPE = (2, 4, 9)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def symmetric(matrix):
    return (matrix + anp.swapaxes(matrix, -1, -2)) / 2


@pytest.fixture
def positive(rng):
    draws = rng.standard_normal(SHAPE)
    return draws @ draws.swapaxes(1, 2)


def rebuilt(matrix):
    """Return a function of a matrix by its eigenvalues and eigenvectors."""
    eigenvalues, vectors = eigh(symmetric(matrix))
    scaled = vectors * anp.sin(eigenvalues)[..., None, :]
    return anp.matmul(scaled, anp.swapaxes(vectors, -1, -2))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_of_values_that_are_not_finite(activation):
    values = np.array([-np.inf, np.inf, np.nan]).reshape(1, 3, 1)
    ends = {"tanh": (-1, 1), "relu": (0, np.inf), "sigmoid": (0, 1), "identity": (-np.inf, np.inf)}
    expected = [*ends.get(activation, (-1.7159, 1.7159)), np.nan]
    np.testing.assert_array_equal(formulas.activate(activation, values).ravel(), expected)


def test_equal_eigenvalues_leave_finite_derivatives():
    """Units that are never active have variance 0, each of them."""
    pull, _ = make_vjp(lambda s: inverse_root(s), np.eye(3))
    assert np.isfinite(pull(np.ones((3, 3)))).all()
    pull, _ = make_vjp(rebuilt, np.eye(3))
    assert np.isfinite(pull(np.ones((3, 3)))).all()


@pytest.mark.parametrize("function", [inverse_root, lambda s: rebuilt(s)], ids=["root", "eigh"])
@pytest.mark.parametrize("other", [np.inf, np.nan, 1e20])
def test_a_matrix_of_a_run_that_diverges_leaves_the_others_as_they_are(positive, function, other):
    """The solver refuses some matrices that are not finite, and with them the whole stack."""
    stack = np.stack([positive[0], np.full((4, 4), other) + np.eye(4) * 1e20, positive[1]])
    with np.errstate(all="ignore"):
        (pull, values), (pull_alone, alone) = (make_vjp(function, s) for s in (stack, positive))
        slopes = np.ones_like(stack)
        np.testing.assert_array_equal(values[[0, 2]], alone)
        np.testing.assert_array_equal(pull(slopes)[[0, 2]], pull_alone(slopes[[0, 2]]))
    assert np.isfinite(values[1]).all() == np.isfinite(other)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_have_derivatives(rng, name):
    function = partial(formulas.activate, name)
    check_grads(function, modes=["rev"], order=2)(rng.standard_normal(SHAPE))


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("epsilon", [1e-5, 0.3, "textbook"])
@pytest.mark.parametrize("scale", [1, 1e-4])
def test_a_derivative_by_hand_is_that_of_the_formula(rng, axis, epsilon, scale):
    def plain(h):
        centred = h - anp.mean(h, axis=axis, keepdims=True)
        variance = anp.mean(centred**2, axis=axis, keepdims=True)
        return centred / formulas.deviation(variance, epsilon)

    def standardize(h):
        return formulas.standardize(h, axis, epsilon)[0]

    h, slopes = scale * rng.standard_normal(SHAPE), rng.standard_normal(SHAPE)
    (pull, value), (pull_plain, expected) = make_vjp(standardize, h), make_vjp(plain, h)
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-14)
    slope = pull_plain(slopes)
    np.testing.assert_allclose(pull(slopes), slope, rtol=1e-9, atol=1e-10 * np.abs(slope).max())
    if scale == 1:
        check_grads(standardize, modes=["rev"], order=2)(h)


def test_products_have_derivatives(rng):
    weight, bias = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 3, 1))
    h = rng.standard_normal(SHAPE)
    check_grads(formulas.multiply, modes=["rev"], order=2)(weight, bias, h)
    check_grads(lambda *given: formulas.multiply(*given, h[0]), modes=["rev"], order=2)(
        weight, bias
    )


def test_the_textbooks_rule_adds_one_to_a_small_deviation():
    variance = np.array([0.0, 0.0099**2, 0.0101**2, 4.0])
    np.testing.assert_allclose(formulas.deviation(variance, "textbook"), [1, 1.0099, 0.0101, 2])
    np.testing.assert_allclose(formulas.deviation(variance, 0.25), np.sqrt(variance + 0.25))


@pytest.mark.parametrize("kind", ["pca", "zca", "newton"])
def test_whitened_values_are_uncorrelated(rng, kind):
    h = rng.standard_normal((2, 4, 40))

    def whiten(values, epsilon=1e-12, iterations=25 if kind == "newton" else 1):
        mean, covariance = formulas.covariance(values)
        matrices = formulas.whitening(covariance, kind, epsilon, True, iterations)
        return anp.matmul(matrices, values - mean)

    whitened = whiten(h)
    covariance = formulas.covariance(whitened)[1]
    expected = np.broadcast_to(np.eye(4), covariance.shape)
    np.testing.assert_allclose(covariance, expected, atol=1e-8)
    check_grads(lambda values: whiten(values, 1e-3, 4), modes=["rev"], order=2)(h[:, :, :9])


def test_fixed_signs_leave_no_choice_to_the_eigenvalue_solver(positive, monkeypatch):
    """Eigenvectors of the other sign whiten alike under `fixed`, and otherwise under `free`."""

    def whiten(is_fixed):
        return formulas.whitening(positive, "pca", 0.0, is_fixed, 5)

    fixed, free = whiten(True), whiten(False)
    rows = fixed / np.linalg.norm(fixed, axis=-1, keepdims=True)
    assert (np.take_along_axis(rows, np.abs(rows).argmax(-1)[..., None], -1) > 0).all()
    np.testing.assert_allclose(np.abs(fixed), np.abs(free), rtol=1e-12)
    for whitening in (fixed, free):
        product = whitening @ positive @ whitening.swapaxes(-1, -2)
        np.testing.assert_allclose(product, np.broadcast_to(np.eye(4), (2, 4, 4)), atol=1e-9)

    def turned(matrix):
        eigenvalues, vectors = eigh(matrix)
        return eigenvalues, vectors * np.array([1.0, -1.0, 1.0, -1.0])

    monkeypatch.setattr(formulas, "eigh", turned)
    np.testing.assert_array_equal(whiten(True), fixed)
    assert np.abs(whiten(False) - free).max() > 0.1


def test_of_entries_that_tie_the_first_has_the_fixed_sign():
    """The eigenvectors of two values of one variance are (1, -1) and (1, 1), over sqrt 2."""
    covariance = np.array([[2.0, 1.0], [1.0, 2.0]])
    rows = formulas.whitening(covariance, "pca", 0.0, True, 5)
    np.testing.assert_allclose(rows @ covariance @ rows.T, np.eye(2), atol=1e-12)
    assert np.sign(rows).tolist() == [[1, -1], [1, 1]]
