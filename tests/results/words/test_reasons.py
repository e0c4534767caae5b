"""The numbers and the words in the sentences on schemes: which values stand in which sentence."""

import pytest

from normbench import names
from normbench.results.words import glossary
from normbench.results.words.reasons import (
    SchemeRecord,
    explain_briefly,
    explain_comparison,
    explain_scheme,
)
from normbench.results.words.sentences import join_phrases
from tests.results.words.test_sentences import (
    AFFINE,
    AT_BEST,
    BOUND,
    COUNTED,
    CURVED,
    FAR,
    GRID,
    LARGEST,
    LOST,
    MINIMUM,
    PLAIN,
    REACHED,
    RIDGE,
    ROTATES,
    SCALES,
    STEP,
    UNREACHED,
    case,
    found,
)

CENTRES, SHIFTS = {names.CENTRES.key: "true"}, {names.SHIFTS.key: "true"}
TENTH = {names.target("1e-1").key: 0.1}
EXACT = {names.BASIS.key: "exact: the same everywhere"}
FALLING = {names.LARGEST_FALLING.key: 0.1}
CURVATURES = (
    names.SPECTRUM_LARGEST,
    names.LARGEST_RAW,
    names.LARGEST_CENTRED,
    names.LARGEST_STANDARD,
)
SETTLES = {names.LARGEST_CONVERGENT.key: 0.1}


def without(parts, metric):
    """Return numbers without one of them."""
    return {key: value for key, value in parts.items() if key != metric.key}


def actions(*parts):
    return "parts", found(AFFINE, *parts)


def minimum(value, *parts):
    return found({names.MINIMUM.key: value}, REACHED, TENTH, case(names.ATTAINED), *parts)


