"""The linear schemes `z = A (x - m)`: one base class, and a line or two for the A of each member.

Source of the family: Kessy, Lewin, Strimmer, "Optimal whitening and decorrelation", The American
Statistician 72 (2018). All whitenings with ridge 0 are rotations of one another, `A'A = S^-1`.
"""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import Interval, RealNotInt
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from normbench.datasets.on_disk.points import TRANSFORMED_ROWS, iterate_blocks
from normbench.normalizers.decomposition import Array, Decomposition, PointsCache, rounding_share
from normbench.normalizers.schemes import POINT_DTYPES, Scheme

Formula = Callable[[NDArray[Any]], NDArray[Any]]
TEXTBOOK_RIDGE = 1e-7  # the textbook's, and ours unless it is set


class Whitening(Scheme):
    """The base of the family: fit, transform, inverse; a member rotates A in `_matrix`.

    Every A is a rotation of the half `B = (D + ridge I)^-1/2 V' T^-1/2`, (k, N), where
    `T^-1/2 S T^-1/2 = V D V'` and T = I, or the variances for the members on the correlation
    matrix. B has a row for each of the k live directions, those that are not dropped. Dropped
    directions are mapped to zero.

    Args:
        ridge: The constant added to every eigenvalue, in squared units of what is decomposed.
        rtol: A direction whose eigenvalue is at most rtol times the largest holds only rounding on
            the training points, and is dropped; None for N times machine epsilon (at least 10
            times).

    Attributes:
        mean_: m `(N,)`.
        scale_: The roots of T's diagonal `(N,)`.
        eigenvalues_: D's diagonal `(N,)`, decreasing.
        components_: V' `(M, N)`, one eigenvector a row; M < N where fewer points than features
            leave the others undetermined.
        dropped_: The mask `(N,)` of dropped directions.
        matrix_: A `(k or N, N)`.

    Raises:
        ValueError: For an option out of range.

    References:
        See the module.
    """

    fits_in_float64 = True  # without a float64 copy of all points
    _correlation = False
    _scales = True
    _complete = False  # whether eigenvectors of zero eigenvalues are needed, too
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "ridge": [Interval(Real, 0, np.inf, closed="left")],
        "rtol": [Interval(Real, 0, 1, closed="left"), None],
    }

    def __init__(self, ridge: float = 1e-7, rtol: float | None = None) -> None:
        self.ridge = ridge
        self.rtol = rtol

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn mean and spectrum from points X (P, N), P at least 2; return self."""
        X = validate_data(self, X, dtype=POINT_DTYPES, ensure_min_samples=2)
        return self.learn(PointsCache(X))

    def learn(self, moments: PointsCache) -> Self:
        """Learn as `fit` does, from moments that schemes share, of points in memory or on disk.

        Args:
            moments: The moments of the training points.

        Returns:
            The scheme.

        Raises:
            ValueError: An option is out of its range, or the squares of the features overflow.
        """
        self._validate_params()
        self.n_features_in_ = moments.x.shape[1]
        decomposition = self._decompose(moments)
        self.mean_, self.scale_, self.eigenvalues_, self.components_ = decomposition
        rtol = rounding_share(self.n_features_in_) if self.rtol is None else self.rtol
        self._n_features_out = self._width()  # M; a member may keep fewer than N
        self.dropped_ = self.eigenvalues_ <= rtol * self.eigenvalues_[0]
        self.dropped_[self._n_features_out :] = True  # components that are not kept
        self.dropped_[len(self.components_) :] = True  # of rounding level, whatever rtol says
        half = self._live_vectors() / (self._divisors()[:, None] * self.scale_)
        self.matrix_ = self._matrix(half)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return `A (x - m)` for points X (P, N), in their type; zeros in dropped directions."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=POINT_DTYPES, reset=False)
        z = np.zeros((len(X), self._n_features_out), dtype=X.dtype)
        live_columns = z[:, : len(self.matrix_)]
        # In float64, a block at a time: float32 would lose an offset's digits, and those of the
        # directions of small variance.
        for block, rows in iterate_blocks(X, TRANSFORMED_ROWS):
            live_columns[block] = (rows - self.mean_) @ self.matrix_.T
        return z

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Return points (P, N) in the space of the inputs; dropped directions at their mean.

        Args:
            X: Points under the scheme (P, M).
        """
        X = check_array(X, dtype=POINT_DTYPES)
        # A is a rotation times the half B: `half_inverse` `(N, k)` undoes B on the live directions.
        # Columns of X beyond the rows of A are those of dropped directions.
        half_inverse = self.scale_[:, None] * self._live_vectors().T * self._divisors()
        rotation = self.matrix_ @ half_inverse
        x = (X[:, : len(rotation)] @ rotation) @ half_inverse.T + self.mean_
        return x.astype(X.dtype, copy=False)

    def _matrix(self, half: Array) -> Array:
        """Return A, (k, N) or (N, N), a rotation of the half B (k, N): here B itself."""
        return half

    def _decompose(self, moments: PointsCache) -> Decomposition:
        """Return the decomposition that A is computed from."""
        return moments.get(self._correlation, self._complete)

    def _width(self) -> int:
        """Return the number of features of the output."""
        return len(self.mean_)

    def _divisors(self) -> Array:
        """Return `sqrt(d + ridge)` of each live direction, d its eigenvalue, (k,), or ones."""
        values = self.eigenvalues_[~self.dropped_]
        return np.sqrt(values + self.ridge) if self._scales else np.ones_like(values)

    def _live_vectors(self) -> Array:
        """Return the eigenvectors of the live directions (k, N): the first, as values decrease."""
        return self.components_[: np.count_nonzero(~self.dropped_)]


