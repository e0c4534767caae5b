"""Select the sentences on theory by conditions on the recorded numbers and tags of schemes."""

from collections.abc import Mapping, Sequence
from math import isclose, isfinite
from typing import Any, NamedTuple

from normbench import names
from normbench.results.words.sentences import (
    CLAUSES,
    Sentence,
    agree,
    join_phrases,
    make_sentence,
    paragraph,
)

EQUAL_TOLERANCE = 1e-6  # relative: two thresholds nearer than that are one
FLAT_FACTOR = (
    1e6  # times a step size: 2/L beyond that says that the cost is flat there, and no more
)
ZERO_TOLERANCE = 1e-12  # of the start's excess: a least cost below is 0, to rounding
NEAR_TOLERANCE = 0.02  # relative: two numbers nearer than that are called the same


class SchemeRecord(NamedTuple):
    """The recorded metrics and tags of a scheme, by key; a missing number may be NaN."""

    metrics: Mapping[str, float]
    tags: Mapping[str, str]

    @classmethod
    def from_row(cls, row: Mapping[Any, Any]) -> "SchemeRecord":
        """Return the metrics and tags of a row of the table of runs.

        Args:
            row: Values by column, such as `metrics.theory/lipschitz` and `tags.verdict`.
        """

        def columns(prefix: str, value_type: type) -> dict[str, Any]:
            """Return the values of a type in the columns with a prefix, by key without it.

            Other types, such as None for a missing tag, are left out.
            """
            return {
                str(key).removeprefix(prefix): value
                for key, value in row.items()
                if str(key).startswith(prefix) and isinstance(value, value_type)
            }

        return cls(columns(names.METRICS, float), columns(names.TAGS, str))

    def number(self, metric: names.Metric) -> float | None:
        """Return a metric; None where it is not recorded or not finite."""
        value = self.metrics.get(metric.key, float("nan"))
        return value if isfinite(value) else None

    def text(self, tag: names.Tag) -> str:
        """Return the text of a tag; empty where it is not recorded."""
        return self.tags.get(tag.key, "")

    def is_true(self, tag: names.Tag) -> bool:
        """Return whether the text of a tag is `true`."""
        return self.text(tag) == "true"

    @property
    def exact(self) -> bool:
        """Whether the curvature is the same everywhere."""
        return self.text(names.BASIS).startswith(names.EXACT)


def explain_scheme(record: SchemeRecord) -> list[Sentence]:
    """Return the sentences on one scheme, from its theory to its least cost.

    Args:
        record: The metrics and tags of the scheme run, which include the best step size and its
            verdict.
    """
    return [
        *_threshold(record),
        *_start_curvature(record),
        *_hidden_condition(record),
        *_transformation(record),
        *_ridge(record),
        *_observed_steps(record),
        *_best_step(record),
        *_above_threshold(record),
        *least_cost(record),
    ]


def explain_briefly(record: SchemeRecord) -> str:
    """Return up to three sentences on a scheme as one text.

    They are on its threshold 2/L, on its transformation, and on its best step size.
    """
    first_sentences = [
        *_threshold(record)[:1],
        *_transformation(record)[:1],
        *_best_step(record)[:1],
    ]
    return paragraph(first_sentences)


def _threshold(record: SchemeRecord) -> list[Sentence]:
    """Return the sentences on 2/L, or on why there is none.

    2/L is from a global bound L of the curvature, or else from the curvature at the start. Both
    speak of plain gradient descent; for batches and other optimizers the sentences say so.
    """
    threshold, lipschitz = record.number(names.THRESHOLD), record.number(names.LIPSCHITZ)
    if threshold is None:
        return [make_sentence("no_threshold", why=record.text(names.NOTE) or "there is none")]
    plain = record.is_true(names.PLAIN)
    if lipschitz is None:  # no bound holds everywhere
        start = record.number(names.LIPSCHITZ_START)
        first = make_sentence("start_only", start=start, threshold=threshold)
        other = "start_of_all_points" if record.is_true(names.BATCHED) else "start_of_another"
        return [first] if plain else [first, make_sentence(other)]
    other = "of_all_points" if record.is_true(names.BATCHED) else "other_optimizer"
    template = ("exact" if record.exact else "bound") if plain else other
    return [make_sentence(template, lipschitz=lipschitz, threshold=threshold)]


