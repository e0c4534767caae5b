"""Formulas of layers: derivatives by autograd's checker, and fused ones against plain ones."""

import autograd.numpy as anp
import numpy as np
import pytest
from autograd.core import make_vjp
from autograd.test_util import check_grads

from normbench.models import formulas
from normbench.models.formulas import ACTIVATIONS, AUTOGRAD, Fused
from normbench.models.matrices import eigh, inverse_root, lyapunov

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
def test_plain_and_fused_activations_agree_where_values_are_not_finite(activation):
    values = np.array([-np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, np.nan, 2.0]).reshape(1, 8, 1)
    plain, fused = (each.activate(activation, values) for each in (AUTOGRAD, Fused()))
    np.testing.assert_array_equal(plain, fused)


def test_functions_of_matrices_are_what_they_say(positive):
    root = inverse_root(positive)
    np.testing.assert_allclose(
        root @ root @ positive, np.broadcast_to(np.eye(4), (2, 4, 4)), atol=1e-12
    )
    solved = lyapunov(positive, root)
    np.testing.assert_allclose(positive @ solved + solved @ positive, root, atol=1e-12)


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


def assert_equal_derivatives(rng, function, arguments):
    """Compare the fused value and derivatives of a function of formulas with the plain ones."""
    (pull, value), (pull_fused, fused) = (
        make_vjp(lambda traced, f=formulas: function(f, *traced), arguments)
        for formulas in (AUTOGRAD, Fused())
    )
    np.testing.assert_allclose(fused, value, rtol=1e-12, atol=1e-14)
    slopes = rng.standard_normal(value.shape)
    for expected, derivative in zip(pull(slopes), pull_fused(slopes)):
        np.testing.assert_allclose(
            derivative, expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max()
        )


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_fused_activations(rng, name):
    assert_equal_derivatives(rng, lambda f, h: f.activate(name, h), (rng.standard_normal(SHAPE),))


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("epsilon", [1e-5, 0.3, "textbook"])
@pytest.mark.parametrize("scale", [1, 1e-4])
def test_fused_standardizing(rng, axis, epsilon, scale):
    h = scale * rng.standard_normal(SHAPE)
    gain, shift = rng.standard_normal((2, 2, 4, 1))
    assert_equal_derivatives(rng, lambda f, h: f.standardize(h, axis, epsilon), (h,))
    assert_equal_derivatives(
        rng, lambda f, h, *affine: f.standardize(h, axis, epsilon, affine), (h, gain, shift)
    )


def test_fused_products(rng):
    weight, bias = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 3, 1))
    h = rng.standard_normal(SHAPE)
    assert_equal_derivatives(rng, lambda f, *given: f.multiply(*given), (weight, bias, h))
    assert_equal_derivatives(rng, lambda f, *given: f.multiply(*given, h[0]), (weight, bias))


def test_the_textbooks_rule_adds_one_to_a_small_deviation():
    variance = np.array([0.0, 0.0099**2, 0.0101**2, 4.0])
    np.testing.assert_allclose(AUTOGRAD.deviation(variance, "textbook"), [1, 1.0099, 0.0101, 2])
    np.testing.assert_allclose(AUTOGRAD.deviation(variance, 0.25), np.sqrt(variance + 0.25))


@pytest.mark.parametrize("kind", ["pca", "zca", "newton"])
def test_whitened_values_are_uncorrelated(rng, kind):
    h = rng.standard_normal((2, 4, 40))

    def whiten(values, epsilon=1e-12, iterations=25 if kind == "newton" else 1):
        mean, covariance = AUTOGRAD.covariance(values)
        matrices = AUTOGRAD.whitening(covariance, kind, epsilon, True, iterations)
        return anp.matmul(matrices, values - mean)

    whitened = whiten(h)
    covariance = AUTOGRAD.covariance(whitened)[1]
    expected = np.broadcast_to(np.eye(4), covariance.shape)
    np.testing.assert_allclose(covariance, expected, atol=1e-8)
    check_grads(lambda values: whiten(values, 1e-3, 4), modes=["rev"], order=2)(h[:, :, :9])


def test_fixed_signs_leave_no_choice_to_the_eigenvalue_solver(positive, monkeypatch):
    """Eigenvectors of the other sign whiten alike under `fixed`, and otherwise under `free`."""

    def whiten(is_fixed):
        return AUTOGRAD.whitening(positive, "pca", 0.0, is_fixed, 5)

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
    rows = AUTOGRAD.whitening(covariance, "pca", 0.0, True, 5)
    np.testing.assert_allclose(rows @ covariance @ rows.T, np.eye(2), atol=1e-12)
    assert np.sign(rows).tolist() == [[1, -1], [1, 1]]


def test_fixed_signs_have_derivatives(positive):
    def whiten(matrices):
        return AUTOGRAD.whitening(symmetric(matrices), "pca", 0.1, True, 5)

    check_grads(whiten, modes=["rev"], order=2)(positive)
