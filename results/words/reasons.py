"""When a sentence of theory is said: conditions on the recorded numbers and tags of schemes."""

from collections.abc import Mapping, Sequence
from math import isclose, isfinite
from typing import Any, NamedTuple

from normbench import names
from normbench.results.words.sentences import Said, listed, paragraph, said

EQUAL = 1e-6  # relative: two thresholds nearer than that are one
FLAT = 1e6  # times a step size: 2/L beyond that says that the cost is flat there, and no more
ZERO = 1e-12  # of the start's excess: a least cost below is 0, to rounding
NEAR = 0.02  # relative: two numbers nearer than that are called the same


class Found(NamedTuple):
    """What is recorded of a scheme, by key: numbers, NaN or missing for none, and tags."""

    metrics: Mapping[str, float]
    tags: Mapping[str, str]

    @classmethod
    def of_row(cls, row: Mapping[Any, Any]) -> "Found":
        """Return what a row of a table of runs holds."""

        def part(prefix: str, kind: type) -> dict[str, Any]:
            return {
                str(key).removeprefix(prefix): value
                for key, value in row.items()
                if str(key).startswith(prefix) and isinstance(value, kind)
            }

        return cls(part(names.METRICS, float), part(names.TAGS, str))

    def number(self, metric: names.Metric) -> float | None:
        """Return a number, None where there is none: what is not finite is not recorded."""
        value = self.metrics.get(metric.key, float("nan"))
        return value if isfinite(value) else None

    def word(self, tag: names.Tag) -> str:
        """Return what a tag says; empty where it is not there."""
        return self.tags.get(tag.key, "")

    def says(self, tag: names.Tag) -> bool:
        """Return whether a tag is true."""
        return self.word(tag) == "true"

    @property
    def exact(self) -> bool:
        """Whether the curvature is the same everywhere."""
        return self.word(names.BASIS).startswith(names.EXACT)


def of_scheme(found: Found) -> list[Said]:
    """Return what is said of one scheme; its step size and verdict are among the tags."""
    return [
        *_threshold(found),
        *_at_start(found),
        *_beyond(found),
        *_cause(found),
        *_ridge(found),
        *_observed(found),
        *_best(found),
        *_above(found),
        *least_cost(found),
    ]


def in_short(found: Found) -> str:
    """Return three sentences on a scheme: its threshold, what it does, and its best step."""
    parts = (_threshold(found)[:1], _cause(found)[:1], _best(found)[:1])
    return paragraph([one for part in parts for one in part])


def _threshold(found: Found) -> list[Said]:
    threshold, lipschitz = found.number(names.THRESHOLD), found.number(names.LIPSCHITZ)
    if threshold is None:
        return [said("no_threshold", why=found.word(names.NOTE) or "there is none")]
    plain = found.says(names.PLAIN)
    if lipschitz is None:
        start = found.number(names.LIPSCHITZ_START)
        first = said("start_only", start=start, threshold=threshold)
        return [first] if plain else [first, said("start_of_another")]
    kind = ("exact" if found.exact else "bound") if plain else "other_optimizer"
    return [said(kind, lipschitz=lipschitz, threshold=threshold)]


def _at_start(found: Found) -> list[Said]:
    """Say how the curvature at the start falls short of its bound, where it does."""
    bound, start = found.number(names.LIPSCHITZ), found.number(names.LIPSCHITZ_START)
    threshold = found.number(names.THRESHOLD_START)
    if (
        found.exact
        or not bound
        or not start
        or threshold is None
        or isclose(bound, start, rel_tol=NEAR)
    ):
        return []
    return [said("at_start", start=start, share=start / bound, threshold=threshold)]


def _beyond(found: Found) -> list[Said]:
    limit = found.number(names.CONDITION_LIMIT)
    return [] if limit is None else [said("beyond", limit=limit)]


def _cause(found: Found) -> list[Said]:
    """Say what the scheme does, as its own map tells, and what comes of it."""
    if not found.word(names.AFFINE):
        return []
    if not found.says(names.AFFINE):
        return [said("no_map"), *_under_it(found)]
    done = {
        "centres the features": found.says(names.CENTRES),
        "shifts the features": found.says(names.SHIFTS) and not found.says(names.CENTRES),
        "scales them": found.says(names.SCALES),
        "rotates them": found.says(names.ROTATES),
    }
    words = [word for word, does in done.items() if does]
    if not words:
        return [said("untouched")]
    if not words[0].endswith("the features"):
        words[0] = words[0].replace("them", "the features")
    return [said("parts", parts=listed(words)), *_under_it(found)]


