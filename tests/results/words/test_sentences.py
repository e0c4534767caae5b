"""Each sentence is said where it is true, and not where it is false."""

import re
from pathlib import Path

import pytest

from normbench import names
from normbench.results.words import glossary, sentences
from normbench.results.words.reasons import (
    SchemeRecord,
    explain_briefly,
    explain_comparison,
    explain_scheme,
)
from normbench.results.words.sentences import TEMPLATES, join_phrases
from tests.results.answer import test_answer
from tests.results.report import test_captions

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
    """By its longest words, those on whole comparisons and figures in the tables of their tests."""
    said = "\n".join([*test_answer.all_said(), *test_captions.all_said()])
    of_causes = {"why", "rounder"}  # which have tests of their own
    for name in {*TEMPLATES} - {*OF_SCHEME, *OF_COMPARISON} - of_causes:
        words = max(re.split(r"\{.*?\}", TEMPLATES[name]), key=len).strip(" .,;:()")
        assert words[:30] in said, name


def without(parts, *metrics):
    """Return numbers without some of them."""
    return {key: value for key, value in parts.items() if key not in {m.key for m in metrics}}


EXACT = {names.BASIS.key: "exact: the same everywhere"}
TENTH = {names.target("1e-1").key: 0.1}
SHIFTS, CENTRES = {names.SHIFTS.key: "true"}, {names.CENTRES.key: "true"}
ONE_LOST = {names.LOST_DIRECTIONS.key: 1.0}
# What is recorded of a scheme, what is said of it, and what would be false.
VALUES = [
    (found(NOTE="no curvature"), ["Theory promises no step size here: no curvature."], ["L ="]),
    (
        found(BOUND, PLAIN, CURVED),
        [
            "nowhere larger than L = 0.5, so with any step size below 2/L = 4 the cost falls",
            "At the start the largest curvature is 0.1, 0.2 times that bound, which gives 2/L = 20",
        ],
        ["everywhere"],
    ),
    (found(BOUND, PLAIN, CURVED, EXACT), ["L = 0.5 everywhere"], ["At the start"]),
    (found(without(BOUND, names.LIPSCHITZ), PLAIN, CURVED), ["lower the cost there"], ["bound,"]),
    (
        found(BOUND, PLAIN, without(CURVED, names.LIPSCHITZ_START)),
        ["nowhere larger"],
        ["At the start"],
    ),
    (found({names.CONDITION_LIMIT.key: 1e30}), ["is above 1e+30: rounding hides"], []),
    (
        found(AFFINE, CENTRES, SHIFTS, SCALES, ROTATES, LARGEST, BOUND),
        [
            "This scheme centres the features, scales them and rotates them. Under this scheme L "
            "is 0.7; of raw features it is 30. Centring alone would give 2. Standardizing would "
            "give 1.5.",
        ],
        ["shifts", "cannot have less"],
    ),
    (
        found(AFFINE, ROTATES, LARGEST, {names.SPECTRUM_LARGEST.key: 1.0}),
        [
            "This scheme rotates the features. Under this scheme the Gram matrix's largest "
            "eigenvalue is 1; of raw features it is 60.",
            "A model with a bias cannot have less than 1.",
        ],
        ["Standardizing"],
    ),
    (found(AFFINE, SHIFTS, without(LARGEST, names.LARGEST_RAW)), ["shifts"], ["raw features"]),
    (
        found(RIDGE, {names.RIDGE_TOUCHED.key: 1.0}, ONE_LOST),
        [
            "The constant 1e-07 that protects against division by zero, 1e-08 of the largest "
            "eigenvalue, matters here: 1 of 4 directions is scaled too little by more than 1 "
            "percent, and the smallest has a variance of 0.1 instead of 1",
            "1 of 5 directions was lost in rounding",
        ],
        ["changed none", "dropped"],
    ),
    (found(RIDGE, {names.DEAD_DIRECTIONS.key: 2.0}), ["none of 4", "2 directions were dr"], []),
    (found(RIDGE, {names.RIDGE.key: 0.0, names.RIDGE_TOUCHED.key: 1.0}), [], ["constant"]),
    (
        found(BOUND, PLAIN, {names.LARGEST_FALLING.key: 0.1}, CENSORED_FALLING="true"),
        ["fell in every iteration is 0.1 (the largest tried), 0.025 times 2/L."],
        ["converged is"],
    ),
    (found(BOUND, {names.LARGEST_FALLING.key: 0.1}), ["iteration is 0.1."], ["times 2/L"]),
    (
        found({names.LARGEST_CONVERGENT.key: 0.1}, CENSORED="true"),
        ["converged is 0.1, and no larger one failed."],
        [],
    ),
    (found({names.STEPS_LEVELLED.key: 1.0}), [], ["No step size that was tried converged"]),
    (  # the optimizer finds its own step sizes: the recorded one is a placeholder
        found(STEP, GRID, COUNTED, {names.LARGEST_FALLING.key: 0.1}, GRIDLESS="true"),
        [],
        ["largest step size", "best step size", "No step size"],
    ),
    (found(STEP, COUNTED, STEP_CHOSEN="true"), ["by choice, is 1 (converged)"], ["The best"]),
    (
        found(FAR, BOUND, PLAIN, CURVED, {names.THRESHOLD_BEST.key: 5.0}),
        [
            "That is 2 times 2/L. By the curvature at the start, 2/L is 20, above that step size. "
            "By the curvature where the descent ended, 2/L is 5, below that step size.",
        ],
        [],
    ),
    (found(FAR, BOUND, PLAIN, {names.THRESHOLD.key: 8.0}), [], ["times 2/L"]),
    (found(FAR, BOUND, PLAIN="false"), [], ["times 2/L"]),
    (found(FAR, BOUND, PLAIN, {names.THRESHOLD_BEST.key: 9e6}), ["2 times"], ["ended, 2/L"]),
    (found({names.MINIMUM.key: 0.0}, COUNTED), ["no run went below it"], []),
    (found(MINIMUM, UNREACHED, case(names.UNDECIDED)), ["could not be decided."], ["0.2"]),
    (found(MINIMUM, REACHED, case(names.UNDECIDED)), ["lowest cost known is 0.2."], []),
    (found({names.MINIMUM.key: 1e-13}, REACHED, TENTH, case(names.ATTAINED)), ["cost is 0,"], []),
    (found({names.MINIMUM.key: 1e-5}, REACHED, TENTH, case(names.ATTAINED)), ["is 1e-05,"], []),
    (found({names.MINIMUM.key: 1e-13}, REACHED, TENTH, case(names.PARTLY)), ["towards 1e-13"], []),
    (
        found(MINIMUM, UNREACHED, case(names.PARTLY), MINIMUM_SOURCE="a guess"),
        ["its value is not known (a guess)"],
        ["0.2"],
    ),
    # Splits that differ in the case, or in whether the least cost was solved for.
    (found(MINIMUM, REACHED), [], ["cost"]),
    (found(MINIMUM, case(names.PARTLY)), [], ["cost"]),
]


