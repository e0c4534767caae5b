"""The rules: on a history, on a step size, on a grid."""

__all__ = ["convergence", "judging", "search"]
