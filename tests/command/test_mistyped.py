"""Words of a command line that are no settings: each is answered with what to type."""

import pytest

from normbench import choices, synonyms
from normbench.choices import names, unknown_option_message
from normbench.command.config import errors, study
from normbench.command.config.mistyped import RESULTS_COMMANDS, refuse_mistyped, suggest_setting
from normbench.command.results import arguments
from normbench.command.results.commands import COMMANDS
from normbench.command.sweep import line, sweeper
from normbench.datasets import MissingFileError, UserError
from normbench.settings import ROWS, check

# What is typed, and how the answer ends.
ANSWERS = {
    "lr=0.1": "type step_sizes=0.1",
    "learning_rate=0.1": "type step_sizes=0.1",
    "eta=[0.1,1]": "type 'step_sizes=[0.1,1]'",
    "step_size=0.1": "type step_sizes=0.1",
    "epochs=20": "type iterations=20",
    "n_iter=20": "type iterations=20",
    "loss=softmax": "type cost=softmax",
    "scaler=standard": "type normalizer=standard",
    "test_size=0.25": "type dataset.test_fraction=0.25",
    "l2=0.1": "type cost.l2=0.1",
    "adam=1": "type optimizer=adam",
    "batch_size=32": "the setting is called batch here; type batch=32",
    "bs=32": "type batch=32",
    "list": "type normbench results list",
    "run": "such as normbench dataset=wine cost=multiclass_softmax",
    "compare": "such as normbench dataset=wine cost=multiclass_softmax",
    "version": "type normbench --version",
    "normalizer==standard": "type normalizer=standard",
    "normalizer = standard": "type normalizer=standard",
    "normalizer= standard": "type normalizer=standard",
    "normalizer =standard": "type normalizer=standard",
    "step_sizes=": "type 'step_sizes=${...}' in single quotes, or step_sizes=VALUE",
    "lr=0.1,1": "type 'step_sizes=[0.1,1]'",
    "step_sizes=0.1,1": "type 'step_sizes=[0.1,1]'",
    "step_sizes=7,2": "powers of ten, 'step_sizes=${decades:-7,2}' in single quotes",
    "normalizer=standard pca_sphere": "a blank ends a value; type normalizer=standard,pca_sphere",
    "normalizer=standard, pca_sphere": "type normalizer=standard,pca_sphere",
    "normalizer=standard , pca_sphere": "type normalizer=standard,pca_sphere",
    "normalizer=standard seed=1 pca_sphere pca": "type normalizer=standard,pca_sphere,pca",
    "normalizer=zscore whitening": "type normalizer=standard,pca_sphere",
    "normalizer=[standard, pca_sphere]": "type normalizer=standard,pca_sphere",
    "scaler=standard pca": "type normalizer=standard,pca",
    "dataset=iris wine": "type dataset=iris,wine",
    "iterations=10, 20": "type iterations=10,20",
    "seed=1 2 3": "type seed=1,2,3",
    "lr=0.1, 1": "type 'step_sizes=[0.1,1]'",
    "step_sizes=[0.1, 1]": "type 'step_sizes=[0.1, 1]'",
    "dataset.drop=[age, b]": "type 'dataset.drop=[age, b]'",
    "dataset.target=blood pressure": """type 'dataset.target="blood pressure"'""",
    "scaler=zscore": "type normalizer=standard",
    "normalizer = zscore": "type normalizer=standard",
    "data=my.csv": "type dataset=csv dataset.path=my.csv dataset.target=-1",
    "data.test_size=0.3": "type dataset.test_fraction=0.3",
    "plot": "type normbench results figure histories",
    "ls": "type normbench results list",
}
# What is a comparison, however near it is to one of those.
COMPARED = (
    *("step_sizes=0.1", "step_sizes=[0.1,1]", "step_sizes=[0.1],[1]", "iterations=10,100"),
    *("normalizer.ridge=0,1e-3", "normalizer.ridge=0,0.1,1", "dataset.split_seed=0,1,2"),
    *("dataset.points=50,80,200", "dataset.points=100,200", "normalizer.components=2,3"),
    *("shown_step=null", "tracking.uri=sqlite:///a=b", "hydra.launcher.n_jobs=2", "cost.l2=0,1,2"),
    *("cost.l2=0,1", "rules.diverged=10,20", "normalizer.ridge=0,1", "cost.l2=0.5,1"),
    *("iterations=1,100", "normalizer=standard,pca", "dataset.target=blood pressure"),
)
OPTIONS = {
    "normalizer=zscore": "standard",
    "normalizer=whitening": "pca_sphere",
    "normalizer=StandardScaler": "standard",
    "normalizer=scale": "standard",
    "normalizer=PCA-Sphere": "pca_sphere",
    "cost=logistic": "softmax",
    "cost=log_loss": "softmax",
    "cost=cross_entropy": "softmax",
    "cost=mse": "least_squares",
    "optimizer=sgd": "gradient_descent",
    "optimizer=gd": "gradient_descent",
    "experiment=breast_cancer": "textbook/breast_cancer",
    "experiment=mnist": "textbook/mnist",
    "experiment=old-faithful": "lecture/old_faithful",
}


