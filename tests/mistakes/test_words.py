"""Words that are no settings are answered with what to type, before Hydra begins."""

import shlex

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from normbench import choices, synonyms
from normbench.choices import names, unknown_option_message
from normbench.command.config import hydra_settings, study
from normbench.command.config.errors import user_message
from normbench.command.results import arguments
from normbench.command.results.commands import COMMANDS
from normbench.command.sweep import line, sweeper
from normbench.datasets import MissingFileError, UserError
from normbench.settings import ROWS, check
from normbench.synonyms import spell_text
from tests.mistakes.words import ANSWERS, COMPARED, FILES, OPTIONS, TEXTS, UNREAD


class BegunError(Exception):
    """The words are taken: a comparison begins."""


@pytest.fixture
def answer(monkeypatch, tmp_path):
    """Return a function of the words of a command, which returns their answer, empty for none."""

    def begin(folder):
        raise BegunError

    def answer(words):
        try:
            line.run(words)
        except UserError as error:
            return str(error)
        except BegunError:
            return ""
        return None

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("normbench.command.sweep.hydras_own.hydra_session", begin)
    return answer


@pytest.mark.parametrize("typed", ANSWERS)
def test_words_are_answered_with_what_to_type(answer, typed):
    told = answer(["iterations=5", *typed.split(" ")])
    assert told.startswith(typed.split(" ")[0].partition("=")[0])
    assert told.endswith(ANSWERS[typed])
    assert "\n" not in told


def test_what_is_compared_is_taken(answer):
    assert answer(COMPARED) == ""
    assert answer(["lrr=1", "--config-dir", "."]) == ""  # a folder of one's own options may have it


def test_long_words_are_cut(answer):
    assert answer([f"a=[{'x' * 500}"]).startswith(f"a=[{'x' * 197}...")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Could not override 'lrr'.\nDid you", "lrr: no such setting; normbench --cfg job lists"),
        ("Error merging override a=1\nmore", "a=1: is another kind of value than the setting;"),
        ("Value 'x'\n    full_key: a.b\n", "a.b: Value 'x'; normbench --cfg job shows the sett"),
        ("Hydra says.\nYou may do so", "Hydra says. you may do so"),
        ("Could not find 'normalizer/x'", "normalizer=x: "),
        ("Could not load 'hydra/launcher/y'", "hydra/launcher=y: "),
    ],
)
def test_hydras_errors_are_told_in_one_line(text, told):
    message = user_message(HydraException(text))
    assert message.startswith(told)
    assert "\n" not in message


def test_jobs_side_by_side_and_settings_of_a_queue_are_taken():
    for jobs in (1, 64, -1):
        hydra_settings._check_launcher({"_target_": hydra_settings.JOBLIB, "n_jobs": jobs})
    for name, value, most in (("timeout_min", 5, 5), ("partition", "a.b+c-d_e@f", None)):
        hydra_settings._check_queue_setting(name, value, most)


@pytest.mark.parametrize("typed", OPTIONS)
def test_an_option_of_another_name_is_answered_with_its_name_here(typed):
    group, _, name = typed.partition("=")
    told = unknown_option_message(group, name, names(group))
    assert told.startswith(f"{typed}: is called {OPTIONS[typed]} here")
    assert told.endswith(f"; type {group}={OPTIONS[typed]}")


def test_a_class_of_ones_own_is_answered_with_how_it_is_named():
    told = unknown_option_message("normalizer", "mine.Halve", names("normalizer"))
    assert "'packages=[mine]' normalizer=chain 'normalizer.schemes=[mine.Halve]'" in told


def test_a_misspelt_option_is_answered_before_the_list_of_all():
    told = unknown_option_message("experiment", "mnits", names("experiment"))
    assert "no such option; did you mean textbook/mnist, or one of exercises/" in told


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_ones_own_is_answered_with_how_it_is_read(answer, name):
    for told in (answer([name]), unknown_option_message("dataset", name, names("dataset"))):
        assert told.endswith(FILES[name])


