"""A comparison as an object: from Python and from a store alike."""

import re
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from nbclient import NotebookClient

import normbench
from normbench.datasets.bundled import breast_cancer, diabetes
from normbench.results.answer.tables import EXCESS_LEFT
from normbench.results.figures import NAMES
from normbench.results.report import notebook
from normbench.results.store.errors import ResultsError
from tests import forks
from tests.conftest import ROOT

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
    words.append("figures=[]")
    assert forks.run(words, folder).returncode == 0
    return normbench.load(store=f"sqlite:///{folder / 'mlflow.db'}")


@pytest.mark.commands
def test_what_is_compared_in_python_is_what_a_store_has(compared, recorded):
    columns = ["normalizer", "step_size", "iteration"]
    ours, theirs = (
        one.frame.sort_values(columns, ignore_index=True) for one in (compared, recorded)
    )
    pd.testing.assert_frame_equal(ours, theirs, rtol=1e-12)
    assert compared.sentence == recorded.sentence
    assert str(compared).splitlines()[0] == str(recorded).splitlines()[0]
    timed = ["seconds"]
    pd.testing.assert_frame_equal(
        compared.table.drop(columns=timed), recorded.table.drop(columns=timed), rtol=1e-9
    )


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
    assert {"melt", "windows", "histories", "phase_diagram", "contours", "data", "spectrum"} <= set(
        drawn
    )
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
    with pytest.raises(ResultsError, match=r"mlflow\.db"):
        normbench.load(store=f"sqlite:///{tmp_path / 'mlflow.db'}")


@pytest.mark.parametrize("value", [None, 5, ["last"], b"last", Path("mlflow.db"), np.zeros(2)])
@pytest.mark.parametrize("name", ["sweep", "store"])
def test_what_is_loaded_is_named_by_text(name, value):
    with pytest.raises(ResultsError, match=f"{name} is .*: must be text; give"):
        normbench.load(**{name: value})


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
