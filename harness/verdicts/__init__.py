"""The rules of verdicts: on a history, on a step size, on a grid."""

__all__ = ["best_step", "convergence", "judging", "refinement", "search"]
