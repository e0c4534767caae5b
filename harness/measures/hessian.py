"""The condition number of the cost's second derivatives at the start and at the minimum."""

import numpy as np

from normbench import names
from normbench.datasets import Dataset
from normbench.engine.hessian import Hessian
from normbench.measures.contract import Array, Findings, Finished, Measure
from normbench.theory import spectra
from normbench.theory.minimum import weights_of

MOST = 2000  # weights: the eigenvalues then take seconds


def _unfit(dataset: Dataset) -> str:
    size = (dataset.x.shape[1] + 1) * max(dataset.classes, 1)
    if size <= MOST:
        return ""
    matrix = f"a matrix of more than {MOST} takes minutes"
    return f"{dataset.name} has up to {size} weights, and {matrix}"


def take(made: Finished) -> Findings:
    """Return the eigenvalues there, decreasing, without zeros to rounding, and what they come to.

    `start`: at the first start. `minimum`: at the weights of the least cost under this scheme,
    empty where no weights attain it, or none were solved for. The numbers
    `theory/condition_start` and `theory/condition_minimum`: the largest over the smallest.
    """
    here = made.descent
    found = {"start": _values(here.train.hessian(here.start[0]))}
    found["minimum"] = np.empty(0)
    linear, scores = here.train.linear, here.least.scores
    if linear is not None and scores is not None and not here.least.at_infinity:
        weights = weights_of(scores, linear.surrogate.moment_rows)
        found["minimum"] = _values(linear.hessian(weights))
    metrics = {
        names.CONDITION_START.key: spectra.Spectrum(found["start"]).condition_number,
        names.CONDITION_MINIMUM.key: spectra.Spectrum(found["minimum"]).condition_number,
    }
    return Findings(metrics, arrays=found)


def _values(hessian: Hessian) -> Array:
    values = np.asarray(np.linalg.eigvalsh(hessian.matrix())[::-1], dtype=np.float64)
    return spectra.live(values, len(values))


def _applies(made: Finished) -> bool:
    return made.descent.train.linear is not None


MEASURE = Measure(take, record="hessian", unfit=_unfit, applies=_applies)
