"""A table is read by what its refusals suggest, and by nothing else: it must be the right table."""

import re
import shlex

import numpy as np
import pandas as pd
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from normbench.datasets import UserError
from normbench.datasets.files import DELIMITERS, csv

SEEDS = range(10)
MARKS = ("?", "-", "NA", ".")
NAMES = [
    "age",
    "2nd income",
    "far",
    "it's city",
    "true",
    "sex",
    'the "day"',
    "when",
    "note",
    "sure",
]
ROUNDS = 6  # readings of a file; measured: at most 3


def table(seed):
    """Return a made table of text (P, N), its mark of gaps, and the right points and labels."""
    rng = np.random.default_rng(seed)
    points = int(rng.integers(40, 80))
    mark = MARKS[seed % len(MARKS)]
    numbers = {name: rng.integers(18, 90, points).astype(float) for name in NAMES[:3]}
    numbers["2nd income"] = rng.standard_normal(points).round(3)
    for name, share in (("2nd income", 0.1), ("far", 0.7)):
        numbers[name][rng.random(points) < share] = np.nan
    words = {
        "it's city": rng.choice(["New York", "Rome", "Oslo", "Bern"], points),
        "true": rng.choice(["u", "v", mark], points),
        "sex": rng.choice(["f", "m"], points),
    }
    days = rng.integers(1, 29, points)
    texts = {
        'the "day"': [f"2020-01-{day:02}" for day in days],
        "when": [f"{day}/2/2021" for day in days],
        "note": [f"text {n} of {rng.integers(9)}" for n in range(points)],
    }
    labels = rng.permutation(np.arange(points) % 2)
    order = rng.permutation(NAMES[:-1])
    written, right = {}, []
    for name in order:
        if name in numbers:
            values = numbers[name]
            written[name] = [mark if np.isnan(v) else f"{v:g}" for v in values]
            right.append(np.where(np.isnan(values), np.nanmedian(values), values))
        elif name in words:
            written[name] = list(words[name])
            kinds = sorted({"(missing)" if word == mark else word for word in words[name]})
            for kind in kinds[1:] if len(kinds) == 2 else kinds:
                right.append(words[name] == (mark if kind == "(missing)" else kind))
        else:
            written[name] = [mark if n % 7 == 3 else text for n, text in enumerate(texts[name])]
    written["sure"] = np.array(["<=50K", ">50K"])[labels].tolist()
    if seed >= len(MARKS):  # blanks around each mark, too
        written = {k: [f" {e} " if e == mark else e for e in es] for k, es in written.items()}
    return pd.DataFrame(written), np.column_stack(right).astype(float), labels


def write(frame, path, seed, header):
    """Write a table, by a delimiter that the seed chooses, and return that delimiter's name."""
    name = sorted(set(DELIMITERS) - {"space"})[seed % 4]
    frame.to_csv(path, index=False, header=header, sep=DELIMITERS[name])
    return name


def suggested(refusal):
    """Return the words that a refusal says are to be added, as a shell reads them."""
    found = re.search(r"(?:or add|; add|; write) (.*?)(?: \(|, or |, and | if |$)", refusal)
    assert found, refusal
    return [word for word in shlex.split(found[1]) if word.startswith("dataset.")]


def read(path, **settings):
    """Read a table, pasting what each refusal suggests; return it and all suggestions."""
    pasted = []
    for _ in range(ROUNDS):
        try:
            return csv(str(path), **settings), pasted
        except UserError as error:
            pasted.append(suggested(str(error)))
        for override in OverridesParser.create().parse_overrides(pasted[-1]):
            settings[override.key_or_group.removeprefix("dataset.")] = override.value()
    raise AssertionError(f"refused for ever: {pasted}")


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("named", [True, False], ids=["the target named", "no target named"])
@pytest.mark.parametrize("header", [True, False], ids=["header", "no header"])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_suggested_leads_to_the_right_table(tmp_path, seed, header, named):
    frame, points, labels = table(seed)
    delimiter = write(frame, tmp_path / "my.csv", seed, header)
    target = {"target": "sure" if header else -1} if named else {}
    data, pasted = read(tmp_path / "my.csv", delimiter=delimiter, **target)
    assert data.x.tolist() == points.tolist()
    assert data.y.tolist() == labels.tolist()
    assert (pasted[0] == ["dataset.header=false"]) == (not header)
    assert not any("header" in word for words in pasted[not header :] for word in words)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_header_that_is_denied_is_told_before_any_option(tmp_path, seed):
    frame, points, labels = table(seed)
    delimiter = write(frame, tmp_path / "my.csv", seed, True)
    data, pasted = read(tmp_path / "my.csv", delimiter=delimiter, header=False, target=-1)
    assert pasted[0] == ["dataset.header=true"]
    assert data.x.tolist() == points.tolist()
    assert data.y.tolist() == labels.tolist()


