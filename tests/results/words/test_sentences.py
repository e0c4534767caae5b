"""Each sentence is said where it is true, and not where it is false."""

import re
from pathlib import Path

import pytest

from normbench import names
from normbench.results.words import sentences
from normbench.results.words.reasons import SchemeRecord, explain_comparison, explain_scheme
from normbench.results.words.sentences import TEMPLATES
from tests.results.report.test_closing import CASES

STEP = {names.STEP_TAG.key: "1", names.VERDICT.key: "converged"}
PLAIN = {names.PLAIN.key: "true", names.BASIS.key: "global bound"}
BOUND = {names.THRESHOLD.key: 4.0, names.LIPSCHITZ.key: 0.5, names.COST_CURVATURE.key: 0.5}
LARGEST = {
    names.SPECTRUM_LARGEST.key: 0.7,
    names.LARGEST_RAW.key: 60.0,
    names.LARGEST_CENTRED.key: 4.0,
    names.LARGEST_STANDARD.key: 3.0,
}
AFFINE, SCALES = {names.AFFINE.key: "true"}, {names.SCALES.key: "true"}
ROTATES = {names.ROTATES.key: "true"}
RIDGE = {
    names.RIDGE.key: 1e-7,
    names.RIDGE_SHARE.key: 1e-8,
    names.LIVE_DIRECTIONS.key: 4.0,
    names.RIDGE_TOUCHED.key: 0.0,
    names.RIDGE_SMALLEST.key: 0.1,
}
GRID = {names.STEPS_LEVELLED.key: 0.0}
MINIMUM = {names.MINIMUM.key: 0.2}
COUNTED = {names.COMPARED.key: names.MISCLASSIFICATIONS}
REACHED = {names.MINIMUM_REACHED.key: "true"}
UNREACHED = {names.MINIMUM_REACHED.key: "false"}


def case(name):
    return {names.MINIMUM_CASE.key: name}


def found(*parts, **tags):
    """What is recorded: dictionaries of numbers and of words, and words by their names."""
    metrics = {key: value for part in parts for key, value in part.items() if type(value) is float}
    words = {key: value for part in parts for key, value in part.items() if type(value) is str}
    return SchemeRecord(
        metrics, words | {getattr(names, name).key: word for name, word in tags.items()}
    )


