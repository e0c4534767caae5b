"""The rules of verdicts: on a history, on a step size, on a grid."""
