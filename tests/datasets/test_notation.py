"""Numbers in another notation: recognized in targets and features, and read by plain settings."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from normbench import compare
from normbench.datasets import UserError
from normbench.datasets.columns import refuse_text_target
from normbench.datasets.files import TableOptions, csv, npz, table_dataset
from normbench.datasets.notation import Notation, find_notations

RNG = np.random.default_rng(64)
NUMBERS = np.round(RNG.uniform(1000, 90000, 60), 2)


def write_table(path, texts, delimiter=";", feature=None):
    """Write a table of a feature of 60 points and a target of text."""
    feature = range(5, 65) if feature is None else feature
    rows = [f"{a}{delimiter}{text}" for a, text in zip(feature, texts)]
    path.write_text("\n".join([f"a{delimiter}price", *rows]) + "\n")
    return str(path)


def spell(number, notation):
    text = f"{number:,.2f}"
    return text.translate(str.maketrans(",.", notation))


FORMS = {
    "decimal commas": (lambda n: f"{n:.2f}".replace(".", ","), "dataset.decimal=comma"),
    "percent": (lambda n: f"{n} %", "dataset.decimal=point"),
    "a currency": (lambda n: "$" + spell(n, ",."), "dataset.thousands=comma"),
    "a currency behind": (lambda n: spell(n, ".,") + " €", "dataset.thousands=point"),
    "a unit": (lambda n: f"{n} kg", "dataset.decimal=point"),
    "a unit without a blank": (lambda n: f"{n:.2f}kWh", "dataset.decimal=point"),
    "blanks between thousands": (lambda n: spell(n, " ."), "dataset.thousands=blank"),
    "narrow blanks": (lambda n: spell(n, "\u202f."), "dataset.thousands=blank"),
    "blanks and commas": (
        lambda n: spell(n, " ,"),
        "dataset.decimal=comma dataset.thousands=blank",
    ),
    "a minus before the sign": (lambda n: "-£" + spell(n, ",."), "dataset.thousands=comma"),
}


def settings_of(remedy):
    return dict(text.removeprefix("dataset.").split("=") for text in remedy.split())


@pytest.mark.parametrize("form", FORMS)
def test_a_target_in_another_notation_is_called_so_and_read_by_the_setting_named(tmp_path, form):
    write, remedy = FORMS[form]
    path = write_table(tmp_path / "my.csv", map(write, NUMBERS))
    with pytest.raises(UserError, match="column 'price' is of numbers with ") as caught:
        csv(path, "price", delimiter="semicolon")
    assert f"or add {remedy} (" in str(caught.value)
    assert "drop" not in str(caught.value)
    data = csv(path, "price", delimiter="semicolon", **settings_of(remedy))
    assert data.task == "regression"
    assert data.y.tolist() == (-NUMBERS if form.startswith("a minus") else NUMBERS).tolist()


@pytest.mark.parametrize("form", FORMS)
def test_a_feature_in_another_notation_is_neither_dropped_nor_encoded(tmp_path, form):
    write, remedy = FORMS[form]
    path = write_table(tmp_path / "my.csv", ["no", "yes"] * 30, feature=map(write, NUMBERS))
    with pytest.raises(UserError, match="column 'a' is of numbers with ") as caught:
        csv(path, "price", delimiter="semicolon")
    assert f"or add {remedy} (" in str(caught.value)
    assert "drop" not in str(caught.value)
    assert "encode" not in str(caught.value)
    data = csv(path, "price", delimiter="semicolon", **settings_of(remedy))
    sign = -1 if form.startswith("a minus") else 1
    assert data.x.tolist() == (sign * NUMBERS[:, None]).tolist()


@pytest.mark.parametrize("points_in", ["rows", "columns"])
def test_downloads_with_a_plus_are_numbers_beside_words_and_gaps(tmp_path, points_in):
    rows = [["Installs", "Size", "Free"]]
    rows += [[["10,000+", "0", "1,000+"][n % 3], f"{n % 25}M", ["no", "yes"][n % 2]] for n in
             range(60)]  # fmt: skip
    rows[5][1] = "Varies"
    table = pd.DataFrame(rows)
    path = tmp_path / "my.csv"
    (table if points_in == "rows" else table.T).to_csv(path, index=False, header=False)
    with pytest.raises(UserError) as caught:
        csv(str(path), "Free", points_in=points_in)
    for words in (
        "'Installs' is of numbers with commas between thousands and '+' ('10,000+')",
        "'Size' is of numbers with 'M' ('0M'), but for 'Varies'",
        "add dataset.thousands=comma 'dataset.missing=[Varies]' dataset.fill=median (",
    ):
        assert words in str(caught.value)
    options = {"thousands": "comma", "missing": ["Varies"], "fill": "median"}
    data = csv(str(path), "Free", points_in=points_in, **options)
    assert sorted(set(data.x[:, 0])) == [0, 1000, 10000]


MULTIPLES = {
    "megabytes": (["15M", "19M", "2M"], "'M' ('15M')", [15, 19, 2]),
    "several": (["15M", "201k", "0", "3bn"], "several multiples, ", [15e6, 201e3, 0, 3e9]),
    "fractions": (["1.2M", "950.5K"], "several multiples, ", [1.2e6, 950.5e3]),
    "none beside k": (["950", "1.2k", "13k"], "several multiples, ", [950, 1200, 13000]),
    "a currency": (["$5M", "$-2 B"], "'$' and several multiples, ", [5e6, -2e9]),
    "thousands": (["5,300 k", "2.5M"], "commas between thousands and several", [5.3e6, 2.5e6]),
}


@pytest.mark.parametrize("case", MULTIPLES)
def test_multiples_of_a_feature_are_numbers_by_the_setting_and_by_the_line_of_pandas(
    tmp_path, case
):
    kinds, traits, numbers = MULTIPLES[case]
    texts = [*kinds * 9, "Varies with device"]
    labels = (["no", "yes"] * 30)[: len(texts)]
    path = write_table(tmp_path / "my.csv", labels, feature=texts)
    with pytest.raises(UserError, match="column 'a' is of numbers with ") as caught:
        csv(path, "price", delimiter="semicolon")
    assert traits in str(caught.value)
    assert "dataset.drop" not in str(caught.value)
    assert "dataset.encode" not in str(caught.value)
    notation = {"thousands": "comma"} if case == "thousands" else {"decimal": "point"}
    options = {"delimiter": "semicolon", "missing": ["Varies with device"], "fill": "drop"}
    assert csv(path, "price", **notation, **options).x[:, 0].tolist() == numbers * 9
    table = pd.DataFrame({"a": texts})
    with pytest.raises(UserError, match="with pandas: ") as caught:
        compare(table, labels, iterations=2)
    exec(str(caught.value).partition("with pandas: ")[2].partition(". Correct")[0])
    assert table["a"].tolist()[:-1] == numbers * 9
    assert np.isnan(table["a"].iloc[-1])


@pytest.mark.parametrize("decimal", [None, "point"])
@pytest.mark.parametrize("distances", [["5k", "10k", "21k"], ["5M", "50k"]])
def test_a_target_of_few_multiples_is_of_classes(tmp_path, distances, decimal):
    path = write_table(tmp_path / "my.csv", distances * 20)
    assert csv(path, "price", delimiter="semicolon", decimal=decimal).classes == len(distances)
    refuse_text_target("y", pd.Series(distances * 20))
    write_table(tmp_path / "my.csv", ["?", *distances * 20])
    with pytest.raises(UserError, match=r"holds '\?' in .*'dataset.missing="):
        csv(path, "price", delimiter="semicolon")


@pytest.mark.parametrize(
    "texts",
    [
        ["12", "12B", "14", "14B"] * 15,
        ["720p", "4K", "8K"] * 20,
        ["$5M", "€3k"] * 30,
        ["2B", "3B", "SS", "OF"] * 15,
    ],
)
def test_words_that_end_as_multiples_do_stay_categories(tmp_path, texts):
    path = write_table(tmp_path / "my.csv", ["no", "yes"] * 30, feature=texts)
    with pytest.raises(UserError, match=r"'a' is of words .* 'dataset.encode=\[a\]'"):
        csv(path, "price", delimiter="semicolon")


@pytest.mark.parametrize(
    "texts",
    [
        ["4wd", "2wd"] * 30,
        ["1st", "2nd", "3rd"] * 20,
        ["10th", "11th", "Bachelors", "Masters", "7th-8th"] * 12,
        [f"p{n % 20}" for n in range(60)],
        ["18-25", "26-40", "41+"] * 20,
        ["1.2.3", "1.2.4"] * 30,
        ["10:30", "11:45"] * 30,
    ],
)
def test_labels_with_digits_stay_classes(tmp_path, texts):
    data = csv(write_table(tmp_path / "my.csv", texts), "price", delimiter="semicolon")
    assert sorted(data.class_names) == sorted(set(texts))


@pytest.mark.parametrize("count", [30, 31])
def test_a_target_of_more_kinds_than_half_of_the_points_is_refused(tmp_path, count):
    path = write_table(tmp_path / "my.csv", [f"p{n % count}" for n in range(60)])
    if count == 30:
        assert csv(path, "price", delimiter="semicolon").classes == 30
        return
    with pytest.raises(UserError, match=r"has 31 different texts in 60 .* dataset.task=classes"):
        csv(path, "price", delimiter="semicolon")
    assert csv(path, "price", delimiter="semicolon", task="classes").classes == 31


def test_targets_in_memory_are_refused_with_a_line_of_pandas_that_runs(tmp_path):
    x = pd.DataFrame({"a": np.arange(60.0)})
    texts = [spell(number, ".,") + " €" for number in NUMBERS]
    np.savez(tmp_path / "my.npz", x=x.to_numpy(), y=np.array(texts))
    for call in (
        lambda: compare(x, texts, iterations=2),
        lambda: compare(x.to_numpy(), texts, iterations=2),
        lambda: npz(str(tmp_path / "my.npz")),
        lambda: table_dataset("t", x.assign(y=texts), "y", None, TableOptions(), source="-"),
    ):
        with pytest.raises(UserError, match="with pandas: ") as caught:
            call()
        table = pd.DataFrame({"y": texts})
        exec(str(caught.value).partition("with pandas: ")[2].partition(")[0]")[0] + ")[0]")
        assert table["y"].astype(float).tolist() == NUMBERS.tolist()


def test_points_between_thousands_are_read_where_no_other_number_has_a_point(tmp_path):
    path = tmp_path / "my.csv"
    rows = [f"{1 + n % 3}.{n:03};{n + 900};0.{n:03};{n}.5;{n % 2}" for n in range(30)]
    path.write_text("area;beds;share;other;y\n" + "\n".join(rows) + "\n")
    data = csv(str(path), "y", delimiter="semicolon", thousands="point")
    expected = [[1000 * (1 + n % 3) + n, n + 900, n / 1000, n + 0.5] for n in range(30)]
    assert data.x.tolist() == expected


def test_a_table_that_mixes_notations_keeps_its_points(tmp_path):
    path = tmp_path / "my.csv"
    path.write_text("a;b;c\n" + "".join(f"{n}.5;{n},25;{n}.125\n" for n in range(1, 31)))
    data = csv(str(path), "c", delimiter="semicolon", decimal="comma")
    assert data.x.tolist() == [[n + 0.5, n + 0.25] for n in range(1, 31)]
    assert data.y.tolist() == [n + 0.125 for n in range(1, 31)]


def test_a_comma_for_the_point_is_never_taken_for_thousands():
    assert find_notations(pd.Series(["1,7", "1,750", "12,250"]), is_target=False) == [
        Notation("comma"),
        Notation("comma", "point"),
        Notation("comma", "blank"),
    ]


def test_the_same_separator_twice_is_refused(tmp_path):
    path = write_table(tmp_path / "my.csv", NUMBERS)
    with pytest.raises(UserError, match=r"is the decimal separator too; write dataset.decimal="):
        csv(path, "price", delimiter="semicolon", decimal="comma", thousands="comma")


def test_blank_rows_and_last_delimiters_do_not_matter(tmp_path):
    path = tmp_path / "my.csv"
    path.write_text(
        "a;b;y;;\n" + "".join(f"{n};{n * n};{n},5;;\n" for n in range(9)) + ";;;;\n" * 4
    )
    data = csv(str(path), -1, delimiter="semicolon", decimal="comma")
    assert data.feature_names == ("a", "b")
    assert data.y.tolist() == [n + 0.5 for n in range(9)]


@pytest.mark.parametrize("header", ["x;y;z\n", "# a note\nx;y;z\n"])
def test_a_table_with_semicolons_is_answered_with_both_settings(tmp_path, header):
    path = tmp_path / "my.csv"
    path.write_text(header.removeprefix("# a note\n") + "".join(f"1,5;2;{n}\n" for n in range(9)))
    with pytest.raises(UserError, match=r"dataset.delimiter=semicolon dataset.decimal=comma$"):
        csv(str(path), "z")


NOTED = {
    "a sentinel": ("a,b,y\n", "{s},{n},1\n", "'dataset.missing=[-999]' dataset.fill=median"),
    "an identifier": ("a,user_id,y\n", "{n}.5,{i},1\n", "'dataset.drop=[user_id]'"),
    "two columns of a name": ("a,a,y\n", "{n}.5,{n},1\n", "'dataset.drop=[1]'"),
    "a column without a name": ("a,,y\n", "{n},5,1\n", "'dataset.drop=[1]'"),
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
    assert "were decimals split" in note or case != "a column without a name"


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
    data = csv(str(path), "y", encode=["größe"], read=read)
    assert data.x.shape[0] == 9
    with pytest.raises(UserError, match=r"is set by dataset\.delimiter"):
        csv(str(path), "y", read={"sep": ";"})
    with pytest.raises(UserError, match=r"no such option; did you mean skiprows"):
        csv(str(path), "y", read={"skiprow": 1})
    with pytest.raises(UserError, match=r"must be options of pandas\.read_csv"):
        csv(str(path), "y", read="latin-1")


@pytest.mark.parametrize(
    ("first", "remedy"),
    [
        ("# made by device 7\n", "'dataset.read={comment: \"#\"}'"),
        ("made by device 7\n\n", "'dataset.read={skiprows: 2}'"),
    ],
)
def test_a_comment_line_is_named_and_its_remedy_runs_as_typed(tmp_path, first, remedy):
    rows = "".join(f"{n % 7},{n % 5},{n % 2}\n" for n in range(30))
    (tmp_path / "my.csv").write_text(f"{first}a,b,y\n{rows}")
    with pytest.raises(UserError, match=r"line 1 \('.*made by device 7'\) differs") as caught:
        csv(str(tmp_path / "my.csv"), "y")
    assert str(caught.value).endswith(remedy)
    command = [os.path.join(os.path.dirname(sys.executable), "normbench"), "dataset=csv"]
    command += ["dataset.path=my.csv", "dataset.target=y", "iterations=2", "-m", "--cfg", "job"]
    done = subprocess.run([*command, remedy.strip("'")], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_a_text_in_place_of_a_list_is_answered_with_the_list(tmp_path):
    path = write_table(tmp_path / "my.csv", ["no", "yes"] * 30)
    with pytest.raises(UserError, match=r"write 'dataset.encode=\[a\]'$"):
        csv(path, "price", delimiter="semicolon", encode="a")