FAR = {names.STEP_TAG.key: "8", names.VERDICT.key: "converged"}
CURVED = {names.LIPSCHITZ_START.key: 0.1, names.THRESHOLD_START.key: 20.0}
AT_BEST = {names.THRESHOLD_BEST.key: 20.0}
# Of each sentence of a scheme: what makes it true, and the nearest thing that does not.
LOST = {names.DEAD_DIRECTIONS.key: 2.0, names.LOST_DIRECTIONS.key: 2.0}
OF_SCHEME = {
    "no_threshold": (found(), found(BOUND, PLAIN)),
    "start_only": (found({names.THRESHOLD.key: 20.0}, CURVED, PLAIN), found(BOUND, PLAIN)),
    "start_of_another": (
        found({names.THRESHOLD.key: 20.0}, CURVED, PLAIN="false"),
        found({names.THRESHOLD.key: 20.0}, CURVED, PLAIN),
    ),
    "exact": (found(BOUND, PLAIN, BASIS="exact: the same"), found(BOUND, PLAIN)),
    "bound": (found(BOUND, PLAIN), found(BOUND, PLAIN, PLAIN="false")),
    "other_optimizer": (found(BOUND, PLAIN="false"), found(BOUND, PLAIN)),
    "of_all_points": (
        found(BOUND, PLAIN="false", BATCHED="true"),
        found(BOUND, PLAIN="false", BATCHED="false"),
    ),
    "start_of_all_points": (
        found({names.THRESHOLD.key: 20.0}, CURVED, PLAIN="false", BATCHED="true"),
        found({names.THRESHOLD.key: 20.0}, CURVED, PLAIN="false"),
    ),
    "at_start": (
        found(BOUND, PLAIN, CURVED),
        found(BOUND, PLAIN, CURVED, {names.LIPSCHITZ_START.key: 0.495}),
    ),
    "beyond": (found({names.CONDITION_LIMIT.key: 1e30}), found({names.CONDITION.key: 1e29})),
    "untouched": (found(AFFINE), found(AFFINE, SCALES)),
    "parts": (found(AFFINE, SCALES), found(AFFINE)),
    "no_map": (found(AFFINE="false"), found(AFFINE)),
    "here": (found(AFFINE, SCALES, LARGEST), found(AFFINE, LARGEST)),
    "centring": (found(AFFINE, SCALES, LARGEST), found(AFFINE, LARGEST, CENTRES="true")),
    "scaling": (found(AFFINE, SCALES, ROTATES, LARGEST), found(AFFINE, SCALES, LARGEST)),
    "least_possible": (
        found(AFFINE, SCALES, LARGEST, {names.SPECTRUM_LARGEST.key: 1.0}),
        found(AFFINE, SCALES, LARGEST),
    ),
    "ridge_idle": (found(RIDGE), found(RIDGE, {names.RIDGE_TOUCHED.key: 1.0})),
    "ridge_holds": (found(RIDGE, {names.RIDGE_TOUCHED.key: 1.0}), found(RIDGE)),
    "lost": (found(RIDGE, LOST), found(RIDGE)),
    "dropped": (found(RIDGE, {names.DEAD_DIRECTIONS.key: 2.0}), found(RIDGE)),
    "falling": (found({names.LARGEST_FALLING.key: 0.1}), found()),
    "convergent": (found({names.LARGEST_CONVERGENT.key: 0.1}), found()),
    "none_converged": (found(GRID), found(GRID, {names.LARGEST_CONVERGENT.key: 0.1})),
    "none_ranked": (found(), found(STEP)),
    "shown": (found(STEP, STEP_CHOSEN="true"), found(STEP)),
    "best": (found(STEP, VERDICT="cycling"), found(STEP, STEP_CHOSEN="true")),
    "fewest": (found(STEP, COUNTED), found(STEP)),
    "above": (found(FAR, BOUND, PLAIN), found(STEP, BOUND, PLAIN)),
    "above_start": (found(FAR, BOUND, PLAIN, CURVED), found(FAR, BOUND, PLAIN)),
    "above_best": (found(FAR, BOUND, PLAIN, AT_BEST), found(FAR, BOUND, PLAIN, PLAIN="false")),
    "attained": (
        found(MINIMUM, REACHED, case(names.ATTAINED)),
        found(MINIMUM, REACHED, case(names.PARTLY)),
    ),
    "attained_unknown": (
        found(MINIMUM, UNREACHED, case(names.ATTAINED)),
        found(MINIMUM, REACHED, case(names.ATTAINED)),
    ),
    "strictly": (
        found({names.MINIMUM.key: 0.0}, REACHED, case(names.STRICTLY)),
        found(MINIMUM, REACHED, case(names.PARTLY), AT_INFINITY="true"),
    ),
    "partly": (
        found(MINIMUM, REACHED, case(names.PARTLY)),
        found(MINIMUM, REACHED, case(names.STRICTLY)),
    ),
    "partly_unknown": (
        found(MINIMUM, UNREACHED, case(names.PARTLY)),
        found(MINIMUM, REACHED, case(names.PARTLY)),
    ),
    "undecided": (
        found(MINIMUM, REACHED, case(names.UNDECIDED)),
        found(MINIMUM, REACHED, case(names.ATTAINED)),
    ),
    "lowest_of_scheme": (
        found(MINIMUM, case(names.OF_NETWORK)),
        found(MINIMUM, case(names.UNDECIDED)),
    ),
    "trivial": (found(MINIMUM, COUNTED), found({names.MINIMUM.key: -0.1}, COUNTED)),
}
NETWORK = found(MINIMUM, case(names.OF_NETWORK))
LOW, HIGH = found(BOUND, PLAIN), found(BOUND, PLAIN, {names.THRESHOLD.key: 40.0})
SETTLES = found({names.LARGEST_CONVERGENT.key: 0.1})
OF_COMPARISON = {
    "same_threshold": ([("a", LOW), ("b", LOW)], [("a", LOW), ("b", HIGH)]),
    "thresholds": ([("a", LOW), ("b", HIGH)], [("a", LOW), ("b", LOW)]),
    "none_convergent": ([("a", LOW)], [("a", SETTLES)]),
    "largest_convergent": ([("a", SETTLES)], [("a", LOW)]),
    "lowest_of_comparison": (
        [("a", NETWORK), ("b", found({names.MINIMUM.key: 0.1}, case(names.OF_NETWORK)))],
        [("a", NETWORK), ("b", found(MINIMUM, case(names.UNDECIDED)))],
    ),
    "lost_by": ([("a", found(RIDGE, LOST)), ("b", LOW)], [("a", found(RIDGE)), ("b", LOW)]),
}


