"""Models: how the scores of a point follow from its features and the weights."""

from normbench.models.linear import linear
from normbench.models.network import Mlp

__all__ = ["Mlp", "linear"]