# The name of a sentence, the record of a scheme, and the values in it; None: it is not said.
VALUES = [
    ("no_threshold", found(), {"why": "there is none"}),
    ("no_threshold", found(NOTE="no curvature"), {"why": "no curvature"}),
    ("start_only", found({names.THRESHOLD.key: 20.0}, CURVED), {"start": 0.1, "threshold": 20.0}),
    ("exact", found(BOUND, PLAIN, EXACT), {"lipschitz": 0.5, "threshold": 4.0}),
    (
        "at_start",
        found(BOUND, PLAIN, CURVED),
        {"start": 0.1, "share": pytest.approx(0.2), "threshold": 20.0},
    ),
    ("at_start", found(BOUND, PLAIN, CURVED, EXACT), None),
    ("at_start", found(without(BOUND, names.LIPSCHITZ), PLAIN, CURVED), None),
    ("at_start", found(BOUND, PLAIN, without(CURVED, names.LIPSCHITZ_START)), None),
    ("at_start", found(BOUND, PLAIN, without(CURVED, names.THRESHOLD_START)), None),
    ("beyond", found({names.CONDITION_LIMIT.key: 1e30}), {"limit": 1e30}),
    (*actions(SHIFTS), {"parts": "shifts the features"}),
    (*actions(SHIFTS, CENTRES), {"parts": "centres the features"}),
    (*actions(ROTATES), {"parts": "rotates the features"}),
    (*actions(SCALES, ROTATES), {"parts": "scales the features and rotates them"}),
    (
        *actions(CENTRES, SCALES, ROTATES),
        {"parts": "centres the features, scales them and rotates them"},
    ),
    (
        "here",
        found(AFFINE, SCALES, LARGEST, BOUND),
        {"what": "L", "here": 0.7, "raw": 30.0},
    ),
    (
        "here",
        found(AFFINE, SCALES, LARGEST),
        {"what": "the Gram matrix's largest eigenvalue", "here": 0.7, "raw": 60.0},
    ),
    *(("here", found(AFFINE, SCALES, without(LARGEST, metric)), None) for metric in CURVATURES),
    ("here", found(AFFINE, SCALES, LARGEST, {names.SPECTRUM_LARGEST.key: 0.0}), None),
    ("centring", found(AFFINE, SCALES, LARGEST, BOUND), {"centred": 2.0}),
    ("centring", found(AFFINE, ROTATES, LARGEST), {"centred": 4.0}),
    ("scaling", found(AFFINE, SCALES, ROTATES, LARGEST, BOUND), {"standard": 1.5}),
    ("scaling", found(AFFINE, ROTATES, LARGEST), None),
    (
        "least_possible",
        found(AFFINE, SCALES, LARGEST, BOUND, {names.SPECTRUM_LARGEST.key: 0.5}),
        {"here": 0.5},
    ),
    (
        "ridge_idle",
        found(RIDGE),
        {"ridge": 1e-7, "share": 1e-8, "live": 4.0, "directions": "directions"},
    ),
    (
        "ridge_holds",
        found(RIDGE, {names.RIDGE_TOUCHED.key: 1.0}),
        {
            **{"ridge": 1e-7, "share": 1e-8, "live": 4.0, "touched": 1.0, "least": 0.1},
            **{"directions": "directions", "are": "is"},
        },
    ),
    *(
        (name, found(RIDGE, {names.RIDGE.key: 0.0, names.RIDGE_TOUCHED.key: touched}), None)
        for name, touched in (("ridge_idle", 0.0), ("ridge_holds", 1.0))
    ),
    *(
        ("ridge_idle", found(without(RIDGE, metric)), None)
        for metric in (names.RIDGE, names.RIDGE_SHARE, names.LIVE_DIRECTIONS)
    ),
    ("lost", found(RIDGE, LOST), {"lost": 2.0, "all": 6.0, "were": "were", "them": "them"}),
    (
        "dropped",
        found(RIDGE, {names.DEAD_DIRECTIONS.key: 2.0}),
        {"dead": 2.0, **{word: word for word in ("directions", "were", "they", "hold")}},
    ),
    (
        "falling",
        found(FALLING, BOUND, PLAIN, CENSORED_FALLING="true"),
        {"falling": 0.1, "end": " (the largest tried)", "ratio": ", 0.025 times 2/L"},
    ),
    ("falling", found(FALLING, BOUND), {"falling": 0.1, "end": "", "ratio": ""}),
    ("falling", found(FALLING, PLAIN), {"falling": 0.1, "end": "", "ratio": ""}),
    ("convergent", found(SETTLES), {"convergent": 0.1, "end": ""}),
    (
        "convergent",
        found(SETTLES, CENSORED="true"),
        {"convergent": 0.1, "end": ", and no larger one failed"},
    ),
    ("none_converged", found(FALLING, GRID), {}),
    ("none_converged", found({names.STEPS_LEVELLED.key: 1.0}), None),
    ("none_converged", found(), None),
    # Of an optimizer that finds its own step sizes, the recorded one is a placeholder.
    *(
        (name, found(FALLING, values, STEP, GRIDLESS="true"), None)
        for name, values in (
            *(("falling", SETTLES), ("convergent", SETTLES), ("none_converged", GRID)),
            *(("best", SETTLES), ("fewest", COUNTED), ("none_ranked", {})),
        )
    ),
    ("best", found(STEP), {"step": 1.0, "verdict": "converged"}),
    ("fewest", found(STEP, COUNTED), {"step": 1.0, "verdict": "converged"}),
    ("shown", found(STEP, COUNTED, STEP_CHOSEN="true"), {"step": 1.0, "verdict": "converged"}),
    ("above", found(FAR, BOUND, PLAIN), {"ratio": 2.0}),
    ("above", found(FAR, BOUND, PLAIN="false"), None),
    ("above", found(FAR, PLAIN), None),
    ("above", found(BOUND, PLAIN), None),
    ("above", found(FAR, PLAIN, {names.THRESHOLD.key: 8.0}), None),
    ("above_start", found(FAR, BOUND, PLAIN, CURVED), {"threshold": 20.0, "side": "above"}),
    ("above_start", found(FAR, BOUND, PLAIN, CURVED, EXACT), None),
    (
        "above_best",
        found(FAR, BOUND, PLAIN, {names.THRESHOLD_BEST.key: 8.0}),
        {"threshold": 8.0, "side": "below"},
    ),
    ("above_best", found(FAR, BOUND, PLAIN, AT_BEST), {"threshold": 20.0, "side": "above"}),
    (
        "above_best",
        found(FAR, BOUND, PLAIN, {names.THRESHOLD_BEST.key: 7e6}),
        {"threshold": 7e6, "side": "above"},
    ),
    ("above_best", found(FAR, BOUND, PLAIN, {names.THRESHOLD_BEST.key: 9e6}), None),
    ("trivial", found({names.MINIMUM.key: 0.0}, COUNTED), {}),
    ("strictly", found(MINIMUM, case(names.STRICTLY)), {}),
    ("undecided", found(MINIMUM, UNREACHED, case(names.UNDECIDED)), {"value": ""}),
    (
        "undecided",
        found(MINIMUM, REACHED, case(names.UNDECIDED)),
        {"value": "; the lowest cost known is 0.2"},
    ),
    ("attained", minimum(0.2), {"minimum": 0.2}),
    ("attained", minimum(1e-13), {"minimum": 0.0}),
    ("attained", minimum(0.0), {"minimum": 0.0}),
    ("attained", minimum(1e-5), {"minimum": 1e-5}),
    ("attained", minimum(-1e-13), {"minimum": -1e-13}),
    ("partly", minimum(1e-13, case(names.PARTLY)), {"minimum": 1e-13}),
    ("attained_unknown", found(MINIMUM, UNREACHED, case(names.ATTAINED)), {"source": ""}),
    (
        "partly_unknown",
        found(MINIMUM, UNREACHED, case(names.PARTLY), MINIMUM_SOURCE="a guess"),
        {"source": "a guess"},
    ),
    # Splits that differ in the case, or in whether the least cost was solved for.
    *((f"partly{unknown}", found(MINIMUM, REACHED), None) for unknown in ("", "_unknown")),
    *(
        (f"partly{unknown}", found(MINIMUM, case(names.PARTLY)), None)
        for unknown in ("", "_unknown")
    ),
]


