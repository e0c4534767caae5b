"""The report: whole, offline, escaped, and made for a screen reader."""

import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest

from normbench import names
from normbench.command.results.commands import main
from normbench.recording.store import records
from normbench.recording.store.connection import Store
from normbench.recording.store.writer import Writer
from normbench.results.compare import comparisons, heldout
from normbench.results.figures import NAMES, PHOTOGRAPHIC_FIGURES
from normbench.results.report import captions, files
from normbench.results.report import page as report
from normbench.results.report.terminal import present
from normbench.results.store.runs import Sweep, load
from tests.claims.claims import sentences
from tests.results.compare.test_heldout import splits
from tests.results.made import runs


class Page(HTMLParser):
    """What a page consists of: its elements, each with its attributes, and its text."""

    VOID = ("meta", "img", "input")

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self.open = [], "", []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), list(self.open)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), list(self.open)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.text += data

    def all(self, tag):
        return [attributes for name, attributes, _ in self.elements if name == tag]


@pytest.fixture(scope="module")
def page(three):
    return Page(report.render(three.sweep))


def test_it_asks_nothing_of_any_other_place(page):
    assert page.all("link") == page.all("iframe") == []
    assert {frozenset(script) for script in page.all("script")} <= {
        frozenset(),
        frozenset({"type", "class"}),  # data, which is not run
    }
    assert "default-src 'none'" in str(page.all("meta"))
    for _, attributes, _ in page.elements:
        for name in ("src", "href", "xlink:href", "srcset", "data", "action"):
            assert attributes.get(name, "#").startswith(("#", "data:image/png;base64,"))
        assert not any(name.startswith("on") for name in attributes)
        assert "url(http" not in str(attributes.get("style"))


def test_the_ids_of_all_figures_are_apart_and_every_reference_is_met(page):
    ids = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    text = str([attributes for _, attributes, _ in page.elements])
    wanted = re.findall(r"url\(#([^)]*)\)", text)
    wanted += [value[1:] for value in re.findall(r"href': '(#[^']*)'", text)]
    assert wanted
    assert set(wanted) <= set(ids)


