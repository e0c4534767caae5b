"""What comes from outside, where it enters a terminal, a table, a path or a page."""

import io
import re
import subprocess
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from normbench.command.results.commands import main
from normbench.command.sweep.progress import Progress
from normbench.results.answer import tables
from normbench.results.figures import drawing
from normbench.results.report import page as report
from normbench.results.safe import clean
from normbench.results.store.runs import load
from normbench.results.studies import study_table as studies
from tests import door

ESCAPES = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202ertl\u2066\r\x08"
MARKUP = "<svg onload=x>[x](javascript:y)![y](http://h/y)|`\n# head_line_\n- item"
HOSTILE = ESCAPES + MARKUP
SHORT = "\x1b]0;o\x07\u202e\n|<svg onload=x>[x](javascript:y)"
# Signs of numbers in Arabic and other scripts, joiners of letters, and marks of hieroglyphs.
FORMATS = {
    *range(0x600, 0x606),
    0x6DD,
    0x70F,
    0x890,
    0x891,
    0x8E2,
    0x200C,
    0x200D,
    0x110BD,
    0x110CD,
}
FORMATS |= set(range(0x13430, 0x13440))


def unseen(text):
    """Return the marks of a text that nobody sees, or that move what others see."""
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return [
        mark
        for mark in text
        if mark not in "\n\t" and unicodedata.category(mark) in kinds and ord(mark) not in FORMATS
    ]


def test_every_mark_that_is_not_seen_is_written_out():
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    assert unseen(everything)
    assert unseen(clean.escape_invisible(everything)) == []
    assert clean.escape_invisible("\x1b[31m\n") == "\\x1b[31m\n"
    kept = (
        "a\tb\n\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u00e9 \U0001f469\u200d\U0001f52c"
    )
    assert clean.escape_invisible(kept) == kept
    clean.escape_invisible(everything).encode()


@pytest.mark.parametrize(
    "password", ["s3cret", "a@b", "a/b?c#d", "a%40b", "a'b\\", "a:b", "12345", "x,y"]
)
def test_a_password_of_a_uri_is_blotted(password):
    for template, host in {
        "at postgresql://me:{}@host/db, twice: //you:{}@host.": "host",
        "tracking.uri=http://me:{}@127.0.0.1:5000/x?mail=a@b": "127.0.0.1",
        "['redis://:{}@[::1]/0', \"sftp://me:{}@host/a@b.csv\"]": "host/a@b.csv",
        "a=https://me:{0}@host/x.csv,https://me:{0}@host/y.csv": "host/x.csv,https",
    }.items():
        text = template.format(*[password] * 2)
        blotted = template.format(*["***"] * 2)
        assert clean.blot(text) == clean.blot(blotted) == blotted
        assert host in blotted
        assert clean.sanitize(text) == clean.line(text) == blotted
        assert clean.recorded_line(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:5000/#/experiments/1?mail=someone@example.org",
        "https://host:8080/data/x@v2.csv",
        "postgresql://me@host/db",
        "http://[::1]:5000",
        "sqlite:////home/me/a:b@c.db",
        "MY_TOKEN=1e-05 password=pca_sphere a // b: c@d",
        "see http://host:5000, or write to someone@example.org",
    ],
)
def test_nothing_but_a_password_of_a_uri_is_blotted(text):
    assert clean.sanitize(text) == text


def test_a_long_text_is_blotted_in_linear_time():
    for text in ("://a:" * 50_000, "//a:b@" * 50_000, "//" * 100_000, "x" * 1_000_000):
        clean.blot(text)


def test_a_line_is_one():
    assert clean.line("a\nb\r\n\tc") == "a b c"
    assert clean.line("a\u2028b\x85c") == "a b c"
    assert clean.line("plain, with  blanks") == "plain, with  blanks"


@pytest.mark.parametrize(
    "text",
    ["../../X", "/etc/passwd", "..", ".", "", "a/../../b", "a\0b", "C:\\x", "x" * 300, "-\n"],
)
def test_a_name_stays_in_its_folder(text, tmp_path):
    name = clean.name(text)
    file = tmp_path / name
    assert file.parent == tmp_path
    assert file.resolve().parent == tmp_path.resolve()
    file.write_text("")
    assert clean.name(name) == name


def test_a_long_name_is_cut():
    assert clean.name("x" * 300) == "x" * 150
    assert clean.name("x" * 300, 9) == "x" * 9
    assert clean.name("...") == "data"


def test_both_streams_are_guarded_once(monkeypatch):
    streams = {name: io.StringIO() for name in ("stdout", "stderr")}
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)
    for _ in range(2):
        clean.guard()
        for name, stream in streams.items():
            guarded = getattr(sys, name)
            assert isinstance(guarded, clean.Stream)
            assert guarded.wrapped is stream
    monkeypatch.setattr(sys, "stderr", None)
    clean.guard()
    assert sys.stderr is None


GUARDED = """
import logging, sys, warnings
from normbench.results.safe import clean
clean.guard()
logging.basicConfig()
logging.getLogger("mlflow").warning("at %s", sys.argv[1])
warnings.warn(sys.argv[1])
sys.stdout.writelines(["View run at http://me:s3c", "ret@host/\\n"])
raise ValueError(sys.argv[1])
"""