NUMBERS = "0.5,3,7\n0.1,4,8\n0.7,1,9\n"
LETTERS = "".join(f"{a},{b},{c}\n" for a in "xyx" for b in "uvu" for c in "rrs")
DATED = "2020-01-01,1.5\n2020-01-02,2.5\n2020-01-03,1.0\n"


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("quote", ["", '"'], ids=["bare", "quoted"])
@pytest.mark.parametrize("points_in", ["rows", "columns"])
@pytest.mark.parametrize(
    ("first", "rows", "is_point"),
    [
        ("a,b,c", NUMBERS, False),
        ("2001,2002,2003", NUMBERS, False),
        ("a,2001,2002", NUMBERS, False),
        ("0,1,2", NUMBERS, False),
        ("a_1,1_2,1_3", NUMBERS, False),
        ("Na,Mg,Al", NUMBERS, False),
        ("mean,sd,3", NUMBERS, False),
        ("0.3,2,5", NUMBERS, True),
        ("?,-,5", NUMBERS, True),
        ("2001,2002,2003", "2004,2005,2006\n2007,2008,2009\n", True),  # values that are years
        ("kind,hue,rank", LETTERS, False),
        ("x,hue,rank", LETTERS, False),  # one name is a value too
        ("x,u,r", LETTERS, True),
        ("y,v,t", LETTERS, True),  # a category that no other point has
        ("day,value", DATED, False),
        ("2019-12-31,7", DATED, True),
    ],
)
def test_a_first_row_is_told_by_the_rows_below(tmp_path, first, rows, is_point, points_in, quote):
    path = tmp_path / "my.csv"
    lines = [line.split(",") for line in (first + "\n" + rows).splitlines()]
    if points_in == "columns":
        lines = list(zip(*lines))
    path.write_text("\n".join(",".join(quote + e + quote for e in line) for line in lines))

    def refusal(**settings):
        try:
            csv(str(path), points_in=points_in, **settings)
        except UserError as error:
            return str(error)
        return ""

    assert ("write dataset.header=false" in refusal()) == is_point
    denied = refusal(header=False)
    assert not (is_point and "dataset.header" in denied)
    if not any(entry.isdigit() for entry in first.split(",")):
        assert ("write dataset.header=true" in denied) == (not is_point)
    assert "dataset.header" not in refusal(header=True)  # who is sure says so


def test_a_first_row_that_may_be_either_is_left_to_the_user(tmp_path):
    path = tmp_path / "my.csv"
    path.write_text("age,20,label\n3,4,a\n5,6,b\n7,8,a\n")
    with pytest.raises(UserError, match=r"in 1 of 3 .* in 1, which leaves it open; write dataset"):
        csv(str(path), -1)
    data, pasted = read(path, target=-1)
    assert pasted == [["dataset.header=true"]]
    assert data.x.tolist() == [[3, 4], [5, 6], [7, 8]]


def test_a_single_point_below_the_names_is_no_alarm(tmp_path):
    path = tmp_path / "my.csv"
    path.write_text("a,b,label\n1,x,yes\n")
    with pytest.raises(UserError, match="1 kinds, 'x'"):
        csv(str(path), "label")


def test_names_that_stand_again_below_are_told(tmp_path):
    path = tmp_path / "my.csv"
    joined = "a,city,label\n" + "1,Rome,no\n2,Oslo,yes\n" * 4
    path.write_text(joined * 2)
    for header in (None, True):
        with pytest.raises(UserError, match=r"stand again in point 8 .*1 times in all"):
            csv(str(path), "label", header=header)
    with pytest.raises(UserError, match=r"write dataset\.header=true"):
        csv(str(path), -1, header=False)


@pytest.mark.parametrize("mark", MARKS)
def test_a_gap_among_the_labels_is_told(tmp_path, mark):
    path = tmp_path / "my.csv"
    path.write_text("a,label\n" + "1,yes\n2,no\n" * 4 + f"3, {mark} \n")
    data, pasted = read(path, target="label")
    assert sorted(pasted[0]) == ["dataset.fill=drop", f"dataset.missing=[{quoted(mark)}]"]
    assert data.class_names == ("no", "yes")
    assert len(data.x) == 8
    assert mark in csv(str(path), "label", task="classes").class_names[0].strip()


def quoted(mark):
    return mark if mark.isalpha() else f'"{mark}"'


def test_a_minus_beside_a_plus_is_a_class(tmp_path):
    path = tmp_path / "my.csv"
    path.write_text("a,sign,label\n" + "1,+,-\n2,-,+\n" * 4)
    data, pasted = read(path, target="label")
    assert pasted == [["dataset.encode=[sign]"]]
    assert data.class_names == ("+", "-")


def test_a_word_among_real_targets_is_told(tmp_path):
    path = tmp_path / "my.csv"
    path.write_text("a,price\n" + "".join(f"{n % 7},{n}.5\n" for n in range(30)) + "3,sold\n")
    data, pasted = read(path, target="price")
    assert pasted == [["dataset.missing=[sold]", "dataset.fill=drop"]]
    assert data.y.tolist() == [n + 0.5 for n in range(30)]


def test_a_suggestion_repeats_what_was_given(tmp_path):
    path = tmp_path / "my.csv"
    rows = "".join(f"{n},{'uv'[n % 2]},{'st'[n // 2 % 2]},{n % 5 or '?'},no\n" for n in range(12))
    path.write_text("id,a,b,c,label\n" + rows.replace("no\n", "yes\n", 5))
    data, pasted = read(path, target="label", encode=["a"], drop=["id"], missing=["-"])
    assert pasted == [
        ["dataset.encode=[a,b]", 'dataset.missing=["-","?"]', "dataset.fill=median"],
    ]
    assert data.feature_names == ("a=v", "b=t", "c")
