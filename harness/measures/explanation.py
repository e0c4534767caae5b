"""One paragraph in plain words, made from the recorded numbers: why a scheme allowed its steps."""

from collections.abc import Mapping
from typing import NamedTuple

from normbench.results import names
from normbench.verdicts.judging import Step

NEAR = 0.02  # relative: two curvatures nearer than that are called the same


class Found(NamedTuple):
    """What is recorded of a scheme: numbers, NaN or missing where there is none, and words."""

    metrics: Mapping[str, float]
    tags: Mapping[str, str]

    def number(self, metric: names.Metric) -> float | None:
        """Return a number, None where there is none."""
        value = self.metrics.get(metric.key, float("nan"))
        return None if value != value else value

    def word(self, tag: names.Tag) -> str:
        """Return what a tag says; empty where it is not there."""
        return self.tags.get(tag.key, "")

    def says(self, tag: names.Tag) -> bool:
        """Return whether a tag is true."""
        return self.word(tag) == "true"

    @property
    def threshold(self) -> float | None:
        """The `2/L` that theory has."""
        return self.number(names.THRESHOLD)

    @property
    def exact(self) -> bool:
        """Whether the curvature is the same everywhere."""
        return self.word(names.BASIS).startswith(names.EXACT)


def explain(metrics: Mapping[str, float], tags: Mapping[str, str], best: Step | None) -> str:
    """Return the paragraph of one scheme; best: the step that stands for it."""
    found = Found(metrics, tags)
    plain = found.says(names.PLAIN)
    sentences = [
        *_threshold(found, plain),
        *_cause(found),
        *_ridge(found),
        *_observed(found, plain),
        *_best(best, found.says(names.STEP_CHOSEN)),
        *(_above(found, best) if plain else []),
        *_minimum(found),
    ]
    return " ".join(sentences)


def _threshold(found: Found, plain: bool) -> list[str]:
    lipschitz = found.number(names.LIPSCHITZ)
    if found.threshold is None:
        return [f"No threshold from curvature: {found.word(names.NOTE) or 'there is none'}."]
    if lipschitz is None:
        at_start = found.number(names.LIPSCHITZ_START)
        said = (
            f"The curvature at the start is {at_start:.4g}, so 2/L is {found.threshold:.4g} "
            "there; the cost has no bound that holds everywhere."
        )
        return [said] if plain else [said, "It speaks of plain gradient descent alone."]
    where = "L = {:.4g} everywhere" if found.exact else "at most L = {:.4g}"
    curved = f"The curvature is {where.format(lipschitz)}"
    limit = f"where the step size is below 2/L = {found.threshold:.4g}"
    if plain and found.exact:
        return [f"{curved}, so descent converges exactly {limit}."]
    if plain:
        return [f"{curved}, so the cost is certain to fall {limit}."]
    what = "would converge exactly" if found.exact else "would be certain to lower the cost"
    return [f"{curved}: plain gradient descent {what} {limit}; this is another optimizer."]


def _cause(found: Found) -> list[str]:
    """Say which part of the scheme changed L: centring, scaling or rotation."""
    largest = (names.LARGEST_RAW, names.LARGEST_CENTRED, names.LARGEST_STANDARD)
    parts = [found.number(metric) for metric in largest]
    here = found.number(names.SPECTRUM_LARGEST)
    if not here or None in parts:
        return []
    factor = found.number(names.COST_CURVATURE) or 1.0
    known = found.number(names.LIPSCHITZ) is not None
    name = "L" if known else "the Gram matrix's largest eigenvalue"
    raw, centred, standard = (factor * part for part in parts if part is not None)
    if _same(here, raw):
        return [f"The points as they are have {name} = {raw:.4g}; this scheme leaves it there."]
    lowered = _moved("centring alone", name, raw, centred)
    if _same(here, centred) and not _same(here, factor):
        return [f"{lowered}, and that is all that this scheme does to it."]
    if _same(here, standard) and not _same(here, factor):
        return [
            f"{lowered}; one scale for each feature brought it to {standard:.4g}, which is the "
            f"correlation left between features (largest eigenvalue {standard / factor:.3g})."
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


def _ridge(found: Found) -> list[str]:
    ridge, live = found.number(names.RIDGE), found.number(names.LIVE_DIRECTIONS)
    touched, least = (
        found.number(names.RIDGE_TOUCHED),
        found.number(names.RIDGE_SMALLEST),
    )
    if ridge is None or not live:
        return []
    said = (
        f"The ridge of {ridge:g} touched none of {live:.0f} live directions."
        if not touched
        else f"The ridge of {ridge:g} took more than 1 percent of the variance of {touched:.0f} "
        f"of {live:.0f} live directions, and left {least:.3g} of it in the smallest."
    )
    dead = found.number(names.DEAD_DIRECTIONS)
    if not dead:
        return [said]
    return [said, f"{dead:.0f} directions that carry only rounding were dropped."]


def _observed(found: Found, plain: bool) -> list[str]:
    """Say what the grid showed, beside the `2/L` where it speaks of the optimizer."""
    said = []
    falling = found.number(names.LARGEST_FALLING)
    if falling is not None:
        more = " (the grid's largest)" if found.says(names.CENSORED_FALLING) else ""
        threshold = found.threshold if plain else None
        ratio = f", {falling / threshold:.3g} of 2/L" if threshold else ""
        said.append(f"On the grid the cost fell throughout up to step {falling:g}{more}{ratio}.")
    convergent = found.number(names.LARGEST_CONVERGENT)
    if convergent is None:
        return [*said, "No step size below the first failure settled."]
    more = ", and nothing above it failed" if found.says(names.CENSORED) else ""
    return [*said, f"The largest convergent step is {convergent:g}{more}."]


def _best(best: Step | None, chosen: bool) -> list[str]:
    if best is None:
        return ["No step size stayed finite."]
    if chosen:
        return [f"The step shown, by choice, is {best.step_size:g}, {best.verdict}."]
    settled = best.verdict == names.SETTLED
    among = "" if settled else " (nothing settled; it is the lowest that is finite)"
    return [f"The best step is {best.step_size:g}, {best.verdict}{among}."]


def _above(found: Found, best: Step | None) -> list[str]:
    """Say how the best step can lie above 2/L, where it does."""
    curved = found.number(names.LIPSCHITZ_BEST)
    local = found.number(names.THRESHOLD_BEST)
    if best is None or not curved or local is None or not found.threshold or found.exact:
        return []
    if best.step_size <= found.threshold:
        return []
    here = f"at its weights L is {curved:.4g} and 2/L is {local:.4g}"
    if local > best.step_size:
        return [f"It lies above 2/L because curvature fell on the way: {here}."]
    return [f"It lies above 2/L; {here}, which it is above as well."]


def _minimum(found: Found) -> list[str]:
    if found.says(names.AT_INFINITY):
        return [
            "The classes are separable: the least cost lies at infinity, larger weights always "
            "lower it, and targets are shares of the cost at zero weights."
        ]
    if not found.says(names.MINIMUM_REACHED):
        return [f"The least cost is not known ({found.word(names.MINIMUM_SOURCE)})."]
    return [f"The least cost is {found.number(names.MINIMUM):.6g}."]


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= NEAR * max(abs(one), abs(other))
