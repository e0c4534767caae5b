"""The histories that theory predicts for plain descent on a quadratic, below `2/L`."""

import numpy as np

from normbench import names
from normbench.measures.contract import Array, Findings, FinishedJob, JudgedDescent, Measure, OfStep
from normbench.normalizers.decomposition import moment_rows
from normbench.theory import spectra
from normbench.verdicts.judging import Step


def take(job: FinishedJob) -> Findings:
    """Return the predicted history and iterations to targets of each step size below `2/L`.

    The arrays hold what predictions are computed from: `eigenvalues` (n,), those of the Hessian
    above rounding, and `excess` (starts, n), the excess of each start along each eigenvector.
    """
    descent = job.descent
    assert descent.theory.threshold is not None
    problems = _problems(descent)
    return Findings(
        arrays={
            "eigenvalues": problems[0].values,
            "excess": np.array([problem.excess_by_direction for problem in problems]),
        },
        of_steps={
            number: _of_step(descent, problems, step)
            for number, step in enumerate(descent.steps)
            if step.step_size < descent.theory.threshold
        },
    )


def _problems(descent: JudgedDescent) -> list[spectra.Quadratic]:
    """Return, for each start, the quadratic cost in the eigenvectors of its Hessian."""
    linear = descent.train.linear
    assert linear is not None
    at_start = linear.evaluate(descent.start)
    hessian = descent.theory.spectrum
    assert at_start.gradient is not None
    assert hessian is not None
    return [
        spectra.quadratic(hessian, moment_rows(linear.points), float(cost), gradient, linear.l2)
        for cost, gradient in zip(at_start.costs, at_start.gradient.astype(np.float64))
    ]


def _of_step(descent: JudgedDescent, problems: list[spectra.Quadratic], step: Step) -> OfStep:
    """Return the predictions for a step size, medians over the starts, and their error.

    Args:
        descent: The judged descent.
        problems: The quadratic cost of each start, from `_problems`.
        step: The judged step size.
    """
    iterations, size = descent.settings.iterations, step.step_size
    histories = [spectra.predicted_history(problem, size, iterations) for problem in problems]
    predicted = np.median(histories, axis=0)
    metrics = {}
    for name, goal in descent.judging_context.targets.items():
        gap = goal - descent.judging_context.minimum
        counts = [spectra.predicted_iterations(problem, size, gap) for problem in problems]
        metrics[names.predicted(name).key] = float(np.median(counts))
    error = _error(predicted, step.histories[names.TRAIN_COST.key])
    if error is not None:
        metrics[names.PREDICTION_ERROR.key] = error
    return OfStep(metrics, {names.PREDICTED_COST.key: predicted})


def _error(predicted: Array, measured: Array) -> float | None:
    """Return the largest relative error of a predicted history (K + 1,); None without any.

    Iterations at which the measured cost is 0 have no relative error, and are left out. The
    measured history (k,) is shorter where a run stopped being finite.
    """
    error = np.abs(predicted[: len(measured)] - measured)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = error / np.abs(measured)
    finite = relative[np.isfinite(relative)]
    return float(finite.max()) if len(finite) else None


def _applies(job: FinishedJob) -> bool:
    """Return whether the history is known exactly: plain descent on a resolved quadratic."""
    descent = job.descent
    return (
        descent.theory.exact
        and descent.plain
        and bool(descent.theory.threshold)
        and descent.theory.spectrum is not None
        and descent.theory.spectrum.is_complete
        # False of NaN, too: some directions are then lost in rounding.
        and descent.theory.spectrum.condition_number <= spectra.MAX_PREDICTED_CONDITION
    )


MEASURE = Measure(take, applies=_applies)
