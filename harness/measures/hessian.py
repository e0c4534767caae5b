"""The condition number of the Hessian at the start and at the minimum."""

import numpy as np

from normbench import names
from normbench.datasets import Dataset
from normbench.engine.hessian import Hessian
from normbench.measures.contract import LINEAR, Array, Findings, FinishedJob, Measure
from normbench.theory import spectra
from normbench.theory.minimum import weights_of

MAX_WEIGHTS = 2000  # the eigenvalues then take seconds


def _reason_against(dataset: Dataset) -> str:
    """Return the reason why the Hessian is too large for its eigenvalues; empty where it is not.

    The scheme is not fitted yet, so that the size is a bound: a scheme may give fewer features, and
    a cost one score of two classes.
    """
    size = (dataset.x.shape[1] + 1) * max(dataset.classes, 1)  # real targets count 0 classes
    if size <= MAX_WEIGHTS:
        return ""
    matrix = f"a matrix of more than {MAX_WEIGHTS} takes minutes"
    return f"{dataset.name} has up to {size} weights, and {matrix}"


def take(job: FinishedJob) -> Findings:
    """Return the live eigenvalues of the Hessian, decreasing, and its condition numbers.

    `start`: at the first start. `minimum`: at the weights of the least cost under this scheme,
    empty where no weights attain the least cost, or none are known. The numbers
    `theory/condition_start` and `theory/condition_minimum`: the largest over the smallest.
    """
    descent = job.descent
    eigenvalues = {"start": _live_eigenvalues(descent.train.hessian(descent.start[0]))}
    eigenvalues["minimum"] = np.empty(0)
    # Scores of the least cost: None where no solver found weights that attain it.
    linear, scores = descent.train.linear, descent.least.scores
    if linear is not None and scores is not None and not descent.least.at_infinity:
        weights = weights_of(scores, linear.points)
        eigenvalues["minimum"] = _live_eigenvalues(linear.hessian(weights))
    metrics = {
        names.CONDITION_START.key: spectra.Spectrum(eigenvalues["start"]).condition_number,
        names.CONDITION_MINIMUM.key: spectra.Spectrum(eigenvalues["minimum"]).condition_number,
    }
    return Findings(metrics, arrays=eigenvalues)


def _live_eigenvalues(hessian: Hessian) -> Array:
    """Return the eigenvalues of a Hessian above rounding, decreasing."""
    values = np.asarray(np.linalg.eigvalsh(hessian.matrix())[::-1], dtype=np.float64)
    return spectra.eigenvalues_above_rounding(values, len(values))


MEASURE = Measure(take, record="hessian", reason_against=_reason_against, model_kind=LINEAR)
