"""Costs: plain autograd functions of scores, never of weights.

A cost takes scores `(R, C, p)` and the targets `(p,)` of any block of p points, and returns the
SUM over those points, one number per run `(R,)`; the harness divides by the number of points.
Targets are -1/+1 or real numbers where a point has one score (C = 1), class indices 0..C-1
otherwise. Those here declare their traits and come with a fused derivative: see
`normbench.costs.declaration`.
"""

from normbench.costs.formulas import count_misclassified as count_misclassified
from normbench.costs.formulas import least_absolute_deviations as least_absolute_deviations
from normbench.costs.formulas import least_squares as least_squares
from normbench.costs.formulas import multiclass_perceptron as multiclass_perceptron
from normbench.costs.formulas import multiclass_softmax as multiclass_softmax
from normbench.costs.formulas import perceptron as perceptron
from normbench.costs.formulas import softmax as softmax
from normbench.costs.formulas import squared_margin as squared_margin