def _start_curvature(record: SchemeRecord) -> list[Sentence]:
    """Return the sentence on a curvature at the start that is below the global bound.

    There is none where the curvature is the same everywhere, where one of the two is not recorded
    or 0, and where they differ by less than `NEAR_TOLERANCE`.
    """
    bound, start = record.number(names.LIPSCHITZ), record.number(names.LIPSCHITZ_START)
    threshold = record.number(names.THRESHOLD_START)
    if (
        record.exact
        or not bound
        or not start
        or threshold is None
        or isclose(bound, start, rel_tol=NEAR_TOLERANCE)
    ):
        return []
    return [make_sentence("at_start", start=start, share=start / bound, threshold=threshold)]


def _hidden_condition(record: SchemeRecord) -> list[Sentence]:
    """Return the sentence on a condition number that rounding hides, if it does."""
    limit = record.number(names.CONDITION_LIMIT)
    return [] if limit is None else [make_sentence("beyond", limit=limit)]


def _transformation(record: SchemeRecord) -> list[Sentence]:
    """Return the sentences on the scheme's transformation and its effect on the curvature."""
    if not record.text(names.AFFINE):  # the transformation was not examined
        return []
    if not record.is_true(names.AFFINE):
        return [make_sentence("no_map"), *_largest_curvature(record)]
    is_done = {
        "centres the features": record.is_true(names.CENTRES),
        # Centring is a shift, and is said instead.
        "shifts the features": record.is_true(names.SHIFTS) and not record.is_true(names.CENTRES),
        "scales them": record.is_true(names.SCALES),
        "rotates them": record.is_true(names.ROTATES),
    }
    actions = [action for action, applies in is_done.items() if applies]
    if not actions:
        return [make_sentence("untouched")]
    if not actions[0].endswith("the features"):  # the first phrase names what "them" stands for
        actions[0] = actions[0].replace("them", "the features")
    return [make_sentence("parts", parts=join_phrases(actions)), *_largest_curvature(record)]


def _largest_curvature(record: SchemeRecord) -> list[Sentence]:
    """Return the sentences on L under the scheme, and under centring and scaling alone.

    Where the cost has no global bound L, they are on the Gram matrix's largest eigenvalue. There
    are none where one of the eigenvalues is not recorded.
    """
    metrics = (names.SPECTRUM_LARGEST, names.LARGEST_RAW, names.LARGEST_CENTRED)
    curvature, raw, centred = (record.number(metric) for metric in metrics)
    standard = record.number(names.LARGEST_STANDARD)
    if not curvature or raw is None or centred is None or standard is None:
        return []
    # The Gram matrix's eigenvalues times this factor bound the cost's curvatures.
    factor = record.number(names.COST_CURVATURE) or 1.0
    has_bound = record.number(names.LIPSCHITZ) is not None
    quantity = "L" if has_bound else "the Gram matrix's largest eigenvalue"
    sentences = [make_sentence("here", what=quantity, here=curvature, raw=factor * raw)]
    # Each simpler scheme is named only where the scheme does more than that one.
    if record.is_true(names.SCALES) or record.is_true(names.ROTATES):
        sentences.append(make_sentence("centring", centred=factor * centred))
    if record.is_true(names.ROTATES) and record.is_true(names.SCALES):
        sentences.append(make_sentence("scaling", standard=factor * standard))
    # Along the bias the Gram matrix has the curvature 1, so that L is at least the factor.
    if isclose(curvature, factor, rel_tol=EQUAL_TOLERANCE):
        sentences.append(make_sentence("least_possible", here=factor))
    return sentences


