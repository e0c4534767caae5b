"""The rules: on a history, on a step size, on a grid."""
