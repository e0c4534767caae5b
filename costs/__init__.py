"""Costs: plain autograd functions of scores, never of weights.

A cost takes scores `(R, C, p)` and the targets `(p,)` of any block of p points, and returns the
SUM over those points, one number per run `(R,)`; the harness divides by the number of points.
Targets are -1/+1 or real numbers where a point has one score (C = 1), class indices 0..C-1
otherwise. Those here declare their traits and come with a fused derivative: see
`normbench.costs.declaration`.
"""

from normbench.costs.least_absolute_deviations import least_absolute_deviations
from normbench.costs.least_squares import least_squares
from normbench.costs.misclassifications import count_misclassified
from normbench.costs.multiclass_perceptron import multiclass_perceptron
from normbench.costs.multiclass_softmax import multiclass_softmax
from normbench.costs.perceptron import perceptron
from normbench.costs.softmax import softmax
from normbench.costs.squared_margin import squared_margin

__all__ = [
    "count_misclassified",
    "least_absolute_deviations",
    "least_squares",
    "multiclass_perceptron",
    "multiclass_softmax",
    "perceptron",
    "softmax",
    "squared_margin",
]
