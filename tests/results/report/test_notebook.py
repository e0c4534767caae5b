"""A comparison as an object: from Python and from a store alike."""

import re
from html import unescape

import nbformat
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from nbclient import NotebookClient
from sklearn.preprocessing import StandardScaler

import normbench
from normbench import names
from normbench.datasets.bundled import breast_cancer, diabetes
from normbench.record.provenance import provenance_tags
from normbench.results.answer.tables import EXCESS_LEFT
from normbench.results.figures import NAMES
from normbench.results.report import notebook
from normbench.results.store.errors import ResultsError
from tests import forks
from tests.conftest import ROOT
from tests.results.made import runs

GRID = {"step_sizes": [0.1, 1.0, 1e6], "iterations": 20}


@pytest.fixture(scope="module")
def compared():
    data = breast_cancer()
    wanted = {"record": ["contours", "points", "spectrum"], "name": "breast_cancer", **GRID}
    return normbench.compare(data.x, data.y, **wanted)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    words = ["record=[contours,points,spectrum]", "iterations=20", "step_sizes=[0.1,1.0,1e6]"]
    assert forks.run([*words, "figures=[]", "tracking=none"], folder).returncode == 0
    return normbench.load(folder=folder / "outputs")


@pytest.mark.commands
def test_what_is_compared_in_python_is_what_a_store_has(compared, recorded):
    columns = ["normalizer", "step_size", "iteration"]
    ours, theirs = (
        one.frame.sort_values(columns, ignore_index=True) for one in (compared, recorded)
    )
    pd.testing.assert_frame_equal(ours, theirs, rtol=1e-12)
    assert compared.sentence == recorded.sentence
    assert str(compared).splitlines()[0] == str(recorded).splitlines()[0]
    assert "target: 2 classes (0 212, 1 357)" in str(compared)
    assert "<p>target: 2 classes (malignant 212, benign 357)</p>" in recorded._repr_html_()
    timed = ["seconds"]
    pd.testing.assert_frame_equal(
        compared.table.drop(columns=timed), recorded.table.drop(columns=timed), rtol=1e-9
    )


def test_a_report_from_python_says_how_to_repeat_it(tmp_path):
    def halved(scores, targets):
        return 0.5 * ((scores[:, 0] - targets) ** 2).sum(axis=-1)

    data = diabetes()
    made = normbench.compare(
        data.x, data.y, halved, ["identity", StandardScaler()], 0.1, 3, rules={"tail": 0.25}
    )
    page = unescape(made.report(tmp_path / "report.html").read_text())
    assert (
        "normbench.compare(x, y, cost=halved, normalizers=['identity', StandardScaler()], "
        "step_sizes=0.1, iterations=3, rules={'tail': 0.25})"
    ) in page
    for name, value in {
        "normbench": normbench.__version__,
        "numpy": np.__version__,
        "rules.tail": "0.25",
        "rules.last": "0.2",
    }.items():
        assert re.search(rf"<dt>{name}</dt>\s*<dd>{re.escape(value)}</dd>", page), name
    assert ("<dt>commit</dt>" in page) == (names.COMMIT.key in provenance_tags())


def test_counts_are_integers():
    data = breast_cancer()
    made = normbench.compare(
        data.x, data.y, normalizers=["identity", "standard"], step_sizes=[1.0, 1e6], iterations=3
    )
    for column in ("misclassified", "steps", "diverged"):
        assert pd.api.types.is_integer_dtype(made.table[column]), column
    assert pd.api.types.is_integer_dtype(made.frame["misclassifications"])
    text = re.sub(r"\d+\.\d*[1-9]\d*", "", str(made.table[["misclassified", "steps"]]))
    assert ".0" not in text
    halves = pd.DataFrame({"misclassified": [1.5, 2.0], "steps": [3.0, None], "cost": [1.0, 2.0]})
    counts = notebook._with_integers(halves)
    assert counts["misclassified"].tolist() == [1.5, 2.0]
    assert str(counts["steps"].tolist()) == "[3, <NA>]"
    assert counts["cost"].dtype == float


def test_comparisons_in_one_notebook_share_no_ids_but_of_equal_pictures():
    data, settings = breast_cancer(), {"iterations": 5, "step_sizes": [1.0, 1e6]}
    comparisons = (
        normbench.compare(data.x, data.y, normalizers=["standard", "pca_sphere"], **settings),
        normbench.compare(data.x[:, :5], data.y, normalizers=["identity", "minmax"], **settings),
    )
    ids = [set(re.findall(r' id="([^"]*)"', shown._repr_html_())) for shown in comparisons]
    assert all(ids)
    assert not ids[0] & ids[1]
    assert comparisons[0]._pictures("histories") == comparisons[0]._pictures("histories")


