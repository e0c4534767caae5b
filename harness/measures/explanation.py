"""One paragraph in plain words, made from the numbers: why a scheme allowed its step sizes."""

from typing import Any

from normbench.measures.findings import ridge_variances
from normbench.results import names
from normbench.theory import spectra
from normbench.theory.analysis import Theory
from normbench.theory.minimum import Minimum
from normbench.verdicts.convergence import Largest
from normbench.verdicts.judging import Step

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
    plain: bool,
    chosen: bool,
) -> str:
    """Return the paragraph of one scheme.

    factor: what the Gram matrix's largest eigenvalue is multiplied by to give L; None where the
    cost has no global bound. plain: the optimizer is plain gradient descent, so that `2/L` speaks
    of it. chosen: `shown_step` chose best, which need not be the best.
    """
    sentences = [
        *_threshold(found, plain),
        *_cause(found, factor),
        *_ridge(found, scheme),
        *_observed(found.threshold if plain else None, convergent, falling),
        *_best(best, chosen),
        *(_above(found, best, at_best) if plain else []),
        *_minimum(least),
    ]
    return " ".join(sentences)


def _threshold(found: Theory, plain: bool) -> list[str]:
    if found.threshold is None:
        return [f"No threshold from curvature: {found.notes or 'there is none'}."]
    if found.lipschitz is None:
        said = (
            f"The curvature at the start is {found.at_start:.4g}, so 2/L is {found.threshold:.4g} "
            "there; the cost has no bound that holds everywhere."
        )
        return [said] if plain else [said, "It speaks of plain gradient descent alone."]
    where = "L = {:.4g} everywhere" if found.exact else "at most L = {:.4g}"
    curved = f"The curvature is {where.format(found.lipschitz)}"
    limit = f"where the step size is below 2/L = {found.threshold:.4g}"
    if plain and found.exact:
        return [f"{curved}, so descent converges exactly {limit}."]
    if plain:
        return [f"{curved}, so the cost is certain to fall {limit}."]
    what = "would converge exactly" if found.exact else "would be certain to lower the cost"
    return [f"{curved}: plain gradient descent {what} {limit}; this is another optimizer."]


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
    from normbench.measures.findings import UNTOUCHED, dead_directions

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


def _observed(threshold: float | None, convergent: Largest, falling: Largest) -> list[str]:
    """Say what the grid showed; threshold: the `2/L` that it is held against."""
    said = []
    if falling.step_size is not None:
        more = " (the grid's largest)" if falling.censored else ""
        ratio = f", {falling.step_size / threshold:.3g} of 2/L" if threshold else ""
        said.append(
            f"On the grid the cost fell throughout up to step {falling.step_size:g}{more}{ratio}."
        )
    if convergent.step_size is None:
        return [*said, "No step size below the first failure settled."]
    more = ", and nothing above it failed" if convergent.censored else ""
    return [*said, f"The largest convergent step is {convergent.step_size:g}{more}."]


def _best(best: Step | None, chosen: bool) -> list[str]:
    if best is None:
        return ["No step size stayed finite."]
    if chosen:
        return [f"The step shown, by choice, is {best.step_size:g}, {best.verdict}."]
    among = (
        ""
        if best.verdict == names.SETTLED
        else " (nothing settled; it is the lowest that is finite)"
    )
    return [f"The best step is {best.step_size:g}, {best.verdict}{among}."]


def _above(found: Theory, best: Step | None, at_best: float | None) -> list[str]:
    """Say how the best step can lie above 2/L, where it does."""
    if best is None or not at_best or not found.threshold or found.exact:
        return []
    if best.step_size <= found.threshold:
        return []
    local = spectra.step_threshold(at_best)
    here = f"at its weights L is {at_best:.4g} and 2/L is {local:.4g}"
    if local > best.step_size:
        return [f"It lies above 2/L because curvature fell on the way: {here}."]
    return [f"It lies above 2/L; {here}, which it is above as well."]


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
