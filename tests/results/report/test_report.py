"""The report: whole, offline, escaped, and made for a screen reader."""

import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest

from normbench import names
from normbench.record.outcome import RecordHeader, of_failure
from normbench.results.compare import comparisons, heldout
from normbench.results.figures import drawing
from normbench.results.report import captions, files
from normbench.results.report import page as report
from normbench.results.report.terminal import present
from normbench.results.store import memory
from tests.results.compare.test_heldout import splits
from tests.results.made import repeated, runs, tagged


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


def test_it_begins_with_the_answer_and_ends_with_how_to_repeat_it(page):
    order = ("Fastest", "One step size must melt", "Each scheme at its best", "Try a step size")
    order += ("Step x L / 2 along", "Theory", "Setting", "To repeat it")
    places = [page.text.index(words) for words in order]
    assert places == sorted(places)


def test_pairs_on_test_points_say_what_their_conclusions_are_about():
    """A third scheme has one split alone, and so have its pairs."""
    table = pd.concat([splits(a=[0.1, 0.1], b=[0.2, 0.3]), splits(c=[0.2])], ignore_index=True)
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


def test_settings_stand_as_one_types_them():
    own = {"normalizer.ridge": "None"}, {"normalizer.ridge": "True"}
    made = runs(*(("x", f"a{n}", {1.0: 2.0}, more) for n, more in enumerate(own)), theory="True")
    shared, table = report._settings(made.of_role(names.SCHEME))
    assert dict(shared)["theory"] == "true"
    assert [row[1] for row in table["rows"]] == ["null", "true"]


def test_a_step_that_was_chosen_is_not_called_the_best(page, three):
    runs = three.sweep.runs.assign(**{"tags.step_chosen": "true"})
    other = Page(report.render(replace(three.sweep, runs=runs), drawn={}))
    assert '"which_step":"shown"' in report.render(replace(three.sweep, runs=runs), drawn={})
    for words in ("each scheme stands at its {} step size", "each at its {} step"):
        assert words.format("best") in page.text
        assert words.format("shown") in other.text
        assert words.format("best") not in other.text


def test_a_failed_job_stands_there_with_its_reason(images):
    reason = "it <b>broke</b> at http://me:secret@host/"
    header = RecordHeader(images.name, {}, {"normalizer": "broken"})
    broken = of_failure(header, ValueError(reason))
    sweep = memory.sweep([*images.sweep.records.values(), broken], "normbench", {})
    page = Page(report.render(sweep, drawn={}))
    assert "it <b>broke</b> at http://me:***@host/" in page.text
    assert page.all("b") == []


def test_runs_stayed_finite_only_where_there_are_runs(page, images):
    still = Page(report.render(images.sweep, drawn={}))
    title = "Failed and diverged runs, and those that rounding decides"
    assert "stayed finite" not in still.text
    assert (title in still.text, title in page.text) == (False, True)


def test_the_title_counts_problems_and_schemes_as_the_answer_does():
    """Two data sets, one under two values of a setting; one normalizer with two options."""
    jobs = [
        (data, "a", {1.0: 3}, {"cost.l2": l2, "normalizer.ridge": ridge})
        for data, penalties in (("x", "01"), ("y", "0"))
        for l2 in penalties
        for ridge in "01"
    ]
    sweep = runs(*jobs)
    sweep.runs["label"] += ", ridge=" + sweep.runs[names.setting("normalizer.ridge")]
    asked = "Which of 2 normalization schemes {}, over 3 problems?"
    assert report._title(sweep) == asked.format("lowers the cost furthest")
    some = replace(sweep, runs=sweep.runs.copy())
    some.runs.loc[some.runs["experiment"] == "y", names.COMPARED.column] = names.MISCLASSIFICATIONS
    assert report._title(some) == asked.format(
        "lowers the cost furthest or leaves the fewest points misclassified"
    )
    ridge = sweep.runs[names.setting("normalizer.ridge")]
    one = replace(sweep, runs=sweep.runs[ridge != "1"])
    assert report._title(one) == "How far does a, ridge=0 lower the cost, over 3 problems?"


def test_names_from_data_are_never_markup(three):
    bad = "<script>alert(1)</script>&\"'"
    runs = three.sweep.runs.copy()
    runs["label"] = runs["label"].replace("standard", bad)
    runs["experiment"] = bad
    runs["tags.explanation"] = bad
    runs["params.note"] = bad
    page = Page(report.render(replace(three.sweep, runs=runs), drawn={}))
    assert len(page.all("script")) <= 2
    assert page.text.count(bad) >= 5


