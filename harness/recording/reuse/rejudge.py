"""A recorded job judged again, by other rules: from what it keeps, without a descent."""

from ast import literal_eval
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.datasets import UserError
from normbench.job import Outcome
from normbench.measures import FOLLOWS, explained
from normbench.measures.contract import BEST, RULES, VERDICTS, Findings
from normbench.measures.grid import summarize_grid
from normbench.measures.histories import rejudge_histories
from normbench.recording.reuse.recorded import Recorded
from normbench.recording.store.records import Place, written
from normbench.results.store.errors import ResultsError
from normbench.results.store.job_records import JobRecord
from normbench.verdicts import judging
from normbench.verdicts.convergence import Rules
from normbench.verdicts.judging import Step

RULE = "rules."
LONGEST_REASON = 160  # letters


def rejudged(run: Recorded, place: Place, dataset: Mapping[str, str]) -> JobRecord | None:
    """Return the record of a scheme's run as a place's parameters judge it.

    None where the run keeps no histories: one without a descent. What follows from another step
    than the one that now stands for the scheme, or from other rules, is left out; the tag
    `descend_again` names it. dataset: the entries of the run's data set input. Raises
    `UserError` for bad rules, and ResultsError for arrays that cannot be what a descent wrote.
    """
    kept = run.arrays.get(names.KEPT)
    if kept is None:
        return None
    rules = rules_of(place.params)
    try:
        _check(kept)
        return _rejudged(run, place, dataset, kept, rules)
    except (ResultsError, UserError):
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:LONGEST_REASON]
        raise ResultsError(
            f"run {run.run_id} ({run.row.get('label')}): what it keeps of its descent is damaged, "
            f"and cannot be judged again ({type(error).__name__}: {reason})"
        ) from error


def _check(kept: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError unless there is a history (A, K + 1) for each of S step sizes, S above 0."""
    sizes, runs = kept["step_sizes"], kept["diverged_at"].shape
    shapes = {kept[metric.key].shape for metric in names.HISTORIES if metric.key in kept}
    if not (sizes.ndim == 1 and len(sizes) and np.all((sizes > 0) & np.isfinite(sizes))):
        raise ValueError("its step sizes are none")
    if len(shapes) != 1 or len(runs) != 2 or runs[0] != len(sizes) or 0 in runs:
        raise ValueError("its histories are not one for each step size and start")
    if (shape := shapes.pop())[:-1] != runs or not shape[-1]:
        raise ValueError("its histories are not one for each step size and start")


def _rejudged(
    run: Recorded,
    place: Place,
    dataset: Mapping[str, str],
    kept: Mapping[str, NDArray[Any]],
    rules: Rules,
) -> JobRecord:
    """Return the record of a run from the arrays that it keeps."""
    steps = tuple(_with_theory(run, step) for step in rejudge_histories(kept, rules))
    best, chosen = judging.find_shown_step(steps, literal(place.params.get("shown_step")))
    size = None if best is None else steps[best].step_size
    changed = {BEST: size != run.shown, RULES: rules != rules_of(run.params)}
    follows = {str(name): str(what) for name, what in kept[FOLLOWS]}
    left = {name: what for name, what in follows.items() if not changed.get(what)}
    found = _findings(run, left, steps, best, chosen)
    lost = sorted(follows.keys() - left.keys())
    if lost:
        found = replace(found, tags={**found.tags, names.AGAIN.key: ",".join(lost)})
    arrays = {word: parts for word, parts in run.arrays.items() if word not in lost}
    arrays[names.KEPT] = {**kept, FOLLOWS: np.array([*left.items()])}
    outcome = Outcome(
        steps=steps,
        best=best,
        scheme=None,
        features=0,
        fit_seconds=run.row[names.FIT_SECONDS.column],
        descent_seconds=run.row[names.DESCENT_SECONDS.column],
        findings=found,
        arrays=arrays,
        seconds_a_step=run.row.get(names.SECONDS_A_STEP.column, float("nan")),
    )
    return written(place, dataset, outcome)


def rules_of(params: Mapping[str, Any]) -> Rules:
    """Return the rules among a job's parameters, given as text or not; `UserError` for bad ones."""
    told = {key: value for key, value in params.items() if key.startswith(RULE)}
    return Rules(**{key.removeprefix(RULE): literal(value) for key, value in told.items()})


def literal(value: Any) -> Any:
    """Return what a parameter's text stands for: a number, nothing, or the text itself."""
    try:
        return literal_eval(value) if isinstance(value, str) else value
    except (ValueError, SyntaxError):
        return value


def _findings(
    run: Recorded, left: Mapping[str, str], steps: tuple[Step, ...], best: int | None, chosen: bool
) -> Findings:
    """Return what of a run's findings is left, and what the verdicts make of the grid."""
    row = run.row
    again = summarize_grid(steps, chosen)
    holds = [name for name, what in left.items() if what != VERDICTS]
    metrics, tags = (
        {name: row[f"{kind}{name}"] for name in holds if f"{kind}{name}" in row}
        for kind in (names.METRICS, names.TAGS)
    )
    series = {name: run.series(name) for name in metrics if names.axis_of(name)}
    metrics = {name: value for name, value in metrics.items() if name not in series}
    metrics, tags = {**metrics, **again.metrics}, {**tags, **again.tags}
    return Findings(
        metrics,
        {**tags, names.EXPLANATION.key: explained(metrics, tags, steps, best)},
        series,
        seconds=row[names.THEORY_SECONDS.column],
        search_seconds=row.get(names.SEARCH_SECONDS.column, 0.0),
    )


def _with_theory(run: Recorded, step: Step) -> Step:
    """Return a step with what theory predicts of it, as it is recorded.

    Nothing is predicted of a step whose run was deleted.
    """
    if step.step_size not in run.steps.index:
        return step
    row = run.steps.loc[step.step_size].dropna()
    theory = [key for key in row.index if key.startswith(f"{names.METRICS}{names.THEORY}")]
    known = {key.removeprefix(names.METRICS): row[key] for key in theory}
    series = {}
    for name in [name for name in known if names.axis_of(name)]:
        del known[name]
        values = run.found.series(row["run_id"], name)
        series[name] = np.full(max(values) + 1, np.nan)
        series[name][[*values]] = [*values.values()]
    return replace(step, metrics={**step.metrics, **known}, series=series)
