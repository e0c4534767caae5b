"""One paragraph in plain words, made from the numbers: why a scheme allowed its step sizes."""

from typing import Any

from harness import theory
from harness.analysis import Theory
from harness.convergence import Largest
from harness.findings import ridge_variances
from harness.judging import Step
from harness.minimum import Minimum

NEAR = 0.02  # relative: two curvatures nearer than that are called the same


def explain(
    found: Theory,
    scheme: Any,
    best: Step | None,
    at_best: float | None,
    convergent: Largest,
    falling: Largest,
    least: Minimum,
    factor: float | None,
) -> str:
    """Return the paragraph of one scheme.

    factor: what the Gram matrix's largest eigenvalue is multiplied by to give L; None where the
    cost has no global bound.
    """
    sentences = [
        *_threshold(found),
        *_cause(found, factor),
        *_ridge(found, scheme),
        *_observed(found, convergent, falling),
        *_best(found, best, at_best),
        *_minimum(least),
    ]
    return " ".join(sentences)


def _threshold(found: Theory) -> list[str]:
    if found.threshold is None:
        return [f"No threshold from curvature: {found.notes or 'there is none'}."]
    if found.exact:
        return [
            f"The curvature is L = {found.lipschitz:.4g} everywhere, so descent converges exactly "
            f"where the step size is below 2/L = {found.threshold:.4g}."
        ]
    if found.lipschitz is not None:
        return [
            f"The curvature is at most L = {found.lipschitz:.4g}, so the cost is certain to fall "
            f"where the step size is below 2/L = {found.threshold:.4g}."
        ]
    return [
        f"The curvature at the start is {found.at_start:.4g}, so 2/L is {found.threshold:.4g} "
        "there; the cost has no bound that holds everywhere."
    ]


def _cause(found: Theory, factor: float | None) -> list[str]:
    """Say which part of the scheme changed L: centring, scaling or rotation."""
    facts = found.facts
    if facts is None or found.spectrum is None or not found.spectrum.rank:
        return []
    factor = factor or 1.0
    name = "L" if found.lipschitz is not None else "the Gram matrix's largest eigenvalue"
    raw, centred, standard = (factor * part for part in facts[:3])
    here = found.spectrum.largest
    if _same(here, raw):
        return [f"The points as they are have {name} = {raw:.4g}; this scheme leaves it there."]
    lowered = _moved("centring alone", name, raw, centred)
    if _same(here, centred) and not _same(here, factor):
        return [f"{lowered}, and that is all that this scheme does to it."]
    if _same(here, standard) and not _same(here, factor):
        return [
            f"{lowered}; one scale for each feature brought it to {standard:.4g}, which is the "
            f"correlation left between features (largest eigenvalue {facts.standard:.3g})."
        ]
    if _same(here, factor):
        return [
            f"{lowered}; scaling each feature would leave {standard:.4g}; rotation removed the "
            f"remaining correlation, to {here:.4g}, the least that a bias allows."
        ]
    return [f"{lowered}, scaling each feature would bring {standard:.4g}; here it is {here:.4g}."]


def _moved(what: str, name: str, before: float, after: float) -> str:
    if _same(before, after):
        return f"{what[0].upper()}{what[1:]} leaves {name} at {before:.4g}"
    return f"{what[0].upper()}{what[1:]} lowers {name} from {before:.4g} to {after:.4g}"


def _ridge(found: Theory, scheme: Any) -> list[str]:
    after = ridge_variances(scheme)
    if after is None or not len(after):
        return []
    from harness.findings import UNTOUCHED, dead_directions

    touched = int((after < UNTOUCHED).sum())
    said = (
        f"The ridge of {scheme.ridge:g} touched none of {len(after)} live directions."
        if not touched
        else f"The ridge of {scheme.ridge:g} took more than 1 percent of the variance of {touched} "
        f"of {len(after)} live directions, and left {after.min():.3g} of it in the smallest."
    )
    if found.facts is None:
        return [said]
    dead = int(dead_directions(found.facts, scheme).sum())
    return [said, f"{dead} directions that carry only rounding were dropped."] if dead else [said]


def _observed(found: Theory, convergent: Largest, falling: Largest) -> list[str]:
    said = []
    if falling.step_size is not None:
        more = " (the grid's largest)" if falling.censored else ""
        ratio = f", {falling.step_size / found.threshold:.3g} of 2/L" if found.threshold else ""
        said.append(
            f"On the grid the cost fell throughout up to step {falling.step_size:g}{more}{ratio}."
        )
    if convergent.step_size is None:
        return [*said, "No step size below the first failure settled."]
    more = ", and nothing above it failed" if convergent.censored else ""
    return [*said, f"The largest convergent step is {convergent.step_size:g}{more}."]


def _best(found: Theory, best: Step | None, at_best: float | None) -> list[str]:
    if best is None:
        return ["No step size stayed finite."]
    among = (
        "" if best.verdict == "settled" else " (nothing settled; it is the lowest that is finite)"
    )
    said = [f"The best step is {best.step_size:g}, {best.verdict}{among}."]
    if at_best and found.threshold and best.step_size > found.threshold and not found.exact:
        local = theory.step_threshold(at_best)
        said.append(
            f"It lies above 2/L because curvature fell on the way: at its weights L is "
            f"{at_best:.4g} and 2/L is {local:.4g}."
        )
    return said


def _minimum(least: Minimum) -> list[str]:
    if least.at_infinity:
        return [
            "The classes are separable: the least cost lies at infinity, larger weights always "
            "lower it, and targets are shares of the cost at zero weights."
        ]
    if not least.reached:
        return [f"The least cost is not known ({least.source})."]
    return [f"The least cost is {least.value:.6g}."]


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= NEAR * max(abs(one), abs(other))
