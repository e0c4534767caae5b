"""Judge a recorded job again by other rules, from its recorded histories, without a descent."""

from ast import literal_eval
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.job import Outcome
from normbench.measures import FOLLOWS
from normbench.measures.contract import BEST_STEP, RULES, STEP_VERDICTS, Findings
from normbench.measures.judged import rejudge_histories, summarize_grid
from normbench.record.outcome import RecordHeader, build_record
from normbench.results.store.job_records import JobRecord, RunRecord
from normbench.verdicts import judging
from normbench.verdicts.convergence import Rules
from normbench.verdicts.judging import Step

RULE_PREFIX = "rules."


def rejudge(job: JobRecord, header: RecordHeader) -> JobRecord | None:
    """Judge a recorded job by the rules among the parameters of a header.

    The rules are the thresholds of the verdicts. Findings that depend on the best step size or on
    the rules are left out where these have changed; the tag `descend_again` names them.

    Args:
        job: The recorded job.
        header: The header of the new record; its parameters have the new rules.

    Returns:
        The new record; None for a job without a descent, which has no histories.

    Raises:
        UserError: The rules are invalid.
    """
    if job.failure or names.DESCENT_ARRAYS not in job.arrays:
        return None
    rules = rules_of(header.params)
    # What the data and the scheme have decided is taken over.
    params = {**job.params, **header.params, "start": job.params["start"]}
    stand_in = {key: text for key, text in job.scheme.tags.items() if key == names.STANDS_IN.key}
    header = replace(header, params=params, tags=header.tags | stand_in, notes=tuple(job.notes))
    return _judged_record(job, header, job.arrays[names.DESCENT_ARRAYS], rules)


def _judged_record(
    job: JobRecord, header: RecordHeader, histories: Mapping[str, NDArray[Any]], rules: Rules
) -> JobRecord:
    """Return the new record of a job: its histories judged by the rules, and its valid findings.

    Args:
        job: The recorded job.
        header: The header of the new record.
        histories: The arrays of its descent: the histories, and what else
            `measures.judged.histories` keeps to judge them.
        rules: The new rules.
    """
    recorded_steps = {step.series[names.STEP_SIZE.key][0]: step for step in job.steps}
    steps = tuple(
        _with_theory(recorded_steps[step.step_size], step)
        for step in rejudge_histories(histories, rules)
    )
    # The index of the shown step size, None without one; and whether `shown_step` chose it.
    best, chosen = judging.find_shown_step(steps, literal(header.params.get("shown_step")))
    best_size = None if best is None else steps[best].step_size
    recorded_best = [
        size for size, step in recorded_steps.items() if step.tags[names.BEST.key] == "true"
    ]
    has_changed = {
        BEST_STEP: [best_size] * (best is not None) != recorded_best,
        RULES: rules != rules_of(job.params),
    }
    # By finding: what it depends on in the judging, see `Measure.depends_on`; empty for nothing.
    dependencies = {str(name): str(dependency) for name, dependency in histories[FOLLOWS]}
    valid = {
        name: dependency
        for name, dependency in dependencies.items()
        if not has_changed.get(dependency)
    }
    last = {key: value for key, value, _ in job.scheme.metrics}
    findings = _findings(job, last, valid, steps, chosen)
    invalid = sorted(dependencies.keys() - valid.keys())
    if invalid:  # only another descent can give these findings
        findings = replace(
            findings, tags={**findings.tags, names.DESCEND_AGAIN.key: ",".join(invalid)}
        )
    arrays = {
        record: arrays_of_name
        for record, arrays_of_name in job.arrays.items()
        if record not in invalid
    }
    valid_histories = {name: array for name, array in histories.items() if name not in invalid}
    arrays[names.DESCENT_ARRAYS] = {**valid_histories, FOLLOWS: np.array([*valid.items()])}
    outcome = Outcome(
        steps=steps,
        best=best,
        scheme=None,  # `build_record` uses neither the scheme nor the features
        features=0,
        fit_seconds=last[names.FIT_SECONDS.key],
        descent_seconds=last[names.DESCENT_SECONDS.key],
        findings=findings,
        arrays=arrays,
        # A NaN is not recorded, and so the metric is missing.
        seconds_a_step=last.get(names.SECONDS_A_STEP.key, float("nan")),
    )
    return build_record(header, job.dataset, outcome)


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
    job: JobRecord,
    last: Mapping[str, float],
    valid: Mapping[str, str],
    steps: tuple[Step, ...],
    chosen: bool,
) -> Findings:
    """Return the findings of a job that are still valid, with new findings of the grid.

    Args:
        job: The recorded job.
        last: The last value of each of its metrics.
        valid: What each valid finding depends on, by its name. Those that depend on the verdicts of
            step sizes are not taken over: `summarize_grid` computes them again.
        steps: The step sizes, judged again.
        chosen: Whether the setting `shown_step` chose the shown step size.
    """
    grid_findings = summarize_grid(steps, chosen)
    recorded_names = [name for name, dependency in valid.items() if dependency != STEP_VERDICTS]
    metrics = {name: last[name] for name in recorded_names if name in last}
    tags = {name: job.scheme.tags[name] for name in recorded_names if name in job.scheme.tags}
    # Of a metric with several values, all are taken.
    series = {
        name: (np.array([*points]), np.array([*points.values()]))
        for name, points in job.scheme.series.items()
        if name in metrics and names.axis_of(name)
    }
    metrics = {name: value for name, value in metrics.items() if name not in series}
    return Findings(
        {**metrics, **grid_findings.metrics},
        {**tags, **grid_findings.tags},
        series,
        seconds=last[names.THEORY_SECONDS.key],
        # Without a search the seconds are not recorded.
        search_seconds=last.get(names.SEARCH_SECONDS.key, 0.0),
    )


def _with_theory(recorded: RunRecord, step: Step) -> Step:
    """Return a step size with those of its recorded metrics that no judging changes.

    They are the predictions of theory, and the costs and errors in the units of the targets
    (`own_units/`).

    Args:
        recorded: The recorded run of the step size.
        step: The step size, judged again.
    """
    metrics, series = {}, {}
    for name, points in recorded.series.items():
        if not name.startswith((names.THEORY_PREFIX, names.OWN_UNITS)):
            continue
        if names.axis_of(name):
            series[name] = np.full(max(points) + 1, np.nan)  # what is not recorded stays NaN
            series[name][[*points]] = [*points.values()]
        else:
            metrics[name] = points[0]
    return replace(step, metrics={**step.metrics, **metrics}, series=series)