@pytest.mark.commands
def test_every_figure_is_drawn_of_both_or_of_none(compared, recorded):
    drawn = []
    for name in NAMES:
        try:
            figures = [one.figure(name) for one in (compared, recorded)]
        except ResultsError as error:
            with pytest.raises(ResultsError, match=re.escape(str(error))):
                recorded.figure(name)
            continue
        assert all(isinstance(one, Figure) for one in figures)
        drawn.append(name)
    assert {"melt", "histories", "phase_diagram", "contours", "data", "spectrum"} <= set(drawn)
    assert "fit" not in drawn


@pytest.mark.slow
def test_it_shows_itself_and_writes_its_report(compared, tmp_path):
    page = compared._repr_html_()
    assert compared.sentence.split(":")[0] in page
    assert "<h4>breast_cancer-softmax</h4>" in page
    assert "prefers-color-scheme: dark" in page
    numbers = re.findall(r'<td class="number">([^<]*)</td>', page)
    assert len(numbers) == 3 * 7
    digits = [re.sub(r"e.*|[^0-9]", "", number).lstrip("0") for number in numbers]
    assert max(map(len, digits)) <= 4
    assert "<svg" in page
    assert page.count("<tr") == 1 + 3
    report = compared.report(tmp_path / "report.html").read_text()
    assert compared.sentence.split(": ")[0] in report.replace("&#39;", "'")
    with pytest.raises(ResultsError, match="cannot be written"):
        compared.report(tmp_path / "no" / "report.html")


def test_where_no_scheme_ends_the_sentence_is_said_once():
    x = np.arange(20.0).reshape(10, 2) % 7
    lost = normbench.compare(x, [0, 1] * 5, "least_squares", step_sizes=[1e9], iterations=40)
    assert lost.sentence.count("No scheme has a cost to compare.") == 1
    still = normbench.compare(x, [0, 1] * 5, iterations=0)
    assert still.sentence.count("At the end: ") == 1


def test_what_is_left_of_the_excess_is_written_as_in_the_sentences():
    table = pd.DataFrame({"scheme": list("abcd"), EXCESS_LEFT: [0.0, 5e-5, np.nan, 2e30]})
    cells = re.findall(r'<td class="number">([^<]*)</td>', notebook._html(table))
    assert cells == ["under 0.0001%", "0.005%", "-", "2e+32%"]


def test_a_hostile_name_is_inert():
    x = np.arange(20.0).reshape(10, 2) % 7
    found = normbench.compare(x, [0, 1] * 5, name="<script>alert(1)</script>", iterations=2)
    assert "<script" not in found._repr_html_()


def test_old_uses_of_the_frame_go_on_working(compared):
    last = compared[compared.iteration == 20]
    assert set(last.groupby("normalizer")["cost"].min().index) == {
        *("identity", "standard", "pca_sphere")
    }
    assert len(compared) == len(compared.frame)
    assert list(compared) == list(compared.frame.columns)
    assert compared.shape == compared.frame.shape
    with pytest.raises(AttributeError, match=r"has no frames; its table of all runs is \.frame"):
        compared.frames  # noqa: B018


def test_a_mistake_is_told_with_what_there_is(compared, tmp_path):
    with pytest.raises(ResultsError, match=r"figure window: there is none; there are overview, "):
        compared.figure("window")
    with pytest.raises(ResultsError, match=r"figure fit: .*record=\[fit\]"):
        compared.figure("fit")
    with pytest.raises(ResultsError, match="experiment y: is not here; there are breast_cancer-so"):
        compared.figure("histories", "y")
    with pytest.raises(ResultsError, match="holds no comparison"):
        normbench.load(folder=tmp_path)


@pytest.mark.parametrize("value", [None, 5, ["last"], np.zeros(2)])
def test_what_is_loaded_is_named_by_text(value):
    with pytest.raises(ResultsError, match=r"sweep is .*: must be text; give"):
        normbench.load(value)


def test_schemes_of_one_class_are_told_apart_by_their_settings():
    from normbench.normalizers import PCASphere

    data = diabetes()
    schemes = [PCASphere(ridge=0.0), PCASphere(ridge=0.1)]
    found = normbench.compare(data.x, data.y, "least_squares", schemes, iterations=3)
    assert list(found.table["scheme"]) == ["PCASphere, ridge=0.0", "PCASphere, ridge=0.1"]
    assert set(found.frame["normalizer"]) == set(found.table["scheme"])


