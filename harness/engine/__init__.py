"""Descend the cost of stacked models on points, all runs of a grid at once."""

__all__ = [
    "descent",
    "hessian",
    "midway",
    "penalty",
    "preconditioner",
    "problem",
    "rounds",
    "settings",
    "start",
    "targets",
]
