"""Descend the cost of stacked models on points, all runs of a grid at once."""

__all__ = [
    "batches",
    "descent",
    "hessian",
    "midway",
    "minibatch",
    "network",
    "network_steps",
    "penalty",
    "preconditioner",
    "problem",
    "rounds",
    "schedule",
    "settings",
    "start",
    "statistics",
    "targets",
]
