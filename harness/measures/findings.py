"""A job's findings as they are logged: numbers, words, and series, by the names they log under."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.results import names
from normbench.theory import spectra
from normbench.theory.analysis import Facts, Theory
from normbench.theory.minimum import Minimum
from normbench.verdicts.convergence import Largest
from normbench.verdicts.search import Critical

Array = NDArray[np.float64]
UNTOUCHED = 0.99  # a direction that keeps this share of its variance is not touched by the ridge


@dataclass(frozen=True)
class Findings:
    """What a job found beside its histories.

    metrics: numbers, NaN where there is none. tags: words. series: a number by step k, or by the
    rank of a direction: `(steps, values)`. seconds: what theory took; search_seconds: the search
    of the critical step size and the sharpness path, which are done only where they are asked for.
    """

    metrics: dict[str, float] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    series: dict[str, tuple[NDArray[np.int64], Array]] = field(default_factory=dict)
    seconds: float = 0.0
    search_seconds: float = 0.0


def of_theory(found: Theory, at_best: float | None, plain: bool) -> Findings:
    """Return curvature, thresholds, condition number and rank.

    at_best: the largest curvature at the weights of the best step; None where it is not known.
    plain: the optimizer is plain gradient descent; the tag `plain_descent` keeps it.
    """
    nothing = float("nan")
    metrics = {
        names.LIPSCHITZ.key: found.lipschitz if found.lipschitz is not None else nothing,
        names.THRESHOLD.key: found.threshold or nothing,
        **_curvature(names.LIPSCHITZ_START, names.THRESHOLD_START, found.at_start),
        **_curvature(names.LIPSCHITZ_BEST, names.THRESHOLD_BEST, at_best),
    }
    if found.spectrum is not None and found.spectrum.whole:
        metrics[names.CONDITION.key] = found.spectrum.condition_number
        metrics[names.RANK.key] = found.spectrum.rank
    tags = {
        names.BASIS.key: found.basis if found.threshold else "none",
        names.PLAIN.key: str(plain).lower(),
    }
    notes = [found.notes] if found.notes else []
    if found.spectrum is not None and not found.spectrum.whole:
        notes.append("rank and condition number are not known: Lanczos gives L alone")
    if found.threshold and not plain:
        notes.append("2/L speaks of plain gradient descent, not of this optimizer")
    if notes:
        tags[names.NOTE.key] = "; ".join(notes)
    return Findings(metrics, tags)


def _curvature(
    curvature: names.Metric, threshold: names.Metric, lipschitz: float | None
) -> dict[str, float]:
    if lipschitz is None:
        return {}
    return {
        curvature.key: lipschitz,
        threshold.key: spectra.step_threshold(lipschitz),
    }


def of_minimum(least: Minimum, reference: float) -> Findings:
    """Return the least cost, its gradient norm and source, and the targets that follow from it."""
    from normbench.verdicts.convergence import targets

    metrics = {names.MINIMUM.key: least.value, names.MINIMUM_GRADIENT.key: least.gradient_norm}
    goals = targets(least.value, reference)
    metrics |= {names.target(name).key: goal for name, goal in goals.items()}
    tags = {
        names.MINIMUM_SOURCE.key: least.source,
        names.MINIMUM_REACHED.key: str(least.reached).lower(),
        names.AT_INFINITY.key: str(least.at_infinity).lower(),
    }
    return Findings(metrics, tags)


def of_grid(convergent: Largest, falling: Largest, critical: Critical | None) -> Findings:
    """Return the largest convergent step sizes, and whether anything above them failed."""
    nothing = float("nan")
    metrics = {
        names.LARGEST_CONVERGENT.key: convergent.step_size or nothing,
        names.LARGEST_FALLING.key: falling.step_size or nothing,
    }
    tags = {
        names.CENSORED.key: str(convergent.censored).lower(),
        names.CENSORED_FALLING.key: str(falling.censored).lower(),
    }
    if critical is not None:
        metrics[names.CRITICAL.key] = critical.lower or nothing
        metrics[names.CRITICAL_UPPER.key] = critical.upper or nothing
        metrics[names.CRITICAL_DESCENTS.key] = critical.descents
        tags[names.CENSORED_CRITICAL.key] = str(critical.upper is None).lower()
    return Findings(metrics, tags)


def of_choice(chosen: bool) -> Findings:
    """Return the tag `step_chosen` where `shown_step` chose the run that stands for its scheme."""
    return Findings(tags={names.STEP_CHOSEN.key: "true"} if chosen else {})


def of_covariance(facts: Facts | None, scheme: Any) -> Findings:
    """Return the spectrum, the effective rank, and what the scheme drops and what its ridge does.

    ridge and dropped directions as the scheme itself says (`ridge`, `eigenvalues_`, `dropped_`);
    without them the dead directions are those at rounding level.
    """
    if facts is None:
        return Findings()
    values = facts.variances
    total = float(values.sum())
    dead = dead_directions(facts, scheme)
    metrics = {
        names.EFFECTIVE_RANK.key: spectra.effective_rank(values),
        names.DEAD_DIRECTIONS.key: float(np.count_nonzero(dead)),
        names.DEAD_VARIANCE.key: float(values[dead].sum()) / total if total else float("nan"),
    }
    series = {}
    if len(values) <= 1000:
        series[names.VARIANCE.key] = (np.arange(len(values)), values)
    after = ridge_variances(scheme)
    if after is not None and len(after):
        metrics[names.RIDGE_TOUCHED.key] = float(np.count_nonzero(after < UNTOUCHED))
        metrics[names.RIDGE_SMALLEST.key] = float(after.min())
        if len(after) <= 1000:
            series[names.RIDGE_VARIANCE.key] = (np.arange(len(after)), after)
    return Findings(metrics, {}, series)


def of_record(arrays: Mapping[str, Mapping[str, Any]]) -> Findings:
    """Return the numbers among a job's recorded arrays, see `normbench.measures.record`.

    theory/identity_gap: the largest entry of `|S S' / P - I|` after the scheme;
    theory/variance_lost: the share of the variance that a projection leaves out.
    """
    named = {
        names.IDENTITY_GAP: ("spectrum", "identity_gap"),
        names.VARIANCE_LOST: ("projection", "lost"),
    }
    return Findings(
        {
            metric.key: float(arrays[record][part])
            for metric, (record, part) in named.items()
            if record in arrays
        }
    )


def dead_directions(facts: Facts, scheme: Any) -> NDArray[np.bool_]:
    """Return the mask of directions `(N,)` that carry nothing after the scheme."""
    dropped = getattr(scheme, "dropped_", None)
    if dropped is not None and np.shape(dropped) == facts.variances.shape:
        return np.asarray(dropped, dtype=bool)
    bound = len(facts.variances) * np.finfo(np.float64).eps * facts.variances[0]
    return np.asarray(facts.variances <= bound)


def ridge_variances(scheme: Any) -> Array | None:
    """Return what the ridge leaves of each live direction's variance; None without a ridge."""
    ridge, values = getattr(scheme, "ridge", None), getattr(scheme, "eigenvalues_", None)
    if not isinstance(ridge, (int, float)) or values is None:
        return None
    dropped = getattr(scheme, "dropped_", np.zeros(len(values), dtype=bool))
    return spectra.variance_after(np.asarray(values)[~np.asarray(dropped, dtype=bool)], ridge)


def merged(*parts: Findings) -> Findings:
    """Return findings put together."""
    return Findings(
        {key: value for part in parts for key, value in part.metrics.items()},
        {key: value for part in parts for key, value in part.tags.items()},
        {key: value for part in parts for key, value in part.series.items()},
        sum(part.seconds for part in parts),
        sum(part.search_seconds for part in parts),
    )