def _under_it(found: Found) -> list[Said]:
    """Say how large L is under the scheme, and how large centring and scaling alone make it."""
    numbers = (names.SPECTRUM_LARGEST, names.LARGEST_RAW, names.LARGEST_CENTRED)
    here, raw, centred = (found.number(metric) for metric in numbers)
    standard = found.number(names.LARGEST_STANDARD)
    if not here or raw is None or centred is None or standard is None:
        return []
    factor = found.number(names.COST_CURVATURE) or 1.0
    known = found.number(names.LIPSCHITZ) is not None
    what = "L" if known else "the Gram matrix's largest eigenvalue"
    sentences = [said("here", what=what, here=here, raw=factor * raw)]
    if found.says(names.SCALES) or found.says(names.ROTATES):
        sentences.append(said("centring", centred=factor * centred))
    if found.says(names.ROTATES) and found.says(names.SCALES):
        sentences.append(said("scaling", standard=factor * standard))
    if isclose(here, factor, rel_tol=EQUAL):
        sentences.append(said("least_possible", here=factor))
    return sentences


def _ridge(found: Found) -> list[Said]:
    ridge, live = found.number(names.RIDGE), found.number(names.LIVE_DIRECTIONS)
    share, touched = found.number(names.RIDGE_SHARE), found.number(names.RIDGE_TOUCHED)
    if ridge is None or not live or share is None:
        return []
    sentences = [said("ridge_idle", ridge=ridge, share=share, live=live)]
    if touched:
        least = found.number(names.RIDGE_SMALLEST)
        values = {"ridge": ridge, "share": share, "live": live, "touched": touched, "least": least}
        sentences = [said("ridge_holds", **values)]
    dead, lost = found.number(names.DEAD_DIRECTIONS), found.number(names.LOST_DIRECTIONS)
    if lost:
        return [*sentences, said("lost", lost=lost, all=lost + live)]
    return [*sentences, said("dropped", dead=dead)] if dead else sentences


def _observed(found: Found) -> list[Said]:
    """Say what the grid showed, beside the `2/L` where it speaks of the optimizer."""
    sentences = []
    falling = found.number(names.LARGEST_FALLING)
    if falling is not None:
        end = " (the largest tried)" if found.says(names.CENSORED_FALLING) else ""
        threshold = found.number(names.THRESHOLD) if found.says(names.PLAIN) else None
        ratio = f", {falling / threshold:.3g} times 2/L" if threshold else ""
        sentences.append(said("falling", falling=falling, end=end, ratio=ratio))
    convergent = found.number(names.LARGEST_CONVERGENT)
    if convergent is not None:
        end = ", and no larger one failed" if found.says(names.CENSORED) else ""
        return [*sentences, said("convergent", convergent=convergent, end=end)]
    if found.number(names.STEPS_LEVELLED) == 0:
        return [*sentences, said("none_converged")]
    return sentences


def _best(found: Found) -> list[Said]:
    step, verdict = found.word(names.STEP_TAG), found.word(names.VERDICT)
    if not step:
        return [said("none_ranked")]
    best = "fewest" if found.word(names.COMPARED) else "best"
    name = "shown" if found.says(names.STEP_CHOSEN) else best
    return [said(name, step=float(step), verdict=verdict)]


def _above(found: Found) -> list[Said]:
    """Say how a step size above 2/L compares with the curvature that the descent met."""
    step, threshold = found.word(names.STEP_TAG), found.number(names.THRESHOLD)
    if not step or not threshold or not found.says(names.PLAIN) or float(step) <= threshold:
        return []
    sentences = [said("above", ratio=float(step) / threshold)]
    if found.exact:
        return sentences
    start, best = found.number(names.THRESHOLD_START), found.number(names.THRESHOLD_BEST)
    for name, local in (("above_start", start), ("above_best", best)):
        if local is not None and local <= FLAT * float(step):
            side = "above" if local > float(step) else "below"
            sentences.append(said(name, threshold=local, side=side))
    return sentences