@pytest.mark.parametrize(
    "typed",
    [
        *("my data.csv", "dataset=my data.csv", "dataset.path=my data.csv"),
        *("dataset=a,b.csv", "dataset.path=a,b.csv"),
    ],
)
def test_a_files_name_is_quoted_where_a_shell_or_hydra_splits_it(answer, typed, tmp_path):
    name = typed.rpartition("=")[2]
    remedy = f"""'dataset.path="{name}"'"""
    assert remedy not in answer(typed.split(" "))  # no such file
    (tmp_path / name).write_text("a,b")
    assert remedy in answer(typed.split(" "))


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_can_be_read_as_the_answer_says(answer, text):
    remedy = spell_text("dataset.path", text)
    if text in UNREAD:
        assert answer([f"dataset.path={text}"]).endswith(f"quoted twice: {remedy}")
    (override,) = OverridesParser.create().parse_overrides(shlex.split(remedy))
    assert override.value() == text


@pytest.mark.parametrize(
    ("value", "last"), [("0..6", 7), ("0-6", 7), ("0:6", 7), ("0..", 0), ("a-b", 0)]
)
def test_a_range_is_answered_with_how_it_is_written(value, last):
    with pytest.raises(UserError) as told:
        check("dataset.split_seed", value)
    typed = f"; for 0 to {last - 1} type 'dataset.split_seed=range(0,{last})'"
    assert str(told.value).endswith(typed if last else "0 or more")


def test_the_version_is_told(capsys):
    line.run(["--version"])
    assert capsys.readouterr().out.startswith("normbench 0.")


def test_every_synonym_stands_for_something_that_exists_and_for_one_thing_alone():
    groups = {"hydra.launcher.n_jobs", "hydra.sweep.dir", "dataset.path"}
    groups |= {"normalizer.components", "normalizer.ridge", "model.hidden", "model.activation"}
    assert set(synonyms.SETTINGS) <= set(ROWS) | groups
    for group, table in synonyms.OPTIONS.items():
        assert set(table) <= set(names(group)), group
        assert not {word for words in table.values() for word in words.split()} & set(names(group))
    assert set(synonyms.COMMAND_SYNONYMS) <= set(COMMANDS)
    arguments._parser()
    assert set(synonyms.FLAG_SYNONYMS) <= arguments._Parser.flags
    tables = (
        synonyms.SETTINGS,
        *synonyms.OPTIONS.values(),
        synonyms.COMMAND_SYNONYMS,
        synonyms.FLAG_SYNONYMS,
    )
    for table in tables:
        words = [word for others in table.values() for word in others.split()]
        assert len(words) == len(set(words))
        assert all(word.isalnum() and word == word.lower() for word in words)


class FakeHydra:
    """Refuses data that are not there, and keeps what else it was to run."""

    def __init__(self):
        self.runs = []

    def multirun(self, config, job, overrides):
        if "dataset=breast_cancer" not in overrides:
            raise MissingFileError("data_dir=x: has no file.csv")
        self.runs.append((overrides, list(sweeper.Sweep.arguments)))


def test_a_study_without_its_data_runs_on_others_and_says_so(capsys):
    hydra, words = FakeHydra(), ["experiment=textbook/breast_cancer", "seed=1"]
    line._compare(hydra, words, words)
    ((overrides, typed),) = hydra.runs
    assert overrides == typed
    assert overrides[:3] == [*words, "dataset=breast_cancer"]
    told = capsys.readouterr().err
    assert "has no file.csv" in told
    assert "its numbers are not those of its source: dataset=breast_cancer" in told
    assert overrides[-2:] == [*study.WITHOUT_SOURCE]  # its source does not speak of these data
    for others in (["experiment=lecture/mnist_plane"], ["dataset=mnist"], []):
        with pytest.raises(MissingFileError):
            line._compare(hydra, others, others)
    assert study.stand_in_overrides([*words, "dataset=wine"]) == ()


@pytest.mark.parametrize("name", choices.names("experiment"))
def test_other_data_stand_in_for_each_that_a_textbook_study_downloads(name):
    if not name.startswith("textbook/"):
        return
    dataset = next(
        choice["override /dataset"]
        for choice in choices.options("experiment", name)["defaults"]
        if "override /dataset" in choice
    )
    is_remote = "data_dir" in choices.options("dataset", dataset)
    assert is_remote == bool(study.stand_in_overrides([f"experiment={name}"]))
