"""The curvatures at the best step's last weights: why step sizes above `2/L` work."""

import numpy as np

from normbench import names
from normbench.measures.contract import BEST, Findings, Finished, Measure
from normbench.theory import spectra
from normbench.theory.budget import Work
from normbench.theory.directions import MAX_DENSE_WEIGHTS, decomposition


def take(made: Finished) -> Findings:
    """Return the live eigenvalues of the Hessian there (n,), decreasing; of the first start."""
    here = made.descent
    matrix = here.train.hessian(here.best_weights).matrix()
    values = spectra.live(np.linalg.eigvalsh(matrix).astype(np.float64), len(matrix))
    return Findings(arrays={names.CURVATURES_BEST.key: values})


def _applies(made: Finished) -> bool:
    here = made.descent
    return (
        here.plain
        and here.best is not None
        and here.theory.threshold is not None
        and not here.theory.exact
        and int(np.prod(here.train.shape)) <= MAX_DENSE_WEIGHTS
    )


def _work(made: Finished) -> Work:
    effort = made.descent.train.effort
    size = int(np.prod(made.descent.train.shape))
    solved = decomposition(size, len(made.z), size)
    passes = effort.setup + size * effort.product + solved.passes
    return Work(passes, effort.memory + solved.memory)


MEASURE = Measure(
    take, what="curvatures at the best weights", work=_work, applies=_applies, follows=BEST
)
