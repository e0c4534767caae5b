"""A job's findings as they are logged: numbers, words, and series, by the names they log under."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        "theory/lipschitz": found.lipschitz if found.lipschitz is not None else nothing,
        "theory/step_threshold": found.threshold or nothing,
        **_curvature("start", found.at_start),
        **_curvature("best", at_best),
    }
    if found.spectrum is not None and found.spectrum.whole:
        metrics["theory/condition_number"] = found.spectrum.condition_number
        metrics["theory/rank"] = found.spectrum.rank
    tags = {
        "theory_basis": found.basis if found.threshold else "none",
        "plain_descent": str(plain).lower(),
    }
    notes = [found.notes] if found.notes else []
    if found.spectrum is not None and not found.spectrum.whole:
        notes.append("rank and condition number are not known: Lanczos gives L alone")
    if found.threshold and not plain:
        notes.append("2/L speaks of plain gradient descent, not of this optimizer")
    if notes:
        tags["theory_note"] = "; ".join(notes)
    return Findings(metrics, tags)


def _curvature(where: str, lipschitz: float | None) -> dict[str, float]:
    if lipschitz is None:
        return {}
    return {
        f"theory/lipschitz_{where}": lipschitz,
        f"theory/step_threshold_{where}": spectra.step_threshold(lipschitz),
    }


def of_minimum(least: Minimum, reference: float) -> Findings:
    """Return the least cost, its gradient norm and source, and the targets that follow from it."""
    from normbench.verdicts.convergence import targets

    metrics = {"theory/minimum": least.value, "theory/minimum_gradient_norm": least.gradient_norm}
    goals = targets(least.value, reference)
    metrics |= {f"theory/target_{name}": goal for name, goal in goals.items()}
    tags = {
        "minimum_source": least.source,
        "minimum_reached": str(least.reached).lower(),
        "minimum_at_infinity": str(least.at_infinity).lower(),
    }
    return Findings(metrics, tags)


def of_grid(convergent: Largest, falling: Largest, critical: Critical | None) -> Findings:
    """Return the largest convergent step sizes, and whether anything above them failed."""
    nothing = float("nan")
    metrics = {
        "final/largest_convergent_step": convergent.step_size or nothing,
        "final/largest_falling_step": falling.step_size or nothing,
    }
    tags = {
        "censored": str(convergent.censored).lower(),
        "censored_falling": str(falling.censored).lower(),
    }
    if critical is not None:
        metrics["final/critical_step"] = critical.lower or nothing
        metrics["final/critical_step_upper"] = critical.upper or nothing
        metrics["final/critical_descents"] = critical.descents
        tags["censored_critical"] = str(critical.upper is None).lower()
    return Findings(metrics, tags)


def of_choice(chosen: bool) -> Findings:
    """Return the tag `step_chosen` where `shown_step` chose the run that stands for its scheme."""
    return Findings(tags={"step_chosen": "true"} if chosen else {})


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
        "theory/effective_rank": spectra.effective_rank(values),
        "theory/dead_directions": float(np.count_nonzero(dead)),
        "theory/dead_variance_share": float(values[dead].sum()) / total if total else float("nan"),
    }
    series = {}
    if len(values) <= 1000:
        series["theory/variance"] = (np.arange(len(values)), values)
    after = ridge_variances(scheme)
    if after is not None and len(after):
        metrics["theory/ridge_touched"] = float(np.count_nonzero(after < UNTOUCHED))
        metrics["theory/ridge_smallest_variance"] = float(after.min())
        if len(after) <= 1000:
            series["theory/ridge_variance"] = (np.arange(len(after)), after)
    return Findings(metrics, {}, series)


def of_record(arrays: Mapping[str, Mapping[str, Any]]) -> Findings:
    """Return the numbers among a job's recorded arrays, see `normbench.measures.record`.

    theory/identity_gap: the largest entry of `|S S' / P - I|` after the scheme;
    theory/variance_lost: the share of the variance that a projection leaves out.
    """
    named = {"identity_gap": ("spectrum", "identity_gap"), "variance_lost": ("projection", "lost")}
    return Findings(
        {
            f"theory/{name}": float(arrays[record][part])
            for name, (record, part) in named.items()
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