class PCASphere(Whitening):
    """PCA sphering: `A = (D + ridge I)^-1/2 V'`, components by decreasing variance.

    Options, learned attributes and errors: `Whitening`.

    References:
        `Whitening`; Watt, Borhani, Katsaggelos, Machine Learning Refined, section 9.5, with ridge
        1e-7.
    """


class ZCASphere(Whitening):
    """ZCA sphering: `A = V (D + ridge I)^-1/2 V'`, the whitening closest to the inputs.

    Options, learned attributes, errors and source: `Whitening`.
    """

    def _matrix(self, half: Array) -> Array:
        """Return the half rotated back to the inputs' axes, `(N, N)`."""
        return self._live_vectors().T @ half


class PCACorSphere(PCASphere):
    """PCA-cor sphering: `A = (Q + ridge I)^-1/2 G' T^-1/2` with the correlation `R = G Q G'`.

    The ridge is added to the correlation's eigenvalues; a constant feature keeps scale 1.
    Options, learned attributes, errors and source: `Whitening`.
    """

    _correlation = True


class ZCACorSphere(ZCASphere):
    """ZCA-cor sphering: `A = G (Q + ridge I)^-1/2 G' T^-1/2`, closest to the standardized inputs.

    The ridge is added to the correlation's eigenvalues; a constant feature keeps scale 1.
    Options, learned attributes, errors and source: `Whitening`.
    """

    _correlation = True


class CholeskySphere(Whitening):
    """Cholesky sphering: `A = L'` with `L L' = (S + ridge I)^-1`, L lower triangular, diagonal > 0.

    With k live directions of N, A is the row echelon form (k, N) with positive pivots for which
    `A'A` is the pseudo-inverse; the N - k last features of the output are zero.
    Options, learned attributes, errors and source: `Whitening`.
    """

    def _matrix(self, half: Array) -> Array:
        """Return the row echelon form `(k, N)` of the half."""
        return row_echelon_form(half)


class LedoitWolfSphere(PCASphere):
    """PCA sphering of the shrunk covariance `(1 - delta) S + delta (tr S / N) I`.

    delta is scikit-learn's Ledoit-Wolf estimate; no direction is dropped where delta > 0. Options,
    other learned attributes and errors: `Whitening`.

    Attributes:
        shrinkage_: delta.
        eigenvalues_: Of the shrunk covariance `(N,)`.

    References:
        Ledoit, Wolf, "A well-conditioned estimator for large-dimensional covariance matrices",
        Journal of Multivariate Analysis 88 (2004).
    """

    _complete = True

    def _decompose(self, moments: PointsCache) -> Decomposition:
        """Return the decomposition with eigenvalues `(1 - delta) d + delta mean(d)`."""
        decomposition = super()._decompose(moments)
        self.shrinkage_ = estimate_shrinkage(moments.x, decomposition)
        target = self.shrinkage_ * decomposition.values.mean()
        return decomposition._replace(values=(1 - self.shrinkage_) * decomposition.values + target)


