"""Schemes that no library has, as scikit-learn transformers: whitening and related schemes.

Conventions of every scheme: variance divides by P; statistics come from the training points alone,
in float64 whatever the type of the points; the points keep their type.
"""

from normbench.normalizers.on_columns import FeatureSelection, OnColumns
from normbench.normalizers.schemes import Contrast, Pareto, Power, Quantile, RandomRotation
from normbench.normalizers.whitening import (
    CholeskySphere,
    LedoitWolfSphere,
    PCACorSphere,
    PCARotation,
    PCASphere,
    ZCACorSphere,
    ZCASphere,
)

__all__ = [
    "PCARotation",
    "PCASphere",
    "ZCASphere",
    "CholeskySphere",
    "PCACorSphere",
    "ZCACorSphere",
    "LedoitWolfSphere",
    "Contrast",
    "FeatureSelection",
    "OnColumns",
    "Quantile",
    "Pareto",
    "Power",
    "RandomRotation",
]
