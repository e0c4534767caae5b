"""Commands and snippets of the README and of the documentation's pages, each as it stands there."""

import re
import shlex
from itertools import chain

import pytest

from tests import forks
from tests.wheel import ROOT

README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = {page.name: page.read_text() for page in sorted((ROOT / "docs").glob("*.md"))}
BLOCKS = list(dict.fromkeys(chain(*map(BLOCK.findall, [README, *PAGES.values()]))))
LINES = list(dict.fromkeys(line for kind, text in BLOCKS if not kind for line in text.splitlines()))
COMMANDS = [shlex.split(line, comments=True) for line in LINES if line.startswith("normbench")]
SNIPPETS = [text for kind, text in BLOCKS if kind == "python"]
TABLE = "id,city,age,label\n" + "".join(
    f"p{n},{'Rome' if n % 3 else 'Oslo'},{'' if n == 4 else 20 + n * n % 17},{n % 2}\n"
    for n in range(24)
)
# Of a comparison that says them not.
QUICK = ("iterations=5", "theory=none", "step_sizes=[1]", "figures=[]", "normalizer=standard")
ON_A_CLUSTER = [words for words in COMMANDS if "hydra/launcher=slurm" in words]


def fewer(word):
    """Return a command's word with two numbers of a range or of a list."""
    return re.sub(r"(=\d+,\d+)(,\d+)+$", r"\1", re.sub(r"range\(0,\d+\)", "range(0,2)", word))


def test_the_readme_and_the_pages_have_commands():
    assert len(COMMANDS) > 30
    assert len(SNIPPETS) == 2


def test_the_readme_is_short_begins_with_the_melt_picture_and_links_to_files():
    assert len(README.encode()) <= 8192
    pictures = re.findall(r'(?:src|srcset)="([^"]*)"', README)
    assert pictures == [f"results/studies/gallery/melt{of}.png" for of in ("-dark", "")]
    links = {*re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README), *pictures}
    assert sorted(link for link in links if not (ROOT / link).is_file()) == []


def test_a_question_of_the_readme_is_a_title_of_the_page():
    titles = re.findall(r"^### (.+)$", PAGES["questions.md"], re.MULTILINE)
    questions = re.findall(r"\[(.+?)\]\(docs/questions\.md#(.+?)\)", README)
    assert len(questions) == 10
    assert [title for title, _ in questions if title not in titles] == []
    slugs = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title, _ in questions]
    assert slugs == [slug for _, slug in questions]


def test_make_has_every_target_that_the_readme_names():
    named = {line.split()[1] for line in LINES if line.startswith("make ")}
    for text in (README, *PAGES.values()):
        named |= set(re.findall(r"`make ([a-z-]+)", text))
    there = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert named
    assert named <= there


def test_the_version_to_cite_is_the_version():
    told = {
        re.search(rf"^version{mark} *\"?([\d.]+)", (ROOT / file).read_text(), re.MULTILINE)[1]
        for file, mark in (("CITATION.cff", ":"), ("pyproject.toml", " ="))
    }
    assert len(told) == 1


@pytest.mark.slow
def test_the_readme_shows_what_the_first_command_prints(command):
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    done = command("figures=[]")
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    assert [line for line in shown.splitlines() if line not in printed] == []


@pytest.mark.long
@pytest.mark.slow
def test_every_command_of_the_readme_and_the_pages_works(command, tmp_path):
    (tmp_path / "my.csv").write_text(re.sub(r"^[^,]*,", "", TABLE, flags=re.MULTILINE))
    (tmp_path / "mine.py").write_text(next(text for text in SNIPPETS if "class Halve" in text))
    (tmp_path / "options" / "normalizer").mkdir(parents=True)
    (tmp_path / "options" / "normalizer" / "halve.yaml").write_text("_target_: mine.Halve\n")
    # As make compare, the README's first command.
    assert command(*QUICK, "figures=[histories]").returncode == 0
    for words in COMMANDS:
        if "dashboard" in words:  # a server, which does not end
            continue
        if words in ON_A_CLUSTER:  # see tests/cluster
            continue
        more = () if {"results", "--help", "--cfg"} & set(words[1:2]) else QUICK
        more = [word for word in more if word.split("=")[0] not in shlex.join(words)]
        done = command(*map(fewer, words[1:]), *more)
        assert done.returncode == 0, f"{shlex.join(words)}\n{done.stderr}"
        explained = words[1:3] == ["results", "words"]  # the word among others
        assert explained or "failed" not in done.stdout, shlex.join(words)


@pytest.mark.slow
def test_every_snippet_of_the_readme_and_the_pages_runs(tmp_path):
    for text in SNIPPETS:
        done = forks.run([], tmp_path, program=text)
        assert done.returncode == 0, done.stderr