@pytest.mark.parametrize("name", OF_SCHEME)
def test_a_sentence_of_a_scheme_is_said_only_where_it_is_true(name):
    true, false = ([each.name for each in explain_scheme(one)] for one in OF_SCHEME[name])
    assert name in true
    assert name not in false


@pytest.mark.parametrize("name", OF_COMPARISON)
def test_a_sentence_of_a_comparison_is_said_only_where_it_is_true(name):
    true, false = ([each.name for each in explain_comparison(one)] for one in OF_COMPARISON[name])
    assert name in true
    assert name not in false


def test_every_template_is_tried():
    assert {*OF_SCHEME, *OF_COMPARISON, *CASES} == set(TEMPLATES)


@pytest.mark.parametrize(("threshold", "name"), [(4.07, "same_threshold"), (4.09, "thresholds")])
def test_thresholds_within_two_percent_are_called_the_same(threshold, name):
    near = found(BOUND, PLAIN, {names.THRESHOLD.key: threshold})
    told = [each.name for each in explain_comparison([("a", LOW), ("b", near)])]
    assert {"same_threshold", "thresholds"} & set(told) == {name}


@pytest.mark.parametrize(
    "fault",
    [
        {names.FEATURES_LOST.key: 1.0},
        {names.FEATURES_UNSCALED.key: 1.0},
        {names.RIDGE_TOUCHED.key: 4.0, names.LIVE_DIRECTIONS.key: 4.0},
    ],
)
def test_a_scheme_that_did_not_scale_is_not_praised_for_large_steps(fault):
    idle = found(
        BOUND, PLAIN, {names.THRESHOLD.key: 40.0, names.LARGEST_CONVERGENT.key: 9.0}, fault
    )
    sound = found(BOUND, PLAIN, {names.THRESHOLD.key: 5.0, names.LARGEST_CONVERGENT.key: 0.1})
    said = " ".join(one.text for one in explain_comparison([("a", LOW), ("b", idle), ("c", sound)]))
    assert "under c (below 2/L = 5), 1.25 times those of a" in said
    assert "converged is 0.1 (c)" in said
    partly = found(BOUND, PLAIN, RIDGE, {names.RIDGE_TOUCHED.key: 3.0, names.THRESHOLD.key: 40.0})
    said = " ".join(one.text for one in explain_comparison([("a", LOW), ("b", partly)]))
    assert "larger step sizes under b" in said


def test_the_least_cost_is_told_of_all_schemes_only_where_it_is_one():
    iris = found(MINIMUM, REACHED, case(names.PARTLY))
    other = found(MINIMUM, REACHED, case(names.ATTAINED))
    assert "partly" in [each.name for each in explain_comparison([("a", iris), ("b", iris)])]
    unknown = found(case(names.ATTAINED))  # whose least cost no one knows
    for differs in (other, unknown):
        told = [each.name for each in explain_comparison([("a", iris), ("b", differs)])]
        assert not {"partly", "attained"} & set(told)


def test_the_largest_step_size_is_a_lower_bound_where_it_is_one_of_any_scheme():
    censored = found({names.LARGEST_CONVERGENT.key: 0.1}, CENSORED="true")
    for schemes, is_bound in ((("a", SETTLES), ("b", censored)), True), ((("a", SETTLES),), False):
        (text,) = [s.text for s in explain_comparison(schemes) if s.name == "largest_convergent"]
        assert ("none that was tried was too large" in text) == is_bound


def test_no_sentence_is_written_anywhere_else():
    told = [part for text in TEMPLATES.values() for part in re.split(r"\{.*?\}", text)]
    starts = [part for part in told if len(part) > 30]
    here = Path(sentences.__file__)
    for file in [*here.parent.rglob("*.py"), *here.parents[1].joinpath("harness").rglob("*.py")]:
        if file != here:
            text = file.read_text()
            assert not [start for start in starts if start in text], file