def test_it_is_structured_for_a_screen_reader(page):
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == len(page.all("main")) == 1
    assert len(page.all("table")) == len(page.all("caption")) >= 3
    assert all(cell.get("scope") in ("col", "row") for cell in page.all("th"))
    figures = [tag for tag, _, inside in page.elements if tag == "svg" and "figure" in inside]
    pictures = [card for card in page.all("div") if card.get("class", "").startswith("card")]
    assert len(pictures) == len(page.all("figcaption")) == 8
    assert len(figures) == 8
    assert all(card["aria-label"].startswith("Figure: ") for card in pictures)
    levels = [int(tag[1]) for tag, _, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_it_holds_the_question_the_verdict_the_setting_and_the_losses(page, three):
    for words in (
        "Which of identity, standard and pca_sphere lowers the cost of two-least_squares",
        "After 10 iterations of gradient descent, from the lowest cost up: ",
        "Fastest",
        "Predicts best: ",
        "Test points after the last iteration",
        "60 train points, 20 test points, 2 features; fingerprint",
        "Largest safe step size: what theory promises (2/L) and what was seen",
        "Step x L / 2 along the path against 1",
        "normbench tracking.uri=postgresql://me:***@host/db",
        "ridge",
        "1e+200",
    ):
        assert words in page.text, words
    lost = three.sweep.of_role("step")
    for reason in lost[lost["verdict"] == "diverged"]["reason"]:
        assert reason in page.text
    assert "secret" not in page.text


def test_it_begins_with_the_answer_and_ends_with_how_to_repeat_it(page):
    order = ("Fastest", "One step size must melt", "Each scheme at its best", "Try a step size")
    order += ("Step x L / 2 along", "Theory", "Setting", "To repeat it")
    places = [page.text.index(words) for words in order]
    assert places == sorted(places)


def test_theory_is_three_short_sentences_a_scheme(page, three):
    (label, short, whole), *others = report._explanations(three.sweep.of_role(names.SCHEME))
    assert len(others) == 2
    assert [name for name, _ in sentences(short)] == ["exact", "untouched", "best"]
    assert label == "identity"
    assert short != whole
    assert short.split(",")[0] in whole
    assert page.text.count("All that is known of it") == 3


def test_photographs_are_not_inverted_in_the_dark(page):
    looks = [card["class"] for card in page.all("div") if card.get("class", "").startswith("card")]
    assert set(looks) == {"card plot"}
    assert {"components", "reconstruction"} <= set(PHOTOGRAPHIC_FIGURES) <= set(NAMES)


def test_pairs_on_test_points_say_what_their_conclusions_are_about():
    table = splits(a=[0.1, 0.1], b=[0.2, 0.3])
    _, pairs = report._held_out(table, pd.DataFrame())
    assert pairs["caption"].endswith(f"; {heldout.CLAIMS}")
    assert pairs["columns"][-2:] == ["conclusion", "on new data"]
    assert len(report._held_out(table[table["split"] == 0], pd.DataFrame())) == 1


def test_captions_and_alternative_texts_say_what_was_found(page, three):
    told = {
        name: captions.describe_figure(three.sweep, three.name, name)
        for name in ("histories", "step_sizes", "phase_diagram", "contours", "data", "sharpness")
    }
    words = [card["aria-label"] for card in page.all("div") if card.get("role") == "img"]
    for name, text in told.items():
        assert text, name
        assert text in page.text, name
        assert any(text in each for each in words), name


def test_every_step_size_stands_in_a_folded_table(page, three):
    assert len(page.all("details")) == len(page.all("summary")) == 1 + 3  # theory of each scheme
    inside = [tag for tag, _, open_tags in page.elements if "details" in open_tags]
    steps = three.sweep.of_role("step")
    assert inside.count("tr") == 1 + len(steps)
    assert inside.count("caption") == 1


def test_settings_stand_as_one_types_them():
    own = {"normalizer.ridge": "None"}, {"normalizer.ridge": "True"}
    made = runs(*(("x", f"a{n}", {1.0: 2.0}, more) for n, more in enumerate(own)), theory="True")
    shared, table = report._settings(made.of_role(names.SCHEME))
    assert dict(shared)["theory"] == "true"
    assert [row[1] for row in table["rows"]] == ["null", "true"]


def test_a_step_that_was_chosen_is_not_called_the_best(page, three):
    runs = three.sweep.runs.assign(**{"tags.step_chosen": "true"})
    other = Page(report.render(Sweep(three.uri, "sweep-1", runs), drawn={}))
    assert '"which_step":"shown"' in report.render(Sweep(three.uri, "sweep-1", runs), drawn={})
    for words in (
        "each scheme stands at its {} step size",
        "Each scheme at its {} step size",
        "each at its {} step",
    ):
        assert words.format("best") in page.text
        assert words.format("shown") in other.text
        assert words.format("best") not in other.text


def test_what_theory_cannot_say_of_the_optimizer_stands_there(page, three):
    assert "seen / promised: that step size and the next one tried, both over 2/L" in page.text
    note = "2/L speaks of plain gradient descent, not of this optimizer"
    runs = three.sweep.runs.assign(**{"tags.plain_descent": "false", "tags.theory_note": note})
    other = Page(report.render(Sweep(three.uri, "sweep-1", runs), drawn={}))
    assert f"Note: {note}." in other.text
    assert "2/L: theory promises that the cost" in other.text
    for words in ("seen / promised:", "Theory promises"):
        assert words in page.text
        assert words not in other.text


def test_a_failed_job_stands_there_with_its_reason(images):
    writer = Writer(Store.at(images.uri, None, images.folder))
    parent = images.sweep.of_role("sweep")["run_id"].iloc[0]
    tags = {"normalizer": "broken", "sweep_id": "sweep-1"}
    reason = "it <b>broke</b> at http://me:secret@host/"
    place = records.RecordHeader(images.uri, images.name, parent, {}, tags)
    run_id = writer.write(records.of_failure(place, ValueError(reason)))
    page = Page(report.render(load(images.uri, "sweep-1"), drawn={}))
    writer.client.delete_run(run_id)
    assert "it <b>broke</b> at http://me:***@host/" in page.text
    assert page.all("b") == []


def test_runs_stayed_finite_only_where_there_are_runs(page, images):
    still = Page(report.render(images.sweep, drawn={}))
    title = "Failed and diverged runs, and those that rounding decides"
    assert "stayed finite" not in still.text
    assert (title in still.text, title in page.text) == (False, True)


@pytest.mark.parametrize(
    ("compared", "verb", "quantity"),
    [
        ([], "lowers the cost furthest", "the cost"),
        (
            ["y"],
            "lowers the cost furthest or leaves the fewest points misclassified",
            "the cost or the number of misclassified points",
        ),
        (
            ["x", "y"],
            "leaves the fewest points misclassified",
            "the number of misclassified points",
        ),
    ],
)
def test_the_title_counts_problems_and_schemes_as_the_answer_does(compared, verb, quantity):
    """Two data sets, one under two values of a setting; one normalizer with two options."""
    jobs = [
        (data, "a", {1.0: 3}, {"cost.l2": l2, "normalizer.ridge": ridge})
        for data, penalties in (("x", "01"), ("y", "0"))
        for l2 in penalties
        for ridge in "01"
    ]
    sweep = runs(*jobs)
    sweep.runs["label"] += ", ridge=" + sweep.runs[names.setting("normalizer.ridge")]
    counted = sweep.runs["experiment"].isin(compared)
    sweep.runs.loc[counted, names.COMPARED.column] = names.MISCLASSIFICATIONS
    assert report._title(sweep) == f"Which of 2 normalization schemes {verb}, over 3 problems?"
    ridge = sweep.runs[names.setting("normalizer.ridge")]
    one = Sweep("-", "s", sweep.runs[ridge != "1"])
    assert report._title(one) == f"How far does a, ridge=0 lower {quantity}, over 3 problems?"


def test_names_from_data_are_never_markup(three):
    bad = "<script>alert(1)</script>&\"'"
    runs = three.sweep.runs.copy()
    runs["label"] = runs["label"].replace("standard", bad)
    runs["experiment"] = bad
    runs["tags.explanation"] = bad
    runs["params.note"] = bad
    page = Page(report.render(Sweep(three.uri, "sweep-1", runs), drawn={}))
    assert len(page.all("script")) <= 2
    assert page.text.count(bad) >= 5


@pytest.mark.commands
def test_figures_draw_names_as_text(three):
    bad = "<script>$x$</script>"
    runs = three.sweep.runs.copy()
    runs["label"] = runs["label"].replace("standard", bad)
    page = Page(report.render(Sweep(three.uri, "sweep-1", runs)))
    assert len(page.all("script")) <= 2


def test_a_figure_of_many_points_is_embedded_as_png(three, monkeypatch):
    monkeypatch.setattr(report, "MAX_SVG_LENGTH", 0)
    page = Page(report.render(three.sweep, {three.name: []}))
    assert page.all("figure") == []
    files = [three.folder / "step_sizes.svg"]
    files[0].write_text("<svg></svg>")
    page = Page(report.render(three.sweep, {three.name: files}))
    (image,) = page.all("img")
    assert image["src"].startswith("data:image/png;base64,")
    assert image["alt"].startswith("Figure: ")


@pytest.mark.commands
def test_the_command_line_writes_it(three, images, tmp_path, capsys):
    assert main(["report", "--store", images.uri, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'report.html'}\n"
    assert (
        "What do standard and pca_sphere make of the points"
        in Page((tmp_path / "report.html").read_text()).text
    )
    assert main(["report", "--store", three.uri, "--out", "/proc/none"]) == 2
    assert "--out /proc/none: cannot be written" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweeps_end_compares_once(three, tmp_path, monkeypatch, capsys):
    compared = []

    def paired(table, least):
        compared.append(table)
        columns = ["scheme", "against", "splits", "wins", "ratio", "low", "high", "conclusion"]
        return pd.DataFrame([["a", "b", 2, 1.0, 4.5, None, None, "none"]], columns=columns)

    monkeypatch.setattr(comparisons, "compare_pairs", paired)
    sweep = replace(three.sweep)  # of which nothing was asked before
    written = present(sweep, lambda: files.write(sweep, tmp_path))
    assert len(compared) == 1
    told = capsys.readouterr().out
    page = Page(written[three.name][-1].read_text())
    assert "1 pair of schemes needs at least 6 splits (2 x 0.5^6 <= 0.05 / 1); there are 2" in (
        page.text
    )
    assert "4.5" in page.text
    for text in (told, page.text):
        assert "n 10 iterations of gradient descent" in text


def test_a_report_names_no_home_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    schemes = pd.DataFrame({"label": ["a"], names.setting("data_dir"): ["/home/me/data"]})
    assert report._settings(schemes)[0] == [("data_dir", "~/data")]


def test_a_report_says_how_to_install_what_it_was_made_with(three):
    text = report.render(three.sweep, {})
    assert "pip install -c constraints.txt ." in text