def least_cost(found: Found) -> list[Said]:
    """Say whether some weights attain the least cost, and how low it is."""
    value, source = found.number(names.MINIMUM), found.word(names.MINIMUM_SOURCE)
    case, reached = found.word(names.MINIMUM_CASE), found.says(names.MINIMUM_REACHED)
    if value is None:
        return []
    if found.word(names.COMPARED) == names.MISCLASSIFICATIONS:
        return [said("trivial")] if value >= 0 else []
    if case == names.STRICTLY:
        return [said("strictly")]
    if case == names.UNDECIDED:
        return [said("undecided", minimum=value)]
    tenth = found.number(names.target("1e-1"))
    if case == names.ATTAINED and tenth is not None and 0 <= value <= ZERO * (tenth - value) * 10:
        value = 0.0
    name = "attained" if case == names.ATTAINED else "partly"
    return [said(name, minimum=value) if reached else said(f"{name}_unknown", source=source)]


def of_comparison(schemes: Sequence[tuple[str, Found]], on_some_split: bool = False) -> list[Said]:
    """Return what is said of schemes together, `(label, found)` each.

    on_some_split: whether a step size converged for one of the jobs that they are medians of.
    """
    return [
        *_thresholds(schemes),
        *_convergent(schemes, on_some_split),
        *_least_of_all(schemes),
        *_lost(schemes),
    ]


def _known(schemes: Sequence[tuple[str, Found]], metric: names.Metric) -> list[tuple[float, str]]:
    """Return a number of the schemes that have it, with their labels."""
    values = [(each.number(metric), label) for label, each in schemes]
    return [(value, label) for value, label in values if value is not None]


def extremes(values: Sequence[tuple[float, str]]) -> tuple[tuple[float, str], tuple[float, str]]:
    """Return the least and the largest of values, each with the labels that have it to rounding."""
    least, most = min(values)[0], max(values)[0]
    low, high = (
        " = ".join(label for value, label in values if isclose(value, end, rel_tol=EQUAL))
        for end in (least, most)
    )
    return (least, low), (most, high)


def _thresholds(schemes: Sequence[tuple[str, Found]]) -> list[Said]:
    plain = [(label, each) for label, each in schemes if each.word(names.PLAIN) != "false"]
    known = _known(plain, names.THRESHOLD)
    if len(known) < 2:
        return []
    (least, low), (most, high) = extremes(known)
    if most <= least * (1 + NEAR):
        return [said("same_threshold", threshold=most)]
    return [said("thresholds", high=high, most=most, ratio=most / least, low=low, least=least)]


def _convergent(schemes: Sequence[tuple[str, Found]], on_some_split: bool) -> list[Said]:
    metric = names.LARGEST_CONVERGENT
    known = _known(schemes, metric)
    if not known:
        if on_some_split:
            return [said("none_on_every_split")]
        gridless = all(each.says(names.GRIDLESS) for _, each in schemes)
        return [] if gridless else [said("none_convergent")]
    most = max(known)[0]
    rows = [(label, each) for label, each in schemes if each.number(metric) == most]
    above = any(each.says(names.CENSORED) for _, each in rows)
    end = "; no larger one that was tried failed" if above else ""
    labels = "; ".join(label for label, _ in rows)  # a label has commas of its own
    return [said("largest_convergent", step=most, labels=labels, end=end)]


def _least_of_all(schemes: Sequence[tuple[str, Found]]) -> list[Said]:
    """Say what is true of every scheme's least cost, where one sentence is."""
    told = {one.text: one for _, each in schemes for one in least_cost(each)}
    cases = {each.word(names.MINIMUM_CASE) for _, each in schemes if each.tags}
    return list(told.values()) if len(told) == 1 and len(cases) == 1 else []


def _lost(schemes: Sequence[tuple[str, Found]]) -> list[Said]:
    """Say which schemes lost directions that the features, scaled, have."""
    known = [(lost, label) for lost, label in _known(schemes, names.LOST_DIRECTIONS) if lost]
    labels = "; ".join(label for _, label in known)
    return [said("lost_by", labels=labels, lost=max(known)[0])] if known else []