def _ridge(record: SchemeRecord) -> list[Sentence]:
    """Return the sentences on the ridge of a scheme, and on directions that it lost or dropped.

    The ridge is the constant that protects against division by zero. Lost directions vary, but
    rounding hid them; dropped (dead) directions hold rounding errors alone. Live directions are
    those that the scheme keeps; touched ones are scaled too little because of the ridge. There are
    no sentences for a scheme without a ridge, and none on a ridge of 0.
    """
    ridge, live_directions = record.number(names.RIDGE), record.number(names.LIVE_DIRECTIONS)
    share, touched_directions = record.number(names.RIDGE_SHARE), record.number(names.RIDGE_TOUCHED)
    if ridge is None or not live_directions or share is None:
        return []
    fields: dict[str, Any] = {"ridge": ridge, "share": share, "live": live_directions}
    fields |= agree(live_directions, "directions")
    sentences = []
    if ridge and touched_directions:
        fields |= {"touched": touched_directions, "least": record.number(names.RIDGE_SMALLEST)}
        sentences = [make_sentence("ridge_holds", **fields, **agree(touched_directions, "are"))]
    elif ridge:
        sentences = [make_sentence("ridge_idle", **fields)]
    dead_directions, lost_directions = (
        record.number(names.DEAD_DIRECTIONS),
        record.number(names.LOST_DIRECTIONS),
    )
    if lost_directions:
        every = lost_directions + live_directions
        verb = agree(lost_directions, "were", "them")
        return [*sentences, make_sentence("lost", lost=lost_directions, all=every, **verb)]
    if dead_directions:
        phrase = agree(dead_directions, "directions", "were", "they", "hold")
        return [*sentences, make_sentence("dropped", dead=dead_directions, **phrase)]
    return sentences


def _observed_steps(record: SchemeRecord) -> list[Sentence]:
    """Return the sentences on the largest step sizes of the grid that fall, and that converge.

    The one that falls is compared with 2/L for plain gradient descent. If no step size converged, a
    sentence says so. There are none for an optimizer that finds its own step sizes.
    """
    if record.is_true(names.GRIDLESS):
        return []
    sentences = []
    falling = record.number(names.LARGEST_FALLING)
    if falling is not None:
        reservation = " (the largest tried)" if record.is_true(names.CENSORED_FALLING) else ""
        threshold = record.number(names.THRESHOLD) if record.is_true(names.PLAIN) else None
        ratio = f", {falling / threshold:.3g} times 2/L" if threshold else ""
        sentences.append(make_sentence("falling", falling=falling, end=reservation, ratio=ratio))
    convergent = record.number(names.LARGEST_CONVERGENT)
    if convergent is not None:
        reservation = ", and no larger one failed" if record.is_true(names.CENSORED) else ""
        return [*sentences, make_sentence("convergent", convergent=convergent, end=reservation)]
    # The number of converged step sizes; None, of which nothing is said, where it is not recorded.
    if record.number(names.STEPS_LEVELLED) == 0:
        return [*sentences, make_sentence("none_converged")]
    return sentences


def _best_step(record: SchemeRecord) -> list[Sentence]:
    """Return the sentence on the step size that represents the scheme, and on its verdict.

    That step size is the best one, by cost or by misclassified points, or the one that the setting
    `shown_step` chose. There is none for an optimizer that finds its own step sizes.
    """
    if record.is_true(names.GRIDLESS):
        return []
    step, verdict = record.text(names.STEP_TAG), record.text(names.VERDICT)
    if not step:
        return [make_sentence("none_ranked")]
    # The tag `COMPARED` is recorded only where misclassified points are compared.
    best = "fewest" if record.text(names.COMPARED) else "best"
    name = "shown" if record.is_true(names.STEP_CHOSEN) else best
    return [make_sentence(name, step=float(step), verdict=verdict)]


def _above_threshold(record: SchemeRecord) -> list[Sentence]:
    """Return the sentences on the step size that represents a scheme, if it is above 2/L.

    The first gives their ratio. Where the curvature varies, two more compare the step size with 2/L
    by the curvature at the start and at the last weights. There are none for a step size at or
    below 2/L, without such a step size or a 2/L, and unless the descent is plain gradient descent.
    """
    step, threshold = record.text(names.STEP_TAG), record.number(names.THRESHOLD)
    # 2/L speaks of plain gradient descent only.
    if not step or not threshold or not record.is_true(names.PLAIN) or float(step) <= threshold:
        return []
    sentences = [make_sentence("above", ratio=float(step) / threshold)]
    if record.exact:  # the curvature, and so 2/L, is the same at all weights
        return sentences
    start, best = record.number(names.THRESHOLD_START), record.number(names.THRESHOLD_BEST)
    # A 2/L of more than 1e6 step sizes means that the cost is flat there, and says no more.
    for name, local_threshold in (("above_start", start), ("above_best", best)):
        if local_threshold is not None and local_threshold <= FLAT_FACTOR * float(step):
            # Where 2/L is, relative to the step size.
            side = "above" if local_threshold > float(step) else "below"
            sentences.append(make_sentence(name, threshold=local_threshold, side=side))
    return sentences


