"""Judge a recorded job again by other rules, from its recorded histories, without a descent."""

from ast import literal_eval
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.datasets import UserError
from normbench.job import Outcome
from normbench.measures import FOLLOWS
from normbench.measures.contract import BEST_STEP, RULES, STEP_VERDICTS, Findings
from normbench.measures.judged import rejudge_histories, summarize_grid
from normbench.recording.reuse.recorded import RecordedRun
from normbench.recording.store.records import RecordHeader, build_record
from normbench.results.store.errors import ResultsError
from normbench.results.store.job_records import JobRecord
from normbench.verdicts import judging
from normbench.verdicts.convergence import Rules
from normbench.verdicts.judging import Step

RULE_PREFIX = "rules."
MAX_REASON = 160  # characters


def rejudge_run(
    run: RecordedRun, header: RecordHeader, dataset: Mapping[str, str]
) -> JobRecord | None:
    """Judge a recorded run of a scheme by the rules among the parameters of a header.

    The rules are the thresholds of the verdicts. Findings that depend on the best step size or on
    the rules are left out where these have changed; the tag `descend_again` names them.

    Args:
        run: The recorded run.
        header: The header of the new record; its parameters have the new rules.
        dataset: The fields of the dataset input of the run, which the new record takes over.

    Returns:
        The new record; None for a run without a descent, which has no histories.

    Raises:
        UserError: The rules are invalid.
        ResultsError: The arrays cannot be those of a descent.
    """
    histories = run.arrays.get(names.DESCENT_ARRAYS)
    if histories is None:
        return None
    rules = rules_of(header.params)
    try:
        _check(histories)
        return _judged_record(run, header, dataset, histories, rules)
    except (ResultsError, UserError):  # subclasses of errors below, with messages of their own
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:MAX_REASON]
        raise ResultsError(
            f"run {run.run_id} ({run.row.get('label')}): what it keeps of its descent is damaged, "
            f"and cannot be judged again ({type(error).__name__}: {reason})"
        ) from error


