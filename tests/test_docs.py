"""The documentation's pages: their links, and their build without a warning."""

import re
import subprocess
import sys

import pytest

from tests.wheel import ROOT

DOCS = ROOT / "docs"
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")
STUDY = re.compile(r"experiment=([a-z]+/[a-z]\w+)")
REMOTE = re.compile(r"<(?:script|link|img)[^>]+(?:src|href)=\"(?:https?:)?//")
PAGES = sorted(DOCS.glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_files_and_studies_that_exist(page):
    text = page.read_text()
    links = [link for link in LINK.findall(text) if not link.startswith("generated/")]
    assert [link for link in links if not (DOCS / link).is_file()] == []
    studies = set(STUDY.findall(text))
    folder = ROOT / "conf" / "experiment"
    assert [study for study in studies if not (folder / f"{study}.yaml").is_file()] == []


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