def least_cost(record: SchemeRecord) -> list[Sentence]:
    """Return the sentence on the value of the least cost, and on whether weights attain it.

    Where misclassified points are compared, the sentence says that no run went below the cost of
    zero weights, if none did. There is none without a recorded least cost, and where the splits of
    a merged record differ in it: in the case, or in whether it was solved for.
    """
    value, source = record.number(names.MINIMUM), record.text(names.MINIMUM_SOURCE)
    case, reached = record.text(names.MINIMUM_CASE), record.text(names.MINIMUM_REACHED)
    if value is None:
        return []
    if record.text(names.COMPARED) == names.MISCLASSIFICATIONS:
        # Such a cost is 0 at zero weights.
        return [make_sentence("trivial")] if value >= 0 else []
    if not case:  # a merged record has no tag in which its splits differ
        return []
    if case == names.STRICTLY:
        return [make_sentence("strictly")]
    if case == names.OF_NETWORK:
        return [make_sentence("lowest_of_scheme", minimum=value)]
    if case == names.UNDECIDED:
        # Else the value is the lowest cost of the grid, below which finer step sizes may go.
        clause = CLAUSES["lowest_known"].format(minimum=value) if reached == "true" else ""
        return [make_sentence("undecided", value=clause)]
    if not reached:
        return []
    # The excess of the start is 10 (tenth_target - value): a tenth of it is left at that target. A
    # least cost below `ZERO_TOLERANCE` of it is written as 0.
    tenth_target = record.number(names.target("1e-1"))
    if (
        case == names.ATTAINED
        and tenth_target is not None
        and 0 <= value <= ZERO_TOLERANCE * (tenth_target - value) * 10
    ):
        value = 0.0
    name = "attained" if case == names.ATTAINED else "partly"
    return [
        make_sentence(name, minimum=value)
        if reached == "true"
        else make_sentence(f"{name}_unknown", source=source)
    ]


def explain_comparison(
    schemes: Sequence[tuple[str, SchemeRecord]], on_some_split: bool = False
) -> list[Sentence]:
    """Return the sentences that compare schemes.

    Args:
        schemes: The label and the record of each scheme.
        on_some_split: Whether a step size converged for one of the jobs that the records merge. It
            need not have converged for all of them.

    Returns:
        The sentences.
    """
    return [
        *_thresholds(schemes),
        *_largest_convergent(schemes, on_some_split),
        *_shared_least_cost(schemes),
        *_lost_directions(schemes),
    ]


def _recorded_values(
    schemes: Sequence[tuple[str, SchemeRecord]], metric: names.Metric
) -> list[tuple[float, str]]:
    """Return the values of a metric with the labels of the schemes that have it.

    Args:
        schemes: The label and the record of each scheme.
        metric: The metric.
    """
    values = [(record.number(metric), label) for label, record in schemes]
    return [(value, label) for value, label in values if value is not None]


def extremes(values: Sequence[tuple[float, str]]) -> tuple[tuple[float, str], tuple[float, str]]:
    """Return the least and the largest value, each with the labels that share it up to rounding.

    Args:
        values: Values with the labels of their schemes.

    Returns:
        Two pairs of a value and its joined labels.
    """
    least, largest = min(values)[0], max(values)[0]
    low, high = (
        " = ".join(label for value, label in values if isclose(value, end, rel_tol=EQUAL_TOLERANCE))
        for end in (least, largest)
    )
    return (least, low), (largest, high)


