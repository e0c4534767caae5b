"""The documentation's pages: their links, and their build without a warning."""

import importlib
import re
import subprocess
import sys

import pytest

from normbench import choices
from normbench.results.figures import NAMES
from tests.wheel import ROOT

DOCS = ROOT / "docs"
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")
STUDY = re.compile(r"experiment=([a-z]+/[a-z]\w+)")
REMOTE = re.compile(r"<(?:script|link|img)[^>]+(?:src|href)=\"(?:https?:)?//")
NUMBER = re.compile(r"\d(?:[\d.,e-]*\d)?")
PAGES = sorted(DOCS.glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_files_and_studies_that_exist(page):
    text = page.read_text()
    links = [link for link in LINK.findall(text) if not link.startswith("generated/")]
    assert [link for link in links if not (DOCS / link).is_file()] == []
    studies = set(STUDY.findall(text))
    folder = ROOT / "conf" / "experiment"
    assert [study for study in studies if not (folder / f"{study}.yaml").is_file()] == []


def test_the_numbers_of_an_answer_are_those_of_its_study():
    page = (DOCS / "questions.md").read_text()
    readme = (choices.CONF / "experiment" / "README.md").read_text()
    sections = page.split("\n### ")[1:]
    assert len(sections) > 10
    for section in sections:
        (study,) = STUDY.findall(section)
        (figure,) = re.findall(r"figure `(\w+)`", section) or [None]
        assert figure is None or figure in NAMES, section
        name = study.split("/")[1]
        known = (choices.CONF / "experiment" / f"{study}.yaml").read_text()
        known += next(line for line in readme.splitlines() if line.startswith(f"| `{name}` |"))
        if name == "does_the_choice_matter":  # its ranks stand in a table of their own
            known += readme[readme.index("Mean ranks of") : readme.index("With its sources")]
        (answer,) = re.findall(r"\*\*(.+?)\*\*", section, re.DOTALL)
        numbers = set(NUMBER.findall(answer))
        assert numbers <= set(NUMBER.findall(known)), section


def test_the_words_that_people_search_for_stand_on_the_page_of_questions():
    page = (DOCS / "questions.md").read_text().lower()
    words = ("leakage", "epsilon", "standardscaler", "whiten", "l-bfgs", "adam", "zca")
    assert [word for word in words if word not in page] == []


@pytest.fixture
def generate(monkeypatch):
    """Import `docs/generate.py` as `docs/conf.py` does, and forget it afterwards."""
    monkeypatch.syspath_prepend(str(DOCS))
    yield importlib.import_module("generate")
    sys.modules.pop("generate")


def test_the_generated_pages_have_every_choice_figure_and_study(generate, tmp_path):
    generate.write(tmp_path)
    pages = {name: (tmp_path / f"{name}.md").read_text() for name in generate.PAGES}
    for group in generate.GROUPS:
        titles = [f"### `{group}={name}`\n" for name in choices.names(group)]
        assert [title for title in titles if title not in pages["choices"]] == []
    assert [name for name in NAMES if f"| `{name}` |" not in pages["figures"]] == []
    studies = (choices.CONF / "experiment").glob("*/*.yaml")
    commands = [f"`normbench experiment={file.parent.name}/{file.stem}`" for file in studies]
    assert [command for command in commands if command not in pages["studies"]] == []


def test_each_scheme_of_scikit_learn_has_its_formula(generate):
    page = generate.choices_page()
    for name in choices.names("normalizer"):
        file = choices.CONF / "normalizer" / f"{name}.yaml"
        foreign = choices.TARGET.search(file.read_text())[1].startswith("sklearn.")
        assert not foreign or f"`{generate.FORMULAS[name]}`" in page


def test_markdown_sees_no_markup_in_text_of_the_code(generate):
    assert generate.escaped("l2 * |w|, `a|b_*` <x>") == r"l2 \* \|w\|, `a\|b_*` \<x\>"


@pytest.mark.slow
def test_the_pages_build_without_a_warning_and_load_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("sphinx", reason="make docs installs it")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    completed = subprocess.run(
        [*build, str(DOCS), str(tmp_path)], capture_output=True, text=True, cwd=ROOT
    )
    assert completed.returncode == 0, completed.stderr
    pages = list(tmp_path.glob("*.html"))
    assert len(pages) > len(PAGES)
    assert [page.name for page in pages if REMOTE.search(page.read_text())] == []
