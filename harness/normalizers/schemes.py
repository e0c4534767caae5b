"""The schemes beside the whitenings: rotation, contrast, Pareto, quantile and power transforms."""

import warnings
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats
from sklearn import base
from sklearn.preprocessing import PowerTransformer, QuantileTransformer, StandardScaler
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from normbench.normalizers.decomposition import is_rounding

Array = NDArray[np.float64]
POINT_DTYPES = [np.float64, np.float32]
MAX_EXPONENT = 100.0  # of e: the span of a power over a feature, far beyond a machine epsilon


class Scheme(base.ClassNamePrefixFeaturesOutMixin, base.TransformerMixin, base.BaseEstimator):  # type: ignore[misc]
    """The base of the schemes of this package."""


class RandomRotation(Scheme):
    """A random rotation about the origin: `z = Q x`, every rotation equally likely.

    Q is the orthogonal factor of the QR decomposition of a standard normal matrix, with the signs
    that make the diagonal of R positive, and determinant 1.

    Args:
        seed: The seed of the draw; the same seed and number of features give the same Q, whatever
            the points.

    Attributes:
        matrix_: Q `(N, N)`.

    Raises:
        ValueError: For a seed that is not an integer, 0 or more.

    References:
        Mezzadri, "How to generate random matrices from the classical compact groups", Notices of
        the AMS 54 (2007).
    """

    fits_in_float64 = True  # it learns nothing of the points
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "seed": [Interval(Integral, 0, None, closed="left")]
    }

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the rotation, which depends on the number of features and the seed alone.

        Args:
            X: Points (P, N).
            y: Not used.

        Returns:
            The scheme.

        Raises:
            ValueError: The seed is not an integer, 0 or more.
        """
        self._validate_params()
        X = validate_data(self, X, dtype=POINT_DTYPES)
        self.matrix_ = draw_rotation(X.shape[1], self.seed)
        self._n_features_out = X.shape[1]
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return points X (P, N) rotated, in their type."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=POINT_DTYPES, reset=False)
        return np.asarray(X @ self.matrix_.T, dtype=X.dtype)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Return points X (P, N) rotated back, in their type."""
        X = check_array(X, dtype=POINT_DTYPES)
        return np.asarray(X @ self.matrix_, dtype=X.dtype)


def draw_rotation(features: int, seed: int) -> Array:
    """Return a random rotation `(N, N)`, uniformly distributed.

    Args:
        features: The number of features N.
        seed: The seed of the draw, an integer, 0 or more.
    """
    normal_matrix = np.random.default_rng(seed).standard_normal((features, features))
    orthogonal, triangular = np.linalg.qr(normal_matrix)
    # With a positive diagonal of R the factor Q is unique, and uniformly distributed.
    orthogonal *= np.where(np.diag(triangular) < 0, -1.0, 1.0)
    if np.linalg.det(orthogonal) < 0:  # a reflection: with one column reversed it is a rotation
        orthogonal[:, 0] *= -1
    return np.asarray(orthogonal)