def _thresholds(schemes: Sequence[tuple[str, SchemeRecord]]) -> list[Sentence]:
    """Return the sentence that compares 2/L between schemes, where two or more have it.

    A scheme is left out if 2/L does not speak of its optimizer, and if it has a fault: its steps
    are large because its features vary little.

    Args:
        schemes: The label and the record of each scheme.
    """
    plain_schemes = [
        (label, record)
        for label, record in schemes
        if record.text(names.PLAIN) != "false" and not _has_fault(record)
    ]
    thresholds = _recorded_values(plain_schemes, names.THRESHOLD)
    if len(thresholds) < 2:
        return []
    (least, low), (largest, high) = extremes(thresholds)
    if largest <= least * (1 + NEAR_TOLERANCE):
        return [make_sentence("same_threshold", threshold=largest)]
    return [
        make_sentence(
            "thresholds", high=high, most=largest, ratio=largest / least, low=low, least=least
        )
    ]


def _has_fault(record: SchemeRecord) -> bool:
    """Return whether the scheme lost or did not scale features, or scaled no direction enough."""
    touched = record.number(names.RIDGE_TOUCHED)
    return bool(
        record.number(names.FEATURES_LOST)
        or record.number(names.FEATURES_UNSCALED)
        or (touched and touched == record.number(names.LIVE_DIRECTIONS))
    )


def _largest_convergent(
    schemes: Sequence[tuple[str, SchemeRecord]], on_some_split: bool
) -> list[Sentence]:
    """Return the sentence on the largest step size that converged under any scheme, if one did.

    Otherwise the sentence says that none converged; there is none for optimizers that find their
    own step sizes. Schemes with a fault are left out, unless all have one.

    Args:
        schemes: The label and the record of each scheme.
        on_some_split: Whether a step size converged for one of the jobs that the records merge.
    """
    metric = names.LARGEST_CONVERGENT
    # Optimizers that find their own step sizes had none to try.
    schemes = [(label, record) for label, record in schemes if not record.is_true(names.GRIDLESS)]
    if not schemes:
        return []
    schemes = [(label, record) for label, record in schemes if not _has_fault(record)] or schemes
    step_sizes = _recorded_values(schemes, metric)
    if not step_sizes:
        # `on_some_split`: but not on all of them.
        return [make_sentence("none_on_every_split" if on_some_split else "none_convergent")]
    largest = max(step_sizes)[0]
    # The schemes under which the largest of these step sizes converged.
    largest_records = [
        (label, record) for label, record in schemes if record.number(metric) == largest
    ]
    is_lower_bound = any(record.is_true(names.CENSORED) for _, record in largest_records)
    reservation = "; none that was tried was too large" if is_lower_bound else ""
    labels = "; ".join(label for label, _ in largest_records)  # a label has commas of its own
    return [make_sentence("largest_convergent", step=largest, labels=labels, end=reservation)]


def _is_network(record: SchemeRecord) -> bool:
    """Return whether the scores of a scheme's model are not linear in the weights."""
    return record.text(names.MINIMUM_CASE) == names.OF_NETWORK


def _shared_least_cost(schemes: Sequence[tuple[str, SchemeRecord]]) -> list[Sentence]:
    """Return the sentence on the least cost if it is the same for all schemes, else nothing.

    For networks the sentence is on the lowest cost that any scheme saw. Failed schemes, which have
    no tags, are left out.
    """
    # All schemes that did not fail are networks.
    networks = [record for _, record in schemes if _is_network(record)]
    if networks and len(networks) == len([record for _, record in schemes if record.tags]):
        values = _recorded_values(schemes, names.MINIMUM)
        return [make_sentence("lowest_of_comparison", minimum=min(values)[0])] if values else []
    # By text: equal sentences count once.
    sentences = {
        sentence.text: sentence for _, record in schemes for sentence in least_cost(record)
    }
    # A scheme of another case, even without a sentence, does not share the least cost.
    cases = {record.text(names.MINIMUM_CASE) for _, record in schemes if record.tags}
    return list(sentences.values()) if len(sentences) == 1 and len(cases) == 1 else []


def _lost_directions(schemes: Sequence[tuple[str, SchemeRecord]]) -> list[Sentence]:
    """Return the sentence on schemes that lost directions of the scaled features in rounding."""
    lost_counts = [
        (lost, label) for lost, label in _recorded_values(schemes, names.LOST_DIRECTIONS) if lost
    ]
    if not lost_counts:
        return []
    labels, most = "; ".join(label for _, label in lost_counts), max(lost_counts)[0]
    phrase = agree(most, "directions", "them")
    return [make_sentence("lost_by", labels=labels, lost=most, **phrase)]
