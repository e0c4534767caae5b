"""Schemes that no library has: the whitening family, as scikit-learn transformers.

Conventions of every scheme: variance divides by P; statistics come from the training points
alone, in float64 whatever the type of the points; the points keep their type.
"""

from harness.normalizers.whitening import PCASphere

__all__ = ["PCASphere"]