@pytest.mark.commands
def test_figures_draw_names_as_text(three, tmp_path):
    bad = "<script>$x$</script>"
    runs = three.sweep.runs.copy()
    runs["label"] = runs["label"].replace("standard", bad)
    sweep = replace(three.sweep, runs=runs)
    drawn = drawing.write(sweep, tmp_path, ["histories", "data"], file_formats=("svg",))
    page = Page(report.render(sweep, drawn))
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


@pytest.mark.slow
def test_a_sweeps_end_compares_once(three, tmp_path, monkeypatch, capsys):
    compared = []

    def paired(table, least):
        compared.append(table)
        columns = ["scheme", "against", "splits", "wins", "ratio", "low", "high", "conclusion"]
        return pd.DataFrame([["a", "b", 2, 1.0, 4.5, None, None, "none"]], columns=columns)

    monkeypatch.setattr(comparisons, "compare_pairs", paired)
    sweep = replace(three.sweep)  # of which nothing was asked before
    written = present(sweep, lambda: files.write(sweep, tmp_path, ["histories"]))
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


def test_lost_runs_have_a_verdict_and_a_reason():
    made = runs(("x", "a", {1.0: 3.0, 2.0: 3.0, 3.0: 3.0}), ("x", "b", None))
    made = tagged(made, reason="why")
    made = tagged(made, "a", "step", verdict=[names.DIVERGED, names.CONVERGED, names.BY_ROUNDING])
    table = report._failed_runs(made)
    assert [(row[0], *row[2:]) for row in table["rows"]] == [
        ("b", "failed", "why"),
        ("a", "diverged", "why"),
        ("a", names.BY_ROUNDING, "why"),
    ]
    assert report._failed_runs(runs(("x", "a", {1.0: 3.0}))) is None


def test_a_step_size_that_diverged_has_no_cost():
    made = runs(("x", "a", {1.0: (3.0, 0.25), 2.0: (3.0, 0.5)}))
    made = tagged(made, role="step", verdict=[names.CONVERGED, names.DIVERGED])
    first, second = report._steps(made)["rows"]
    assert first[:4] == ("a", "1", "converged", "0.250000")
    assert second[2:4] == ("diverged", "-")
    assert report._steps(runs(("x", "a", None))) is None


def test_an_environment_with_changes_says_so():
    made = tagged(runs(("x", "a", {1.0: 3.0})), role="sweep", COMMIT="abc", GIT_DIRTY="true")
    assert report._environment(made)[-1] == ("commit", "abc, with changes")
    clean = tagged(made, role="sweep", GIT_DIRTY="false")
    assert report._environment(clean)[-1] == ("commit", "abc")


def test_settings_that_all_share_stand_apart_from_those_that_differ():
    schemes = pd.DataFrame(
        {"label": ["a", "b"], "params.same": ["1", "1"], "params.own": ["2", None]}
        | {"params.never": [None, None], "tags.other": ["x", "y"]}
    )
    shared, table = report._settings(schemes)
    assert shared == [("same", "1")]
    assert table["columns"] == ["scheme", "own"]
    assert report._settings(schemes[:1]) == ([("own", "2"), ("same", "1")], None)


def test_tables_stand_where_they_say_something():
    made = runs(("x", "a", {1.0: 3.0}))
    assert report._predictions(made) is report._pairs(made) is None
    promised = report._predictions(tagged(made, THRESHOLD=2.0))
    assert promised["rows"][0][:2] == ("a", "2")
    pairs = report._pairs(runs(*repeated(2, a=[3.0, 4.0], b=[5.0, 6.0])))
    assert "1 pair of schemes needs at least 6 splits" in pairs["caption"]
    without, folds = splits(a=[0.1]).iloc[:0], pd.DataFrame({"scheme": ["a"], "cost": [0.5]})
    for held_out, title in ((without, "CROSS_VALIDATION"), (splits(a=[0.1]), "TEST_POINTS")):
        (table,) = report._held_out(held_out, folds)
        assert table["caption"] == getattr(report.headings, title)


def test_a_report_says_nothing_twice():
    sweep = tagged(runs(*(("x", s, {1.0: 3.0}) for s in "ab")), status="FINISHED", reason="")
    sweep = tagged(sweep, "b", "step", verdict=names.BY_ROUNDING)
    section = report._section("s1", sweep, "x", ())
    assert "decided by rounding" in section["ranking"]
    assert "decided by rounding" not in " ".join(section["answers"])
