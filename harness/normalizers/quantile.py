"""scikit-learn's quantile transformer, quiet on data of few points."""

import warnings
from typing import Any, Self

from sklearn.preprocessing import QuantileTransformer


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
