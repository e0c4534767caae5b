"""Schemes that no library has, as scikit-learn transformers: whitening and related schemes.

Conventions of every scheme: variance divides by P; statistics come from the training points alone,
in float64 whatever the type of the points; the points keep their type.
"""

from normbench.normalizers.on_columns import FeatureSelection as FeatureSelection
from normbench.normalizers.on_columns import OnColumns as OnColumns
from normbench.normalizers.schemes import Contrast as Contrast
from normbench.normalizers.schemes import Pareto as Pareto
from normbench.normalizers.schemes import Power as Power
from normbench.normalizers.schemes import Quantile as Quantile
from normbench.normalizers.schemes import RandomRotation as RandomRotation
from normbench.normalizers.whitening import CholeskySphere as CholeskySphere
from normbench.normalizers.whitening import LedoitWolfSphere as LedoitWolfSphere
from normbench.normalizers.whitening import PCACorSphere as PCACorSphere
from normbench.normalizers.whitening import PCARotation as PCARotation
from normbench.normalizers.whitening import PCASphere as PCASphere
from normbench.normalizers.whitening import ZCACorSphere as ZCACorSphere
from normbench.normalizers.whitening import ZCASphere as ZCASphere
