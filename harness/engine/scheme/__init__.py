"""A scheme applied to points: fitted, probed, folded into the weights."""

__all__ = ["applying", "columns", "probed", "sparse", "under"]