class PCARotation(Whitening):
    """The first principal components, rotated and not scaled: `A = V_k'`.

    Learned attributes: `Whitening`.

    Args:
        components: How many; an integer from 1 to N, or a number between 0 and 1 for as many as
            hold that share of the variance, or None for all.
        rtol: As in `Whitening`; a dropped direction gives zeros.

    Raises:
        ValueError: For an option out of range.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 8.3.
    """

    _scales = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            None,
        ],
        "rtol": Whitening._parameter_constraints["rtol"],
    }

    def __init__(self, components: float | None = None, rtol: float | None = None) -> None:
        self.components = components
        self.rtol = rtol

    def _width(self) -> int:
        """Return how many components are kept, by the option and the variances."""
        features = len(self.mean_)
        width = features if self.components is None else self.components
        if width > features:
            raise ValueError(
                f"components={width} is more than the {features} features of the data; choose "
                f"{features} or fewer, or null for all"
            )
        if width < 1:  # the fewest components that hold at least this share of the variance
            variance = np.cumsum(self.eigenvalues_)
            width = min(int(np.searchsorted(variance, width * variance[-1])) + 1, features)
        return int(width)


def estimate_shrinkage(x: Any, decomposition: Decomposition) -> float:
    """Return Ledoit and Wolf's estimate of the shrinkage delta, in `[0, 1]`, in one pass.

    With `S = V D V'` and `mu = tr S / N` it is `min(b, d) / d`, where `d = |S - mu I|^2 / N` and
    `b = (mean |x - m|^4 - |S|^2) / (N P)`.

    Args:
        x: Points (P, N), in memory or read by blocks.
        decomposition: The decomposition of their covariance S, with all eigenvalues.
    """
    values, fourth_powers = decomposition.values, 0.0
    for _, rows in iterate_blocks(x, TRANSFORMED_ROWS):
        centred = rows - decomposition.mean
        fourth_powers += float(np.sum(np.einsum("pn,pn->p", centred, centred) ** 2))
    points, features = x.shape
    d = float(values.var())
    b = min((fourth_powers / points - float(values @ values)) / (features * points), d)
    return b / d if b > 0 else 0.0


def row_echelon_form(rows: Array) -> Array:
    """Return the row echelon form R `(k, N)`, pivots positive, for which `R'R` = rows'rows.

    Without dependent columns this is the triangle of a QR decomposition. A column that depends on
    those before it has no pivot: the row's pivot is in the next independent column. So the form is
    unique and does not depend on rounding.

    Args:
        rows: `(k, N)`, of rank k.
    """
    # Gram and Schmidt's method: a basis of the independent columns, whose product with the rows
    # has a pivot, the length of what is new in a column, in each row.
    basis, echelon = np.zeros((0, len(rows))), np.zeros_like(rows)
    for number, column in enumerate(rows.T):
        residual = column - basis.T @ (basis @ column)
        residual -= basis.T @ (basis @ residual)  # what rounding left
        length = np.linalg.norm(residual)
        if length > 1e-9 * np.linalg.norm(column):
            basis = np.vstack([basis, residual / length])
        echelon[: len(basis), number] = basis @ column
    return echelon


def textbook_standard(x: NDArray[Any]) -> NDArray[Any]:
    """Return `(x - mean) / standard deviation` of points (P, N), without special cases."""
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


def textbook_sphere(x: NDArray[Any]) -> NDArray[Any]:
    """Return `(x - mean) V (D + ridge I)^-1/2` of points (P, N), with the covariance `V D V'`.

    No special case is handled. Source: Watt, Borhani, Katsaggelos, "Machine Learning Refined",
    section 9.5.
    """
    centred = x - x.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / x.dtype.type(len(x)))
    return np.asarray(centred @ vectors / np.sqrt(values + x.dtype.type(TEXTBOOK_RIDGE)))


# Standardizing and sphering as other sources write them, for `record=[formulas]`, in the precision
# of the points. None of them is a scheme: two of them return numbers that are not finite.
FORMULAS: dict[str, Formula] = {
    "standard_textbook": textbook_standard,
    "standard_scikit": lambda x: StandardScaler().fit(x).transform(x),  # our `standard`
    "sphere_textbook": textbook_sphere,
    "sphere_scikit": lambda x: PCA(whiten=True).fit(x).transform(x),
    "sphere_ours": lambda x: PCASphere(TEXTBOOK_RIDGE).fit(x).transform(x),
}