def test_loggers_warnings_and_tracebacks_are_guarded():
    process = subprocess.run(
        [sys.executable, "-c", GUARDED, "http://me:s3cret@host/"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.stdout == "View run at http://me:***@host/\n"
    assert "s3cret" not in process.stderr
    for text in ("WARNING:mlflow:at ", "UserWarning: ", "ValueError: "):
        assert f"{text}http://me:***@host/" in process.stderr


def test_markdown_has_no_markup():
    text = clean.markdown(HOSTILE)
    assert "\n" not in text
    assert "<" not in text
    assert unseen(text) == []
    for mark in "[]`|#!*":
        assert f"\\{mark}" in clean.markdown(mark)
    assert clean.markdown("pca_sphere >=0.1") == "pca_sphere >=0.1"
    assert clean.markdown("_x_ a&lt;b") == "\\_x\\_ a&amp;lt;b"
    assert clean.code("normbench a_b=[1]") == "`normbench a_b=[1]`"
    for text in ("a`b", "<svg onload=x>"):
        assert clean.code(text) == clean.markdown(text)


def test_a_stream_shows_what_it_is_given():
    under = io.StringIO()
    stream = clean.Stream(under)
    print(HOSTILE, file=stream, flush=True)
    assert unseen(under.getvalue()) == []
    assert under.getvalue() == clean.sanitize(HOSTILE) + "\n"


def test_the_bar_of_a_job_goes_past_the_cleaning(monkeypatch):
    under = io.StringIO()
    under.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", clean.Stream(under))
    monkeypatch.setenv("NO_COLOR", "1")
    progress = Progress(f"job {ESCAPES}")
    progress.begin(10)
    for iteration in range(11):
        progress(iteration)
    progress.end("done")
    assert "\r" in under.getvalue()
    assert "\x1b[31m" not in under.getvalue()
    moves = re.sub(r"\x1b\[[?\d]*[A-Zhl]", "", under.getvalue())  # of the cursor, by the bar
    assert set(unseen(moves)) <= {"\r", "\n"}


WORDS = ("normalizer", "reason", "explanation", "normalizer.ridge", "verdict")


@pytest.fixture(scope="module")
def hostile(three, tmp_path_factory):
    """The records of three schemes, in which another has written whatever he liked."""
    folder = tmp_path_factory.mktemp("hostile") / "one" / "two"
    records = {}

    def changed(texts):
        return {key: text + SHORT * (key in WORDS) for key, text in texts.items()}

    for key, job in three.sweep.records.items():
        scheme, *steps = (
            replace(run, name=run.name + SHORT, tags=changed(run.tags))
            for run in (job.scheme, *job.steps)
        )
        params = changed(job.params)
        experiment = "../" + SHORT + job.experiment
        job = replace(job, experiment=experiment, params=params, scheme=scheme, steps=steps)
        records[key] = job
    comparison = door.keep(folder / "outputs", "X", "normbench" + SHORT, records)
    sweep = load(comparison.home, "X")
    return SimpleNamespace(home=str(comparison.home), folder=folder, sweep=sweep)


# The labels are longer than a panel is wide.
@pytest.mark.filterwarnings("ignore:constrained_layout not applied:UserWarning")
@pytest.mark.slow
def test_results_write_in_their_folder_alone(hostile, monkeypatch, capsys):
    monkeypatch.chdir(hostile.folder)
    root = hostile.folder.parent.parent
    before = set(root.rglob("*"))
    for words in ("show", "table --format csv --out"):
        out = ["tables"] if words.endswith("--out") else []
        assert main([*words.split(), *out, "--folder", hostile.home]) == 0
    written = set(root.rglob("*")) - before
    places = (hostile.folder / "outputs", hostile.folder / "tables")
    assert any(file.suffix == ".svg" for file in written)
    others = [f for f in written if not any(f.is_relative_to(place) for place in places)]
    assert others == []
    for file in written:
        if file.suffix in (".csv", ".html", ".svg"):
            assert unseen(file.read_text()) == [], file
    assert unseen(clean.sanitize(capsys.readouterr().out)) == []


def test_figures_of_several_experiments_stay_in_their_folder(hostile, tmp_path):
    others = hostile.sweep.runs.assign(experiment="../../../other")
    both = pd.concat([hostile.sweep.runs, others], ignore_index=True)
    folder = tmp_path / "a" / "b"
    written = drawing.write(replace(hostile.sweep, runs=both), folder, ["step_sizes"])
    files = [file for group in written.values() for file in group]
    assert len(files) == 4
    assert {file.resolve().parent for file in files} == {folder.resolve()}


def test_what_is_read_is_clean(hostile):
    told = [text for column in hostile.sweep.runs for text in hostile.sweep.runs[column]]
    for text in (*told, *hostile.sweep.runs.columns):
        if isinstance(text, str):
            assert unseen(text) == []
            assert "\n" not in text


def test_a_table_keeps_its_rows_and_has_no_markup(hostile):
    table = tables.summary(hostile.sweep)
    lines = tables.markdown(table).splitlines()
    assert len(lines) == 2 + len(table)
    bars = {len(line.replace("\\|", "").split("|")) for line in lines}
    assert bars == {2 + table.shape[1]}
    text = tables.markdown(table)
    assert "<svg" not in text
    assert "](javascript" not in text.replace("\\](", "")
    assert len(tables.text(table).splitlines()) == 1 + len(table)
    assert len(tables.latex(table).splitlines()) == 6 + len(table)


def test_a_page_has_no_element_of_anothers(hostile):
    page = report.render(hostile.sweep, {})
    assert "<svg onload" not in page
    assert "javascript:" in page  # as text
    assert unseen(page) == []


def test_a_command_that_is_none_is_no_study():
    assert studies._study("normbench 'experiment=textbook/mnist") == ""
    assert studies._study("normbench experiment=textbook/mnist") == "textbook/mnist"


def test_a_password_in_a_path_of_the_results_is_gone():
    assert clean.without_user("http://me:a b@c/d@h:5000/x") == "http://h:5000/x"
    assert Path(clean.name("x")) == Path("x")