@pytest.mark.slow
def test_the_notebook_runs_in_an_empty_folder_and_has_no_output(tmp_path):
    text = (ROOT / "results" / "notebooks" / "compare.ipynb").read_text()
    book = nbformat.reads(text, as_version=4)
    codes = [cell for cell in book.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in codes)
    kernel = {"kernel_name": "python3", "resources": {"metadata": {"path": str(tmp_path)}}}
    NotebookClient(book, timeout=120, **kernel).execute()
    shown = [output["data"] for cell in codes for output in cell.outputs if "data" in output]
    assert len(shown) == len(codes)
    assert "<svg" in shown[0]["text/html"]
    assert all("image/png" in data for data in shown[1:3])
    assert (tmp_path / "report.html").is_file()


def test_a_table_in_a_notebook_has_four_digits_and_no_markup():
    table = pd.DataFrame({"scheme": ["<b>"], "cost": [0.123456], "steps": [7.0], "test cost": None})
    assert notebook._html(table) == (
        '<table><thead><tr><th>scheme</th><th class="number">cost</th><th class="number">steps</th>'
        "<th>test cost</th></tr></thead><tbody><tr><td>&lt;b&gt;</td>"
        '<td class="number">0.1235</td><td class="number">7</td><td>-</td></tr></tbody></table>'
    )


@pytest.mark.parametrize(("left", "cell"), [(0.5, "50%"), (999999.0, "99999900%"), (1e6, "1e+08%")])
def test_a_share_that_is_large_is_written_as_in_a_table(left, cell):
    table = pd.DataFrame({"scheme": ["a"], EXCESS_LEFT: [left]})
    assert f'<td class="number">{cell}</td>' in notebook._html(table)


def made(*experiments, **more):
    jobs = [
        (name, s, {1.0: count}) for name in experiments for s, count in (("a", 3.0), ("b", 9.0))
    ]
    return notebook.Comparison(runs(*jobs), **more)


def test_a_comparison_in_words_has_its_cause_where_it_is_one(monkeypatch):
    monkeypatch.setattr(notebook.cause, "cause", lambda sweep, name: "Why: it is round.")
    one, two = made("x").sentence, made("x", "y").sentence
    assert one.startswith("Fastest on this grid: a. It removes 99 % of the excess cost in 3")
    assert "Why: it is round. After gradient descent: a = b" in one
    assert two.startswith("a is fastest on 2 of 2 problems. Of 2 problems, the lowest cost on how")
    noted = repr(made("x", notes=["It still runs."]))
    assert noted.startswith("It still runs.\n\nFastest on this grid: a.")
    assert noted.endswith(repr(made("x")).split("\n\n")[-1])


def test_a_comparison_in_a_notebook_has_its_cause_where_it_is_one(monkeypatch):
    monkeypatch.setattr(notebook.cause, "cause", lambda sweep, name: "Why: it is round.")
    monkeypatch.setattr(notebook.Comparison, "_pictures", lambda self, name: f"<svg>{name}</svg>")
    one, two = made("x", notes=["It runs."])._repr_html_(), made("x", "y")._repr_html_()
    assert "<h4>x</h4><p>It runs.</p><p>Fastest on this grid: a." in one
    assert "</p><p>Why: it is round.</p><svg>melt</svg><table>" in one
    assert one.endswith("</table><svg>histories</svg></div>")
    assert "<h4>x, y</h4><p>a is fastest on 2 of 2 problems.</p><svg>melt</svg>" in two
    assert "Why" not in two


def test_a_comparison_names_the_faults_of_schemes(monkeypatch):
    monkeypatch.setattr(notebook.scheme_faults, "remarks", lambda sweep, name: ["It lost a & b."])
    monkeypatch.setattr(notebook.Comparison, "_pictures", lambda self, name: "")
    for several in (made("x"), made("x", "y")):
        assert repr(several).count("It lost a & b.") == 1
        assert several._repr_html_().count("<p>It lost a &amp; b.</p>") == 1


def test_what_is_no_method_of_a_frame_is_none_of_a_comparison():
    comparison = made("x")
    comparison.__dict__["frame"] = pd.DataFrame({"own": [1, 2], "more": [3, 4]})
    assert comparison.own.tolist() == [1, 2]
    assert comparison.shape == (2, 2)
    assert comparison["more"].tolist() == [3, 4]
    assert (len(comparison), list(comparison)) == (2, ["own", "more"])
    for name in ("none", "_private", "_repr_latex_"):
        assert not hasattr(comparison, name)
