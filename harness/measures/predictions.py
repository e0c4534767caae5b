"""The histories that theory predicts of plain descent on a quadratic, below `2/L`."""

import numpy as np

from normbench import names
from normbench.measures.contract import Array, Descended, Findings, Finished, Measure, OfStep
from normbench.theory import spectra
from normbench.verdicts.judging import Step


def take(made: Finished) -> Findings:
    """Return, of each step below the threshold, its predicted history and iterations to targets.

    And what they are made from: `eigenvalues` (n,) of the Hessian, those that are not rounding, and
    `excess` (starts, n), how much of each start's excess over the least cost lies along each.
    """
    here = made.descent
    assert here.theory.threshold is not None
    problems = _problems(here)
    return Findings(
        arrays={
            "eigenvalues": problems[0].values,
            "excess": np.array([problem.shares for problem in problems]),
        },
        of_steps={
            number: _of_step(here, problems, step)
            for number, step in enumerate(here.steps)
            if step.step_size < here.theory.threshold
        },
    )


def _problems(here: Descended) -> list[spectra.Quadratic]:
    """Return the quadratic along its Hessian's eigenvectors, as each start sees it."""
    linear = here.train.linear
    assert linear is not None
    at_start = linear.evaluate(here.start)
    hessian = here.theory.spectrum
    assert at_start.gradient is not None
    assert hessian is not None
    return [
        spectra.quadratic(hessian, linear.surrogate.moment_rows, float(cost), gradient, linear.l2)
        for cost, gradient in zip(at_start.costs, at_start.gradient.astype(np.float64))
    ]


def _of_step(here: Descended, problems: list[spectra.Quadratic], step: Step) -> OfStep:
    """Return medians over the starts."""
    iterations, size = here.settings.iterations, step.step_size
    paths = [spectra.predicted_history(each, size, iterations) for each in problems]
    predicted = np.median(paths, axis=0)
    metrics = {}
    for name, goal in here.bench.targets.items():
        gap = goal - here.bench.minimum
        counts = [spectra.predicted_iterations(each, size, gap) for each in problems]
        metrics[names.predicted(name).key] = float(np.median(counts))
    error = _error(predicted, step.histories[names.TRAIN_COST.key])
    if error is not None:
        metrics[names.PREDICTION_ERROR.key] = error
    return OfStep(metrics, {names.PREDICTED_COST.key: predicted})


def _error(predicted: Array, measured: Array) -> float | None:
    """Return how far the measured history is from the predicted one: the largest relative error.

    Where the cost is 0 a relative error says nothing and the point is left out.
    """
    error = np.abs(predicted[: len(measured)] - measured)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = error / np.abs(measured)
    finite = relative[np.isfinite(relative)]
    return float(finite.max()) if len(finite) else None


def _applies(made: Finished) -> bool:
    here = made.descent
    return (
        here.theory.exact
        and here.plain
        and bool(here.theory.threshold)
        and here.theory.spectrum is not None
        and here.theory.spectrum.is_complete
        and here.theory.spectrum.condition_number <= spectra.MAX_PREDICTED_CONDITION
    )


MEASURE = Measure(take, applies=_applies)