@pytest.mark.parametrize(("name", "record", "values"), VALUES)
def test_a_sentence_has_the_values_of_its_record(name, record, values):
    said = {sentence.name: sentence.values for sentence in explain_scheme(record)}
    assert said.get(name) == values


def test_a_scheme_is_explained_briefly_by_its_threshold_its_map_and_its_best_step():
    record = found({names.THRESHOLD.key: 20.0}, CURVED, AFFINE, SCALES, LARGEST, STEP)
    sentences = {sentence.name: sentence.text for sentence in explain_scheme(record)}
    assert explain_briefly(record) == " ".join(
        sentences[name] for name in ("start_only", "parts", "best")
    )


def test_a_row_has_numbers_and_texts_and_what_is_not_finite_is_not_recorded():
    row = {names.THRESHOLD.column: 4.0, names.LIPSCHITZ.column: float("nan"), "label": "a"}
    row |= {names.PLAIN.column: "true", names.NOTE.column: None, names.MINIMUM.column: "0.1"}
    record = SchemeRecord.from_row(row)
    assert record.metrics.keys() == {names.THRESHOLD.key, names.LIPSCHITZ.key}
    assert dict(record.tags) == {names.PLAIN.key: "true"}
    assert record.number(names.LIPSCHITZ) is None


def plain(threshold, **tags):
    return found({names.THRESHOLD.key: threshold}, PLAIN, **tags)