@pytest.mark.parametrize(("record", "said", "unsaid"), VALUES)
def test_what_is_recorded_is_said_of_a_scheme(record, said, unsaid):
    text = " ".join(sentence.text for sentence in explain_scheme(record))
    assert all(phrase in text for phrase in said), text
    assert not any(phrase in text for phrase in unsaid), text


def convergent(step, **tags):
    return found({names.LARGEST_CONVERGENT.key: step}, **tags)


def plain(threshold, **tags):
    return found({names.THRESHOLD.key: threshold}, PLAIN, **tags)


COMPARED = [
    (
        [plain(4.0), plain(4.07)],
        ["the same step sizes under every scheme, those below 2/L = 4.07"],
        [],
    ),
    (
        [plain(4.0), plain(8.0), plain(8.0 + 1e-9), plain(6.0)],
        ["under b = c (below 2/L = 8), 2 times those of a (below 2/L = 4)."],
        [],
    ),
    ([plain(4.0), plain(8.0, PLAIN="false")], [], ["Theory promises"]),
    ([plain(4.0), found(PLAIN)], [], ["Theory promises"]),
    (
        [convergent(1.0, GRIDLESS="true"), convergent(0.1), convergent(0.1, CENSORED="true")],
        ["that converged is 0.1 (b; c); none that was tried was too large."],
        [],
    ),
    ([convergent(0.1), convergent(0.01, CENSORED="true")], ["is 0.1 (a)."], ["too large"]),
    ([convergent(1.0, GRIDLESS="true"), found()], ["No step size that was tried converged"], []),
    ([found(GRIDLESS="true")], [], ["No step size"]),
    (
        [found({names.LOST_DIRECTIONS.key: lost}) for lost in (2.0, 3.0, 0.0)],
        ["Rounding hid up to 3 directions from a; b, because"],
        [],
    ),
    ([found(ONE_LOST)], ["Rounding hid up to 1 direction from a,", "keeps it."], []),
    ([found(MINIMUM, case(names.STRICTLY)), found()], ["separates the classes perfectly"], []),
    ([found(MINIMUM, case(names.STRICTLY)), found(case(names.PARTLY))], [], ["perfectly"]),
    ([found(MINIMUM, REACHED, case(names.PARTLY)), found(case(names.ATTAINED))], [], ["least"]),
]


@pytest.mark.parametrize(("records", "said", "unsaid"), COMPARED)
def test_what_is_recorded_is_said_of_a_comparison(records, said, unsaid):
    text = " ".join(sentence.text for sentence in explain_comparison([*zip("abcd", records)]))
    assert all(phrase in text for phrase in said), text
    assert not any(phrase in text for phrase in unsaid), text


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


def test_a_scheme_is_explained_briefly_by_its_threshold_its_map_and_its_best_step():
    record = found({names.THRESHOLD.key: 20.0}, CURVED, AFFINE, SCALES, LARGEST, STEP)
    texts = {sentence.name: sentence.text for sentence in explain_scheme(record)}
    brief = " ".join(texts[name] for name in ("start_only", "parts", "best"))
    assert explain_briefly(record) == brief


def test_phrases_with_commas_are_told_apart():
    assert [join_phrases(phrases) for phrases in ("", "a", "abc", ("a, x=1", "b"))] == [
        *("", "a", "a, b and c", "a, x=1; b")
    ]


def test_the_meanings_of_the_glossary_stand_in_one_column():
    column = 2 + max(map(len, glossary.GLOSSARY))
    lines = glossary.text(60).splitlines()
    assert max(map(len, lines)) <= 60
    assert {line[:column].strip() for line in lines} == {*glossary.GLOSSARY, ""}


def test_no_sentence_is_written_anywhere_else():
    told = [part for text in TEMPLATES.values() for part in re.split(r"\{.*?\}", text)]
    starts = [part for part in told if len(part) > 30]
    here = Path(sentences.__file__)
    for file in [*here.parent.rglob("*.py"), *here.parents[1].joinpath("harness").rglob("*.py")]:
        if file != here:
            text = file.read_text()
            assert not [start for start in starts if start in text], file
