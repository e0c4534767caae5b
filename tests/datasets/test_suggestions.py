"""A table is read by what its refusals suggest, and by nothing else: it must be the right table."""

import re
import shlex

import numpy as np
import pandas as pd
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

import normbench.datasets
from normbench import compare
from normbench.datasets import UserError
from normbench.datasets.files import DELIMITERS, csv

SEEDS = range(6)
MARKS = ("?", "-", "NA", ".")
NAMES = [
    "age",
    "2nd income",
    "far",
    "it's city",
    "true",
    "sex",
    'the "note"',
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
    texts = {'the "note"': [f"text {n} of {rng.integers(9)}" for n in range(points)]}
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


def write(frame, path, seed):
    """Write a table, by a delimiter that the seed chooses, and return that delimiter's name."""
    name = sorted(set(DELIMITERS) - {"space"})[seed % 4]
    frame.to_csv(path, index=False, sep=DELIMITERS[name])
    return name


def suggested(refusal):
    """Return the words that a refusal says are to be added, as a shell reads them."""
    found = re.search(r", or add (.*)$", refusal)
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
@pytest.mark.parametrize("told", [True, False], ids=["all told", "nothing told"])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_suggested_leads_to_the_right_table(tmp_path, seed, told):
    frame, points, labels = table(seed)
    delimiter = write(frame, tmp_path / "my.csv", seed)
    settings = {"delimiter": delimiter, "target": "sure"} if told else {}
    data, pasted = read(tmp_path / "my.csv", **settings)
    assert data.x.tolist() == points.tolist()
    assert data.y.tolist() == labels.tolist()
    assert len(pasted) == 1


CLIENTS = "".join(f"{n % 7},{n % 5},{n % 2}\n" for n in range(30))
PRICES = "".join(f"{n};{n % 9},25;{n},5;Zürich;\n" for n in range(30)) + ";;;;\n"
MISWRITTEN = {
    "semicolons and decimal commas": (
        "room;size;price;city;\n" + PRICES,
        ["delimiter=semicolon", "decimal=comma", "encode=[city]"],
    ),
    "a comment": ("# made by a device\na,b,price\n" + CLIENTS, ["read={skiprows: 1}"]),
    "lines above": ("made by a device\n\na,b,price\n" + CLIENTS, ["read={skiprows: 2}"]),
    "tabs": ("a,b,price\n".replace(",", "\t") + CLIENTS.replace(",", "\t"), ["delimiter=tab"]),
    "no header": (CLIENTS.replace("0,0,0", "5.5,4,1"), ["header=false"]),
    "signs": (
        "price,b\n" + "".join(f'"${n + 1},250",{n % 20 + 1.5} kg\n' for n in range(30)),
        ["thousands=comma"],
    ),
    "multiples": (
        "price,b\n" + "".join(f"{n},{n + 1}.5{'kM'[n % 2]}\n" for n in range(30)),
        ["decimal=point"],
    ),
}


@pytest.mark.parametrize("case", MISWRITTEN)
def test_a_file_that_is_written_otherwise_is_read_by_one_line(tmp_path, case):
    content, expected = MISWRITTEN[case]
    encoding = "latin-1" if "ü" in content else "utf-8"
    path = tmp_path / "my.csv"
    path.write_bytes(content.encode(encoding))
    target = -1 if case == "no header" else "price"
    data, (pasted,) = read(path, target=target, task="regression")
    if encoding == "latin-1":
        expected = [*expected, 'read={encoding: "latin-1"}']
    assert sorted(word.removeprefix("dataset.") for word in pasted) == sorted(expected)
    assert len(data.x) == 30
    if case == "semicolons and decimal commas":
        assert data.y.tolist() == [n + 0.5 for n in range(30)]
        assert data.x[:, 1].tolist() == [n % 9 + 0.25 for n in range(30)]
    elif case == "signs":
        assert data.y[:2].tolist() == [1250, 2250]
        assert data.x[:2, 0].tolist() == [1.5, 2.5]
    elif case == "multiples":
        assert data.x[:2, 0].tolist() == [1500, 2.5e6]


def test_thousands_are_read_where_no_other_number_has_a_point(tmp_path):
    path = tmp_path / "my.csv"
    rows = [f"{1 + n % 3}.{n:03};{n + 900};0.{n:03};{n}.5;{n % 2}" for n in range(30)]
    path.write_text("area;beds;share;other;y\n" + "\n".join(rows) + "\n")
    data = csv(str(path), "y", delimiter="semicolon", thousands="point")
    expected = [[1000 * (1 + n % 3) + n, n + 900, n / 1000, n + 0.5] for n in range(30)]
    assert data.x.tolist() == expected


@pytest.mark.parametrize(
    "texts",
    [
        ["4wd", "2wd"] * 15,
        ["1st", "2nd", "3rd"] * 10,
        ["5k", "10k", "21k"] * 10,
        ["18-25", "26-40", "41+"] * 10,
        ["$5M", "€3k"] * 15,
        ["10:30", "11:45"] * 15,
    ],
)
def test_words_with_digits_stay_classes_and_categories(tmp_path, texts):
    path = tmp_path / "my.csv"
    pd.DataFrame({"a": texts, "label": texts}).to_csv(path, index=False)
    data, pasted = read(path, target="label")
    assert pasted == [["dataset.encode=[a]"]]
    assert sorted(data.class_names) == sorted(set(texts))


def test_a_frame_with_other_numbers_is_answered_with_a_line_that_runs():
    table = pd.DataFrame({"a": ["15M", "1.2M", "201k", "0", "varies"] * 6})
    labels = ["no", "yes"] * 15
    with pytest.raises(UserError, match=r"'a' is of numbers written as '15M', read") as told:
        compare(table, labels, iterations=2)
    line = re.search(r" by (normbench.*?)\. Correct the frame", str(told.value))[1]
    numbers = eval(line, {"normbench": normbench, "column": table["a"]})
    assert numbers.tolist()[:4] == [15e6, 1.2e6, 201e3, 0]
    assert np.isnan(numbers.iloc[4])
    with pytest.raises(UserError, match=r"column 'y' is of numbers written as '1,5'.*'decimal':"):
        compare(pd.DataFrame({"a": np.arange(30.0)}), ["1,5", "2,25", "3,5"] * 10)


@pytest.mark.parametrize("count", [15, 21])
def test_a_target_of_more_kinds_than_classes_have_is_refused(tmp_path, count):
    path = tmp_path / "my.csv"
    pd.DataFrame({"a": range(30), "label": [f"p{n % count}" for n in range(30)]}).to_csv(path)
    if count == 15:
        assert csv(str(path), "label").classes == 15
        return
    with pytest.raises(UserError, match=r"has 21 different texts in 30 .* dataset\.task=classes"):
        csv(str(path), "label")
    assert csv(str(path), "label", task="classes").classes == 21


NOTED = {
    "a sentinel": ("a,b,y\n", "{s},{n},1\n", "'dataset.missing=[-999]' dataset.fill=median"),
    "an identifier": ("a,user_id,y\n", "{n}.5,{i},1\n", "'dataset.drop=[user_id]'"),
    "two columns of a name": ("a,a,y\n", "{n}.5,{n},1\n", "'dataset.drop=[\"a.1\"]'"),
    "thousands": ("a,b,y\n", "{t},{n},1\n", "dataset.thousands=point"),
}


@pytest.mark.parametrize("case", NOTED)
def test_a_column_that_may_mean_another_thing_is_noted_with_its_setting(tmp_path, case):
    header, row, remedy = NOTED[case]
    rows = "".join(
        row.format(
            n=n * 7 % 30,
            s=-999 if n % 9 == 0 else n / 4,
            i=100_000 + 7 * n,
            t=f"{n + 1}.35{n % 9 + 1}" if n % 5 else 900 + n,
        )
        for n in range(30)
    )
    path = tmp_path / "my.csv"
    path.write_text(header + rows)
    (note,) = csv(str(path), "y", task="regression").notes
    assert note.startswith("data of my: column")
    assert note.endswith(remedy)


RNG = np.random.default_rng(64)


@pytest.mark.parametrize(
    "column",
    [
        np.arange(30) - 9.0,
        np.round(RNG.normal(size=30), 3),
        np.round(RNG.uniform(0, 200, 30), 3),
        np.where(np.arange(30) % 4, np.round(RNG.uniform(1, 9, 30), 2), 900),
        RNG.integers(0, 200, 30),
        RNG.permutation(30) + 1990,
        np.append(RNG.integers(-150, 100, 28), [-200, -200]),
    ],
)
def test_ordinary_columns_have_no_note(tmp_path, column):
    path = tmp_path / "my.csv"
    table = pd.DataFrame({"first": RNG.normal(size=30), "a": column, "y": ["no", "yes"] * 15})
    table.to_csv(path, index=False)
    assert csv(str(path), "y").notes == ()


def test_options_of_pandas_are_passed_on(tmp_path):
    path = tmp_path / "my.csv"
    rows = "".join(f"{n},Zürich,{n % 2}\n" for n in range(9))
    path.write_bytes(("// made by a device\nn,größe,y\n" + rows).encode("latin-1"))
    read = {"encoding": "latin-1", "skiprows": 1, "index_col": 0}
    assert csv(str(path), "y", encode=["größe"], read=read).x.shape[0] == 9
    with pytest.raises(UserError, match=r"unexpected keyword argument 'skiprow'.*dataset\.read="):
        csv(str(path), "y", read={"skiprow": 1})
    with pytest.raises(UserError, match=r"check it, and what dataset\.read="):
        csv(str(path), "y", read="latin-1")


def test_a_column_of_another_name_is_answered_with_what_to_type(tmp_path):
    path = tmp_path / "my.csv"
    path.write_text("a,b,label\n" + CLIENTS)
    with pytest.raises(UserError, match=r"write 'dataset.encode=\[a\]'$"):
        csv(str(path), "label", encode="a")
    with pytest.raises(UserError, match=r"dataset.thousands=comma: must be one of point, blank"):
        csv(str(path), "label", decimal="comma", thousands="comma")


def test_a_word_among_real_targets_is_told(tmp_path):
    path = tmp_path / "my.csv"
    path.write_text("a,price\n" + "".join(f"{n % 7},{n}.5\n" for n in range(30)) + "3,sold\n")
    data, pasted = read(path, target="price")
    assert sorted(pasted[0]) == ["dataset.fill=drop", "dataset.missing=[sold]"]
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