# The name of a sentence, the records of schemes, and the values in it; None: it is not said.
COMPARED = [
    ("same_threshold", [("a", plain(4.0)), ("b", plain(4.04))], {"threshold": 4.04}),
    (
        "thresholds",
        [("a", plain(4.0)), ("b", plain(8.0)), ("c", plain(8.0 + 1e-9)), ("d", plain(6.0))],
        {
            **{"high": "b = c", "most": 8.0 + 1e-9, "ratio": pytest.approx(2.0)},
            **{"low": "a", "least": 4.0},
        },
    ),
    ("thresholds", [("a", plain(4.0)), ("b", plain(8.0, PLAIN="false"))], None),
    ("same_threshold", [("a", plain(4.0)), ("b", found(PLAIN))], None),
    (
        "largest_convergent",
        [("a", found(SETTLES)), ("b", found({names.LARGEST_CONVERGENT.key: 0.01}))],
        {"step": 0.1, "labels": "a", "end": ""},
    ),
    ("none_convergent", [("a", found(GRIDLESS="true")), ("b", found())], {}),
    ("none_convergent", [("a", found(SETTLES, GRIDLESS="true")), ("b", found())], {}),
    ("largest_convergent", [("a", found(SETTLES, GRIDLESS="true"))], None),
    (
        "largest_convergent",
        [
            ("a", found({names.LARGEST_CONVERGENT.key: 1.0}, GRIDLESS="true")),
            ("b", found(SETTLES)),
        ],
        {"step": 0.1, "labels": "b", "end": ""},
    ),
    ("none_convergent", [("a", found(GRIDLESS="true")), ("b", found(GRIDLESS="true"))], None),
    (
        "lost_by",
        [
            (label, found({names.LOST_DIRECTIONS.key: lost}))
            for label, lost in zip("abc", (2.0, 3.0, 0.0))
        ],
        {"labels": "a; b", "lost": 3.0, "directions": "directions", "them": "them"},
    ),
    ("strictly", [("a", found(MINIMUM, case(names.STRICTLY))), ("b", found())], {}),
    (
        "strictly",
        [("a", found(MINIMUM, case(names.STRICTLY))), ("b", found(case(names.PARTLY)))],
        None,
    ),
]


@pytest.mark.parametrize(
    ("name", "metrics", "words"),
    [
        ("ridge_idle", {names.LIVE_DIRECTIONS: 1.0}, "changed none of 1 direction."),
        ("ridge_holds", {names.RIDGE_TOUCHED: 1.0}, "1 of 4 directions is scaled too little"),
        ("ridge_holds", {names.RIDGE_TOUCHED: 2.0}, "2 of 4 directions are scaled too little"),
        ("lost", {names.LOST_DIRECTIONS: 1.0}, "1 of 5 directions was lost in rounding"),
        (
            "dropped",
            {names.DEAD_DIRECTIONS: 1.0},
            "1 direction was dropped, because it holds rounding errors alone.",
        ),
    ],
)
def test_one_direction_stands_in_the_singular(name, metrics, words):
    record = found(RIDGE, {metric.key: value for metric, value in metrics.items()})
    (text,) = (sentence.text for sentence in explain_scheme(record) if sentence.name == name)
    assert words in text


@pytest.mark.parametrize(("lost", "words"), [(1.0, "1 direction from a"), (2.0, "2 directions")])
def test_one_direction_that_rounding_hid_stands_in_the_singular(lost, words):
    record = found({names.LOST_DIRECTIONS.key: lost})
    text = " ".join(sentence.text for sentence in explain_comparison([("a", record)]))
    assert f"Rounding hid up to {words}" in text
    assert text.endswith("keeps it." if lost == 1 else "keeps them.")


@pytest.mark.parametrize(("name", "schemes", "values"), COMPARED)
def test_a_sentence_on_several_schemes_has_the_values_of_their_records(name, schemes, values):
    said = {sentence.name: sentence.values for sentence in explain_comparison(schemes)}
    assert said.get(name) == values


def test_a_step_size_that_converged_on_some_splits_only_is_told():
    (sentence,) = explain_comparison([("a", found())], on_some_split=True)
    assert sentence.name == "none_on_every_split"


@pytest.mark.parametrize(
    ("phrases", "text"),
    [
        ("", ""),
        ("a", "a"),
        ("ab", "a and b"),
        ("abcd", "a, b, c and d"),
        (("a, x=1", "b"), "a, x=1; b"),
    ],
)
def test_phrases_are_joined_with_commas_and_one_and(phrases, text):
    assert join_phrases(list(phrases)) == text


def test_the_meanings_of_the_glossary_stand_in_one_column():
    column = 2 + max(map(len, glossary.GLOSSARY))
    lines = glossary.text(60).splitlines()
    assert max(map(len, lines)) <= 60
    assert len(lines) > len(glossary.GLOSSARY)
    assert all(line[column - 1] == " " and line[column] != " " for line in lines)
    assert {line[:column].strip() for line in lines} == {*glossary.GLOSSARY, ""}
