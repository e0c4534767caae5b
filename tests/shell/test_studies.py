"""The studies before and after: what is kept, and which differences are shown."""

import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.shell import studies

TABLE = "scheme,best step,cost,seconds\nidentity,0.1,0.49351324646273,0.02\n"
PRINTED = "Fastest: pca in 11 iterations.\ncost 0.4935, 36.90% in 0.3 s\n"


def kept(folder, printed=PRINTED, table=TABLE, study="textbook/contours"):
    """Write a study's texts as `keep` does, and return the folder."""
    (folder / study).mkdir(parents=True)
    texts = {"printed.txt": printed, "table.csv": table, "studies.csv": "study,measured\n"}
    for name, text in texts.items():
        (folder / study / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("0.49351324646273,0.02", "0.49351324646291,7.5"),
        ("cost 0.4935, 36.90% in 0.3 s", "cost 0.4936, 36.91% in 12 s"),
        ("in 0.3 s", "in 1e-02 seconds"),
    ],
)
def test_rounding_and_seconds_are_no_difference(tmp_path, capsys, before, after):
    texts = [text.replace(before, after) for text in (PRINTED, TABLE)]
    folders = kept(tmp_path / "before"), kept(tmp_path / "after", *texts)
    assert studies.show_differences(*folders, []) == 0
    assert capsys.readouterr().out == "textbook/contours: no differences\n"


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("0.49351324", "0.49351424", "table.csv, row 1 (identity), cost: 0.49351324646273 -> "),
        ("identity,0.1", "identity,0.2", "table.csv, row 1 (identity), best step: 0.1 -> 0.2"),
        ("identity,0.1", "identity,", "table.csv, row 1 (identity), best step: 0.1 -> \n"),
        ("scheme,best step", "scheme,step", "row 1 (identity), step: <none> -> 0.1"),
        (
            "11 iterations",
            "12 iterations",
            "printed.txt, line 1: Fastest: pca in 11 iterations. ->",
        ),
        ("Fastest: pca", "Fastest: zca", "-> Fastest: zca in 11 iterations."),
        ("cost 0.4935", "cost 0.4937", "printed.txt, line 2: cost 0.4935"),
        ("cost 0.4935", "cost -0.4935", "printed.txt, line 2: cost 0.4935"),
        ("Fastest: pca in 11 iterations.\n", "", "printed.txt: -Fastest: pca in 11 iterations."),
    ],
)
def test_another_number_word_or_line_is_shown(tmp_path, capsys, before, after, shown):
    texts = [text.replace(before, after) for text in (PRINTED, TABLE)]
    folders = kept(tmp_path / "before"), kept(tmp_path / "after", *texts)
    assert studies.show_differences(*folders, ["textbook"]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("textbook/contours:\n  ")
    assert shown in printed
    assert len(printed.splitlines()) == (3 if "<none>" in shown else 2)


def test_a_study_of_one_side_alone_is_a_difference(tmp_path, capsys):
    before, after = kept(tmp_path / "before"), kept(tmp_path / "after")
    kept(before, study="notes/zca_2d")
    assert studies.show_differences(before, after, ["textbook"]) == 0
    assert studies.show_differences(before, after, []) == 1
    assert f"notes/zca_2d:\n  not in {after}\n" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="notse: no such study or folder; there are notes/zca_2d"):
        studies.show_differences(before, after, ["notse"])


def test_a_study_whose_file_is_not_there_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert studies.keep(tmp_path, ["exercises/spam"], str(tmp_path)) == 0
    assert capsys.readouterr().out == (
        f"exercises/spam: not run, {tmp_path} lacks spambase_data.csv\nall: 0.0 s\n"
    )


@pytest.mark.slow
def test_a_study_is_run_once_and_its_texts_are_kept(tmp_path):
    words = [sys.executable, "-m", "tests.shell.studies", "keep", str(tmp_path), "notes/iris_pca"]
    for _ in range(2):
        ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        assert re.fullmatch(
            r"notes/iris_pca: (\S+) s \(\S+ s of the processors\)\nall: \1 s\n", ended.stdout
        )
    (tmp_path / "notes/iris_pca/printed.txt").read_text().index("3 classes (setosa 50,")
    assert "\niris_pca,share of component 1,0.72962 +- 5e-06,0.7296245,agrees," in (
        (tmp_path / "notes/iris_pca/studies.csv").read_text()
    )
