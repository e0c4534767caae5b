"""Power transforms: each feature bent towards the normal distribution."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats
from sklearn.base import OneToOneFeatureMixin
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from normbench.normalizers.decomposition import is_rounding
from normbench.normalizers.rotation import POINT_DTYPES, Scheme

Array = NDArray[np.float64]
MAX_EXPONENT = 100.0  # of e: the span of a power over a feature, far beyond a machine epsilon


class Power(OneToOneFeatureMixin, Scheme):  # type: ignore[misc]
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
        log, exp = (np.log1p, np.expm1) if self._shift else (np.log, np.exp)
        self.signs_ = np.where(x.max(axis=0) < 0, -1.0, 1.0)
        self.powers_, self.middles_ = np.ones(x.shape[1]), np.full(x.shape[1], 1 - self._shift)
        is_constant = is_rounding(len(x), x.mean(axis=0), x.var(axis=0))
        for n in np.flatnonzero(~is_constant):
            feature = self.signs_[n] * x[:, n]
            if feature.min() < 0:
                self.powers_[n] = stats.yeojohnson_normmax(feature)
                continue
            self.middles_[n] = exp(log(feature).mean())
            self.powers_[n] = _likeliest_power(self._logs(feature, self.middles_[n]))
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
        check_is_fitted(self)
        bent = self.signs_ * self._scaler.inverse_transform(np.asarray(X, dtype=np.float64))
        p, m, log_scale = self.powers_, self.middles_, np.log(self._shift + self.middles_)
        with np.errstate(all="ignore"):  # each of the two formulas is for one side of 0
            x = m + (self._shift + m) * np.expm1(_root(p, bent))
            if self._shift:
                zero = _power(p, -log_scale)
                below = -np.expm1(_root(2 - p, (zero - bent) * np.exp(p * log_scale)))
                x = np.where(bent < zero, below, x)
        return np.asarray(self.signs_ * x, dtype=np.asarray(X).dtype)

    @property
    def _shift(self) -> float:
        """What is added to a feature before its logarithm is taken."""
        return 0.0 if self.method == "box-cox" else 1.0

    def _check_points(self, X: Any, reset: bool) -> NDArray[Any]:
        """Return points (P, N), checked; `reset`: whether to learn the number of features."""
        x = validate_data(self, X, dtype=POINT_DTYPES, reset=reset)
        if not self._shift and x.min() <= 0:
            raise ValueError("Box-Cox takes strictly positive features; use method=yeo-johnson")
        return np.asarray(x)

    def _logs(self, x: Array, middles: Array) -> Array:
        """Return `log((s + x) / (s + m))` of x from 0 on, s being the shift."""
        ratio = (x - middles) / (self._shift + middles)
        # Of x near m, log1p of the ratio keeps the digits that the two logarithms share.
        return np.where(
            np.abs(ratio) < 0.5,
            np.log1p(np.maximum(ratio, -0.5)),
            np.log(self._shift + x) - np.log(self._shift + middles),
        )

    def _bend(self, x: Array) -> Array:
        """Return points (P, N) transformed, but for the factors and constants of the class."""
        x, p = self.signs_ * x, self.powers_
        bent = _power(p, self._logs(np.maximum(x, 0.0) if self._shift else x, self.middles_))
        if self._shift and (x < 0).any():
            log_scale = np.log1p(self.middles_)
            below = _power(2 - p, np.log1p(np.maximum(-x, 0.0)))
            below = _power(p, -log_scale) - np.exp(-p * log_scale) * below
            bent = np.where(x < 0, below, bent)
        return np.asarray(self.signs_ * bent)


def _likeliest_power(logs: Array) -> float:
    """Return the power p of maximum likelihood, given the logarithms of a feature (P,)."""
    centred = logs - logs.mean()
    largest = MAX_EXPONENT / np.ptp(centred)
    return float(
        optimize.fminbound(
            lambda power: np.log(np.var(_power(power, centred))),
            -largest,
            largest,
            xtol=1e-9 * largest,
        )
    )


def _power(p: Any, logs: Array) -> Array:
    """Return `(exp(p logs) - 1) / p`, which is the logarithms themselves for p = 0."""
    return np.where(p == 0, logs, np.expm1(p * logs) / np.where(p == 0, 1.0, p))


def _root(p: Array, bent: Array) -> Array:
    """Return the logarithms whose `_power` the values are, `log(1 + p bent) / p`."""
    return np.where(p == 0, bent, np.log1p(p * bent) / np.where(p == 0, 1.0, p))