class Contrast(base.OneToOneFeatureMixin, Scheme):  # type: ignore[misc]
    """Each point minus its own mean, over its own standard deviation (divided by N).

    `z = (x - mean(x)) / std(x)` over the features of one point, such as the pixels of an image: a
    brighter or paler copy of an image becomes the same point. A constant point becomes zeros. It
    learns nothing and is not affine.

    References:
        Watt, Borhani, Katsaggelos, "Machine Learning Refined", section 9.3 (contrast normalization
        of images).
    """

    fits_in_float64 = True  # it learns nothing of the points

    def fit(self, X: Any, y: Any = None) -> Self:
        """Note the number of features; each point is normalized by itself.

        Args:
            X: Points (P, N).
            y: Not used.

        Returns:
            The scheme.
        """
        validate_data(self, X, dtype=POINT_DTYPES)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return points X (P, N) normalized, in their type; the statistics are in float64."""
        X = validate_data(self, X, dtype=POINT_DTYPES, reset=False)
        centred = X - X.mean(axis=1, keepdims=True, dtype=np.float64)
        deviation = np.sqrt(np.einsum("pn,pn->p", centred, centred) / X.shape[1])
        is_constant = np.ptp(X, axis=1) == 0  # whose deviation may be the rounding of its mean
        z = centred / np.where(is_constant, 1.0, deviation)[:, None]
        z[is_constant] = 0.0
        return np.asarray(z.astype(X.dtype, copy=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class Pareto(StandardScaler):  # type: ignore[misc]
    """Pareto scaling: `z = (x - m) / sqrt(s)`, s the standard deviation (divided by P).

    A feature keeps the variance s, so that large features stay larger, but less so. A constant
    feature keeps scale 1.

    Args:
        copy: As in `StandardScaler`.

    Attributes:
        mean_: m `(N,)`.
        scale_: The divisors `(N,)`.

    References:
        van den Berg et al., "Centering, scaling, and transformations", BMC Genomics 7 (2006),
        table 1.
    """

    def __init__(self, *, copy: bool = True) -> None:
        super().__init__(copy=copy)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more points, beside those of earlier calls; `fit` calls it, too.

        Args:
            X: Points (P, N).
            y: Not used.
            sample_weight: The weight of each point (P,), as in scikit-learn's `StandardScaler`.

        Returns:
            The scheme, whose divisors are square roots of the standard deviations of all points so
            far.
        """
        super().partial_fit(X, y, sample_weight)
        # `StandardScaler` sets `scale_` anew at each call, so that only one root is taken.
        self.scale_: Array = np.sqrt(self.scale_)
        return self


class Quantile(QuantileTransformer):  # type: ignore[misc]
    """scikit-learn's `QuantileTransformer`, in which `n_quantiles` is an upper bound.

    With fewer points there is one quantile a point, as in scikit-learn, without the warning: the
    default is not a user's mistake. Options, learned attributes and errors: `QuantileTransformer`.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the quantiles of each feature.

        Args:
            X: Points (P, N). Fewer points than quantiles give as many quantiles as points.
            y: Not used.

        Returns:
            The scheme.
        """
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"n_quantiles \(\d+\) is greater than")
            return super().fit(X, y)


