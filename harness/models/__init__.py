"""Models: how the scores of a point follow from its features and the weights."""

from normbench.models.network import Mlp, linear

__all__ = ["Mlp", "linear"]
