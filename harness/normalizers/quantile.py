"""scikit-learn's quantile transformer, quiet on data of few points."""

import warnings
from typing import Any, Self

from sklearn.preprocessing import QuantileTransformer


class Quantile(QuantileTransformer):  # type: ignore[misc]
    """scikit-learn's `QuantileTransformer`; `n_quantiles` is how many at most.

    With fewer points than that there is a quantile a point, as scikit-learn has it, without the
    warning: the default is not a mistake of the user's. Options, learned attributes and errors:
    `QuantileTransformer`.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the quantiles of points X (P, N); return self."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"n_quantiles \(\d+\) is greater than")
            return super().fit(X, y)