class Power(base.OneToOneFeatureMixin, Scheme):  # type: ignore[misc]
    """scikit-learn's `PowerTransformer`, accurate on features that are far from 0.

    The Yeo-Johnson transform of `x >= 0` is `((1 + x)^p - 1) / p`, standardized. Where a feature
    varies little beside its size, as latitudes and years do, the likeliest p is far from 0, and
    rounding turns this into a constant. About a middle m it is `(((1 + x) / (1 + m))^p - 1) / p`,
    but for a factor and a constant that standardizing removes; with the geometric mean for
    `1 + m`, the likeliest p is the one for which its variance is least. A feature below 0 is
    reflected; one of both signs has m = 0. The Box-Cox transform has `x` in place of `1 + x`.

    Args:
        method: `yeo-johnson`, or `box-cox` for positive features.

    Attributes:
        lambdas_: The parameters of the transforms `(N,)`, as in scikit-learn.
        signs_: -1 for the features that are reflected, else 1, `(N,)`.
        powers_: p `(N,)`, of the reflected features `2 - lambdas_`.
        middles_: m `(N,)`.

    References:
        Yeo, Johnson, "A new family of power transformations to improve normality or symmetry",
        Biometrika 87 (2000).
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "method": PowerTransformer._parameter_constraints["method"]
    }

    def __init__(self, method: str = "yeo-johnson") -> None:
        self.method = method

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the power of each feature by maximum likelihood.

        Args:
            X: Points (P, N).
            y: Not used.

        Returns:
            The scheme.

        Raises:
            ValueError: An entry is not positive, under Box-Cox.
        """
        self._validate_params()
        x = self._check_points(X, reset=True).astype(np.float64, copy=False)
        self.signs_ = np.where(x.max(axis=0) < 0, -1.0, 1.0)
        self.powers_, self.middles_ = np.ones(x.shape[1]), np.full(x.shape[1], 1 - self._shift)
        is_constant = is_rounding(len(x), x.mean(axis=0), x.var(axis=0))
        for n in np.flatnonzero(~is_constant):
            feature = self.signs_[n] * x[:, n]
            if feature.min() < 0:
                self.powers_[n] = stats.yeojohnson_normmax(feature)
            else:
                self.middles_[n] = np.exp(np.log(self._shift + feature).mean()) - self._shift
                self.powers_[n] = _likeliest_power(self._ratios(feature, self.middles_[n]))
        self.lambdas_ = np.where(self.signs_ < 0, 2 - self.powers_, self.powers_)
        self._scaler = StandardScaler().fit(self._bend(x))
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return points X (P, N) transformed, in their type."""
        check_is_fitted(self)
        x = self._check_points(X, reset=False)
        z = self._scaler.transform(self._bend(x.astype(np.float64, copy=False)))
        return np.asarray(z, dtype=x.dtype)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Return points under the scheme X (P, N) as points before it."""
        bent = self.signs_ * self._scaler.inverse_transform(np.asarray(X, dtype=np.float64))
        p, m = self.powers_, self.middles_
        with np.errstate(all="ignore"):  # each of the two formulas is for one side of 0
            x = m + (self._shift + m) * special.inv_boxcox1p(bent, p)
            if self._shift:
                zero = special.boxcox1p(-m / (1 + m), p)
                below = -special.inv_boxcox1p((zero - bent) * (1 + m) ** p, 2 - p)
                x = np.where(bent < zero, below, x)
        return np.asarray(self.signs_ * x, dtype=np.asarray(X).dtype)

    @property
    def _shift(self) -> float:
        """What is added to a feature before its power is taken."""
        return 0.0 if self.method == "box-cox" else 1.0

    def _check_points(self, X: Any, reset: bool) -> NDArray[Any]:
        """Return points (P, N), checked; `reset`: whether to learn the number of features."""
        x = validate_data(self, X, dtype=POINT_DTYPES, reset=reset)
        if not self._shift and x.min() <= 0:
            raise ValueError("Box-Cox takes strictly positive features; use method=yeo-johnson")
        return np.asarray(x)

    def _ratios(self, x: Array, middles: Array) -> Array:
        """Return `(s + x) / (s + m) - 1`, s being the shift, with the digits of x near m."""
        return (x - middles) / (self._shift + middles)

    def _bend(self, x: Array) -> Array:
        """Return points (P, N) transformed, but for the factors and constants of the class."""
        x, p, m = self.signs_ * x, self.powers_, self.middles_
        bent = special.boxcox1p(self._ratios(np.maximum(x, 0.0), m), p)
        if self._shift and (x < 0).any():
            with np.errstate(all="ignore"):  # each of the two formulas is for one side of 0
                below = special.boxcox1p(-x, 2 - p) * (1 + m) ** -p
            bent = np.where(x < 0, special.boxcox1p(-m / (1 + m), p) - below, bent)
        return np.asarray(self.signs_ * bent)


def _likeliest_power(ratios: Array) -> float:
    """Return the power p of maximum likelihood, given the ratios of a feature to its middle (P,).

    About the geometric mean it is that for which the variance of the transformed is least.
    """
    logs = np.log1p(ratios)
    centred = logs - logs.mean()
    largest = MAX_EXPONENT / np.ptp(logs)
    return float(
        optimize.fminbound(
            lambda power: np.log(np.var(np.expm1(power * centred) / power)),
            -largest,
            largest,
            xtol=1e-9 * largest,
        )
    )