@pytest.mark.parametrize("typed", ANSWERS)
def test_a_mistyped_word_is_answered_with_what_to_type(typed):
    words = typed.split(" ")
    with pytest.raises(UserError) as caught:
        refuse_mistyped(["iterations=5", *words])
    told = str(caught.value)
    assert told.startswith(words[0].partition("=")[0]), told
    assert told.endswith(ANSWERS[typed]), told


def test_what_is_compared_is_taken():
    assert refuse_mistyped(COMPARED) is None


@pytest.mark.parametrize("typed", OPTIONS)
def test_an_option_of_another_name_is_answered_with_its_name_here(typed):
    group, _, name = typed.partition("=")
    told = unknown_option_message(group, name, names(group))
    assert told.startswith(f"{typed}: is called {OPTIONS[typed]} here")
    assert told.endswith(f"; type {group}={OPTIONS[typed]}")


def test_a_class_of_ones_own_is_answered_with_how_it_is_named():
    told = unknown_option_message("normalizer", "mine.Halve", names("normalizer"))
    assert "'packages=[mine]' normalizer=chain 'normalizer.schemes=[mine.Halve]'" in told


# A name of a file of one's own, and the words that read it.
FILES = {
    "my.csv": "dataset=csv dataset.path=my.csv dataset.target=-1",
    "data/MY.CSV.gz": "dataset=csv dataset.path=data/MY.CSV.gz dataset.target=-1",
    "iris.data": "dataset=csv dataset.path=iris.data dataset.target=-1",
    "a.parquet": "dataset=parquet dataset.path=a.parquet dataset.target=-1",
    "it's.csv": """dataset=csv 'dataset.path="it'"'"'s.csv"' dataset.target=-1""",
    "[x].npz": """dataset=npz 'dataset.path="[x].npz"'""",
    "my data.svmlight": """dataset=svmlight 'dataset.path="my data.svmlight"'""",
    "my.xlsx": "save it as csv, parquet or npz",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_ones_own_is_answered_with_how_it_is_read(name):
    message = unknown_option_message("dataset", name, names("dataset"))
    assert message.startswith(f"dataset={name}: is a file")
    assert message.endswith(FILES[name])
    assert errors._explain_bare(name).endswith(FILES[name])


@pytest.mark.parametrize(
    "typed",
    [
        *("my data.csv", "dataset=my data.csv", "dataset.path=my data.csv"),
        *("dataset=a,b.csv", "dataset.path=a,b.csv"),
    ],
)
def test_a_files_name_is_quoted_where_a_shell_or_hydra_splits_it(typed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, name = typed.split(" "), typed.rpartition("=")[2]
    refuse_mistyped(words)  # no such file
    (tmp_path / name).write_text("a,b")
    with pytest.raises(UserError, match=rf"""; type (dataset=csv )?'dataset.path="{name}"'"""):
        refuse_mistyped(words)


def test_a_misspelt_option_is_answered_before_the_list_of_all():
    told = unknown_option_message("experiment", "mnits", names("experiment"))
    assert "no such option; did you mean textbook/mnist, or one of exercises/" in told


def test_all_options_of_a_group_are_a_pattern_where_any_of_them_can_be_compared():
    for group in ("normalizer", "optimizer", "model"):
        told = unknown_option_message(group, "all", names(group))
        assert told == f"{group}=all: is a pattern here; type '{group}=glob(*)'"
    assert "choose one of breast_cancer" in unknown_option_message(
        "dataset", "all", names("dataset")
    )


@pytest.mark.parametrize(
    ("value", "last"), [("0..6", 7), ("0...6", 7), ("0-6", 7), ("0:6", 7), ("0..", 0), ("a-b", 0)]
)
def test_a_range_is_answered_with_how_it_is_written(value, last):
    with pytest.raises(UserError) as told:
        check("dataset.split_seed", value)
    typed = f"; for 0 to {last - 1} type 'dataset.split_seed=range(0,{last})'"
    assert str(told.value).endswith(typed if last else "0 or more")


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        (["--dataset", "iris"], "dataset=iris"),
        (["--dataset=iris"], "dataset=iris"),
        (["--lr", "0.1"], "step_sizes=0.1"),
        (["--test-fraction", "0.25"], "dataset.test_fraction=0.25"),
        (["--iterations"], "iterations=VALUE"),
    ],
)
def test_a_flag_that_is_a_setting_is_answered_without_dashes(words, typed):
    with pytest.raises(UserError, match=f"without dashes; type {typed}$"):
        line.run(words)
    assert suggest_setting("--zzz", None) == ""


def test_a_name_that_is_no_settings_is_told_before_hydra_starts(monkeypatch):
    monkeypatch.setattr("normbench.command.sweep.hydras_own.hydra_session", None)
    with pytest.raises(UserError, match=r"^lrr: no such setting; "):
        line.run(["iterations=5", "lrr=1"])
    with pytest.raises(TypeError):  # a folder of the user's own options may have it
        line.run(["lrr=1", "--config-dir", "."])


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


def test_the_words_of_results_are_those_that_there_are():
    assert set(RESULTS_COMMANDS) == set(COMMANDS) - {"dashboard"}


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


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("zscore", "type normalizer=standard"),
        ("lr", "type step_sizes=VALUE"),
        ("adam", "write optimizer=adam"),
    ],
)
def test_a_word_without_a_value_is_answered_with_what_to_type(typed, answer):
    assert errors._explain_unread(typed, "").endswith(answer)