def _check(histories: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError unless the arrays of a descent have positive step sizes and fitting shapes.

    With S > 0 step sizes, A > 0 starts and K iterations, the shapes are `step_sizes` (S,),
    `diverged_at` (S, A) and each history (S, A, K + 1). A missing array raises KeyError.
    """
    sizes, run_shape = histories["step_sizes"], histories["diverged_at"].shape
    shapes = {histories[metric.key].shape for metric in names.HISTORIES if metric.key in histories}
    if not (sizes.ndim == 1 and len(sizes) and np.all((sizes > 0) & np.isfinite(sizes))):
        raise ValueError("its step sizes are none")
    if len(shapes) != 1 or len(run_shape) != 2 or run_shape[0] != len(sizes) or 0 in run_shape:
        raise ValueError("its histories are not one for each step size and start")
    shape = shapes.pop()  # of every history
    if shape[:-1] != run_shape or not shape[-1]:
        raise ValueError("its histories are not one for each step size and start")


def _judged_record(
    run: RecordedRun,
    header: RecordHeader,
    dataset: Mapping[str, str],
    histories: Mapping[str, NDArray[Any]],
    rules: Rules,
) -> JobRecord:
    """Return the new record of a run: its histories judged by the rules, and its valid findings.

    Args:
        run: The recorded run.
        header: The header of the new record.
        dataset: The fields of the dataset input of the run.
        histories: The arrays of its descent, which `_check` has accepted: the histories, and what
            else `measures.judged.histories` keeps to judge them.
        rules: The new rules.
    """
    steps = tuple(_with_theory(run, step) for step in rejudge_histories(histories, rules))
    # The index of the shown step size, None without one; and whether `shown_step` chose it.
    best, chosen = judging.find_shown_step(steps, literal(header.params.get("shown_step")))
    best_size = None if best is None else steps[best].step_size
    has_changed = {
        BEST_STEP: best_size != run.shown_step_size,
        RULES: rules != rules_of(run.params),
    }
    # By finding: what it depends on in the judging, see `Measure.depends_on`; empty for nothing.
    dependencies = {str(name): str(dependency) for name, dependency in histories[FOLLOWS]}
    valid = {
        name: dependency
        for name, dependency in dependencies.items()
        if not has_changed.get(dependency)
    }
    findings = _findings(run, valid, steps, chosen)
    invalid = sorted(dependencies.keys() - valid.keys())
    if invalid:  # only another descent can give these findings
        findings = replace(
            findings, tags={**findings.tags, names.DESCEND_AGAIN.key: ",".join(invalid)}
        )
    arrays = {
        record: arrays_of_name
        for record, arrays_of_name in run.arrays.items()
        if record not in invalid
    }
    valid_histories = {name: array for name, array in histories.items() if name not in invalid}
    arrays[names.DESCENT_ARRAYS] = {**valid_histories, FOLLOWS: np.array([*valid.items()])}
    outcome = Outcome(
        steps=steps,
        best=best,
        scheme=None,  # `build_record` uses neither the scheme nor the features
        features=0,
        fit_seconds=run.row[names.FIT_SECONDS.column],
        descent_seconds=run.row[names.DESCENT_SECONDS.column],
        findings=findings,
        arrays=arrays,
        # A NaN is not recorded, and so the metric is missing.
        seconds_a_step=run.row.get(names.SECONDS_A_STEP.column, float("nan")),
    )
    return build_record(header, dataset, outcome)


def rules_of(params: Mapping[str, Any]) -> Rules:
    """Return the rules among the parameters of a job, `rules.*`; missing ones have their defaults.

    Args:
        params: The parameters, texts or values.

    Raises:
        UserError: A rule is invalid.
    """
    rule_params = {key: value for key, value in params.items() if key.startswith(RULE_PREFIX)}
    return Rules(
        **{key.removeprefix(RULE_PREFIX): literal(value) for key, value in rule_params.items()}
    )


def literal(value: Any) -> Any:
    """Return the value of a parameter from its text.

    Args:
        value: A text that was recorded, or a value that needs no reading.

    Returns:
        The number, None or other Python literal that the text writes; any other text as it is.
    """
    try:
        return literal_eval(value) if isinstance(value, str) else value
    except (ValueError, SyntaxError):
        return value


def _findings(
    run: RecordedRun,
    valid: Mapping[str, str],
    steps: tuple[Step, ...],
    chosen: bool,
) -> Findings:
    """Return the findings of a run that are still valid, with new findings of the grid.

    Args:
        run: The recorded run.
        valid: What each valid finding depends on, by its name. Those that depend on the verdicts of
            step sizes are not taken over: `summarize_grid` computes them again.
        steps: The step sizes, judged again.
        chosen: Whether the setting `shown_step` chose the shown step size.
    """
    row = run.row
    grid_findings = summarize_grid(steps, chosen)
    recorded_names = [name for name, dependency in valid.items() if dependency != STEP_VERDICTS]
    # A finding is a metric or a tag, which its column tells.
    metrics, tags = (
        {name: row[f"{prefix}{name}"] for name in recorded_names if f"{prefix}{name}" in row}
        for prefix in (names.METRICS, names.TAGS)
    )
    # The row has only the last value of a metric with several.
    series = {name: run.series(name) for name in metrics if names.axis_of(name)}
    metrics = {name: value for name, value in metrics.items() if name not in series}
    return Findings(
        {**metrics, **grid_findings.metrics},
        {**tags, **grid_findings.tags},
        series,
        seconds=row[names.THEORY_SECONDS.column],
        # Without a search the seconds are not recorded.
        search_seconds=row.get(names.SEARCH_SECONDS.column, 0.0),
    )


def _with_theory(run: RecordedRun, step: Step) -> Step:
    """Return a step size with those of its recorded metrics that no judging changes.

    They are the predictions of theory, and the costs and errors in the units of the targets
    (`own_units/`).

    Args:
        run: The recorded run of the scheme.
        step: The step size, judged again.

    Returns:
        The step size with these metrics and series; as it is where its run was deleted.
    """
    if step.step_size not in run.steps.index:
        return step
    row = run.steps.loc[step.step_size].dropna()
    prefixes = tuple(
        f"{names.METRICS}{family}" for family in (names.THEORY_PREFIX, names.OWN_UNITS)
    )
    metrics = {
        key.removeprefix(names.METRICS): row[key] for key in row.index if key.startswith(prefixes)
    }
    series = {}
    for name in [name for name in metrics if names.axis_of(name)]:
        del metrics[name]  # only the last value of a series
        values = run.sweep.series(row["run_id"], name)
        series[name] = np.full(max(values) + 1, np.nan)  # iterations that are not recorded stay NaN
        series[name][[*values]] = [*values.values()]
    return replace(step, metrics={**step.metrics, **metrics}, series=series)
