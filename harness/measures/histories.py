"""All histories of a descent and what they are judged by, so that a job can be judged again."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from normbench import names
from normbench.measures.contract import (
    Array,
    Findings,
    FinishedJob,
    Measure,
    histories_by_key,
    shadows_of,
)
from normbench.verdicts import judging
from normbench.verdicts.convergence import Rules
from normbench.verdicts.judging import JudgingContext, Shadows, Step

# Fields of `JudgingContext` that are recorded under their own names.
NUMBER_FIELDS = ("minimum", "reference", "epsilon", "fit_seconds", "seconds_a_step")
# The array names of its integers, each with its field.
COUNT_FIELDS = {
    "points": "compared_points",
    "batch": "batch",
    "records_per_pass": "records_per_pass",
}


def take(job: FinishedJob) -> Findings:
    """Return the histories of S step sizes, each from A starts, of K iterations, as arrays.

    `step_sizes` (S,). The recorded histories by the keys under which they are logged,
    (S, A, K + 1), NaN from the iteration at which a run stopped being finite. `diverged_at` (S, A)
    is that iteration, -1 for a finite run. Where any run has a shadow, the same run from a start
    perturbed by rounding: `shadows` (S, A, M), the last costs of shadows, and `shadows_reached`
    (S, A, M, T), their iterations to each target. `minimum`, `reference` (the cost at zero
    weights), `tie` (NaN for none), `epsilon`, `fit_seconds`, `seconds_a_step`, `points`, `batch`,
    `records_per_pass`, each (): see `JudgingContext`. A tag marks an optimizer that finds its own
    step sizes: its recorded step size 1 is a placeholder.
    """
    descent = job.judged_descent
    assert descent is not None
    runs_shape = (len(descent.steps), len(descent.start))
    run_arrays = {
        **histories_by_key(descent.histories),
        "diverged_at": descent.histories.diverged_at,
    }
    shadows = shadows_of(descent.histories, descent.judging_context)
    if shadows is not None:
        run_arrays["shadows"] = shadows.ends
        run_arrays["shadows_reached"] = np.stack(
            [shadows.reached[name] for name in names.TARGETS], -1
        )
    return Findings(
        tags={names.GRIDLESS.key: "true"} if descent.optimizer.gridless else {},
        arrays={
            "step_sizes": np.array([step.step_size for step in descent.steps]),
            **{
                name: array.reshape(*runs_shape, *array.shape[1:])
                for name, array in run_arrays.items()
            },
            **{name: np.array(getattr(descent.judging_context, name)) for name in NUMBER_FIELDS},
            "tie": np.array(
                descent.judging_context.tie_step_size
                if descent.judging_context.tie_step_size
                else np.nan
            ),
            **{
                name: np.array(getattr(descent.judging_context, field))
                for name, field in COUNT_FIELDS.items()
            },
        },
    )


def rejudge_histories(arrays: Mapping[str, Array], rules: Rules) -> tuple[Step, ...]:
    """Judge recorded histories again, by other rules.

    Args:
        arrays: The recorded arrays of `take`, by their names.
        rules: The thresholds of the verdicts.

    Returns:
        A `Step` for each step size, in their recorded order.
    """
    tie = float(arrays["tie"])
    numbers: dict[str, Any] = {name: float(arrays[name]) for name in NUMBER_FIELDS}
    # A count that an older record lacks has the default of `JudgingContext`.
    numbers |= {field: int(arrays[name]) for name, field in COUNT_FIELDS.items() if name in arrays}
    context = JudgingContext(
        rules=rules,
        tie_step_size=None if np.isnan(tie) else tie,
        **numbers,
    )
    recorded_keys = [metric.key for metric in names.HISTORIES if metric.key in arrays]
    # The runs, one for each step size and start, in one row: (R, K + 1).
    histories = {name: arrays[name].reshape(-1, arrays[name].shape[-1]) for name in recorded_keys}
    sizes = [float(size) for size in arrays["step_sizes"]]
    # Arrays of shadows are recorded only where some run has one.
    shadows = None
    if "shadows" in arrays:
        ends = arrays["shadows"].reshape(-1, arrays["shadows"].shape[-1])
        counts = arrays["shadows_reached"].reshape(*ends.shape, -1)
        shadows = Shadows(ends, dict(zip(names.TARGETS, np.moveaxis(counts, -1, 0))))
    return judging.judge_steps(
        histories, arrays["diverged_at"].reshape(-1), sizes, context, shadows
    )


MEASURE = Measure(take)
