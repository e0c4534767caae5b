"""What a command line that cannot be read is answered with."""

import shlex

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from normbench.command.config import errors, hydra_settings, mistyped
from normbench.command.config.grid import GridEntry, notes_on_overridden
from normbench.command.sweep import line
from normbench.datasets import UserError
from normbench.synonyms import spell_text


@pytest.mark.parametrize(
    ("override", "answer"),
    [
        ("step_sizes=[1,", "its brackets do not close; close them, or, for a text"),
        ("a={b", "for a text with a bracket, type 'a=\"{b\"'"),
        ("10]", "is no setting, which is written NAME=VALUE; normbench --help"),
        ("s={decades:-3,0}", "in single quotes: 's=${decades:-3,0}'"),
        ("s=${decades:-3,0},{decades:1,2}", "'s=${decades:-3,0},${decades:1,2}'"),
        ("s=${decades:-3,0} x", "cannot be read (why); a value with brackets"),
        ("a=1,", "begins or ends with a comma; type a=1"),
        (",a=[1]", "begins or ends with a comma; type 'a=[1]'"),
        ("normalizer:standard", "is no setting; write normalizer=standard"),
        ("standard", "is no setting; write normalizer=standard"),
        ("cost:standard", "is no setting, which is written NAME=VALUE; normbench --help"),
        ("zscore", "is no setting, which is written NAME=VALUE, and is called standard here"),
        ("lr", "and is called step_sizes here; type step_sizes=VALUE"),
        ("resluts", "which is written NAME=VALUE; normbench --help shows what there is; did you"),
        ("a=b=c", "a value with such a character is quoted twice: 'a=\"b=c\"'"),
        ("a=é~/b (1).csv", "such a character is quoted twice: 'a=\"é~/b (1).csv\"'"),
        ("a='b=c", "cannot be read (why)"),
        ("a=é,b", "cannot be read (why)"),
        ("a=[é;1]", "a list has commas; type 'a=[é,1]'"),
        ("a=[é,1]", "cannot be read (why); a value with brackets or a dollar is quoted"),
        ("cost=log loss", "is called softmax here"),
        ("textbook/mnist", "is no setting; write experiment=textbook/mnist"),
        ("batch_normalization", "type experiment=textbook/batch_normalization"),
        ("patients.csv", "is a file, and -1 is its last column; type dataset=csv dataset.path=pat"),
    ],
)
def test_an_override_that_cannot_be_read_is_answered_with_how_to_write_it(override, answer):
    assert answer in errors._explain_unread(override, "why")


# Names of files, and of columns, that Hydra's grammar or a shell reads as something else.
NAMES = ["é.csv", "~/a.csv", "a#b", "a&b", "a(b", "a;b", "a<b", "a)b", "it's.csv", "[x].csv"]
NAMES += ["a=b.csv", 'a"b.csv', "{x}.csv", "a (1)!.csv", "é\\"]


@pytest.mark.parametrize("value", NAMES)
def test_a_path_can_be_read_as_the_answer_says(value):
    with pytest.raises(UserError) as error, errors.user_errors(f"dataset.path={value}"):
        OverridesParser.create().parse_overrides([f"dataset.path={value}"])
    typed = shlex.split(str(error.value).rpartition("quoted twice: ")[2])
    (override,) = OverridesParser.create().parse_overrides(typed)
    assert override.value() == value


@pytest.mark.parametrize("name", [*NAMES, "my data.csv", "a,b.csv", "a$b.csv", "a\\b.csv", "a.csv"])
def test_a_text_in_a_remedy_is_what_was_meant(name):
    (typed,) = shlex.split(spell_text("dataset.path", name))
    (override,) = OverridesParser.create().parse_overrides([typed])
    assert override.value() == name


def test_a_long_word_is_cut():
    short, long = "x" * 399, "x" * 400
    assert errors._plain(f"a  {short}\nb") == f"a {short} b"
    assert errors._plain(f"a {long} b") == f"a {'x' * 200}... b"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Could not override 'lrr'.\nDid you", "lrr: no such setting; normbench --cfg job lists"),
        ("Error merging override a=1\nmore", "a=1: is another kind of value than the setting;"),
        ("Value 'x'\n    full_key: a.b\n", "a.b: Value 'x'; normbench --cfg job shows the sett"),
        ("Hydra says.\nYou may do so", "Hydra says. you may do so"),
        ("Could not find 'normalizer/x'", "normalizer=x: "),
        ("Could not load 'hydra/launcher/y'", "hydra/launcher=y: "),
    ],
)
def test_hydras_errors_are_told_in_one_line(text, answer):
    told = errors.user_message(HydraException(text))
    assert told.startswith(answer)
    assert "\n" not in told


def test_a_users_mistake_is_found_behind_other_errors():
    outer, inner = HydraException("outer"), UserError("x=1: wrong")
    outer.__cause__ = KeyError("between")
    outer.__cause__.__context__ = inner
    assert errors.user_message(outer) == "x=1: wrong"
    assert errors.user_message(ValueError("a bug")) is None


def raised(error):
    with pytest.raises(UserError) as told, errors.user_errors("a=1"):
        raise error
    return str(told.value)


def test_any_error_on_the_command_line_is_the_users():
    assert raised(UserError("b=2: wrong")) == "b=2: wrong"
    assert raised(ValueError("odd. See https://hydra.cc/x")) == (
        f"a=1: cannot be read (odd.); {errors.HELP}"
    )
    yaml_error = ValueError("x")
    yaml_error.problem_mark = type("Mark", (), {"name": "a.yaml", "line": 4})
    yaml_error.problem = "a tab"
    assert raised(yaml_error) == "a.yaml, line 5: is no YAML (a tab); correct the file"


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["a", "=", "b"], "a = b: no space stands beside an equals sign; type a=b"),
        (["a", "=b", "c"], "a =b: no space stands beside an equals sign; type a=b"),
        (["a=", "b"], "a= b: no space stands beside an equals sign; type a=b"),
        (["a", "=", "b c"], "type 'a=b c'"),
        (["a=1", "=b"], None),
        (["a=", "b=1"], None),
        (["=", "b"], None),
        (["a"], None),
    ],
)
def test_blanks_beside_an_equals_sign_are_answered(words, answer):
    if answer is None:
        mistyped._refuse_spaces(words)
        return
    with pytest.raises(UserError) as told:
        mistyped._refuse_spaces(words)
    assert str(told.value).endswith(answer)


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ("0.1,1", "type 'step_sizes=[0.1,1]'"),
        ("1e-3,1", "type 'step_sizes=[1e-3,1]'"),
        ("1,2,3", "type 'step_sizes=[1,2,3]'"),
        ("7,2", "type 'step_sizes=[7,2]', or, for powers of ten, 'step_sizes=${decades:-7,2}'"),
        ("-7,2", "are a list; for powers of ten, 'step_sizes=${decades:-7,2}' in single quotes"),
        ("7,-2", "are a list; for powers of ten, 'step_sizes=${decades:-7,-2}' in single quotes"),
        ("[1],[2]", None),
        ("0.1", None),
        ("0,0.5", None),
    ],
)
def test_several_step_sizes_are_a_list(value, answer):
    if answer is None:
        mistyped._refuse_step_sizes(value)
        return
    with pytest.raises(UserError) as told:
        mistyped._refuse_step_sizes(value)
    assert str(told.value).endswith(answer) or answer + " in single" in str(told.value)


def test_what_a_later_word_replaces_does_not_count():
    assert notes_on_overridden(["a=1", "b=1", "--flag", "a=2", "c", "c"]) == [
        "a=1: does not count; a=2 comes after it"
    ]
    assert GridEntry("a.b", ("1", "2")).overrides == ["a.b=1", "a.b=2"]
    assert (GridEntry("a.b", ()).group, GridEntry("seed", ()).group) == ("a", "seed")


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["~normalizer"], "~normalizer: takes away what a job needs; write NAME=VALUE instead"),
        (["+seed=1"], r"\+seed=1: adds a setting that nothing reads; write seed=1 for a setting"),
        (["++seed=1"], "write seed=1 for"),
        (["zzz=1"], "zzz: no such setting"),
        (["experiment=a,b"], "experiment=a,b: each study is a comparison of its own"),
        (["normalizer=null"], "normalizer=null: names no option; choose one of "),
        (["normalizer=standard,[1]"], "names no option"),
        (["tracking=true"], "tracking=true: names no option; choose one of .*, or several with"),
    ],
)
def test_words_that_mean_nothing_to_a_comparison_are_refused(words, answer):
    with pytest.raises(UserError, match=answer):
        line._check(words, of_files=True)


def test_words_of_a_comparison_are_taken():
    words = ["seed=1,2", "normalizer=standard,pca", "+hydra.x=1", "experiment=notes/iris_pca"]
    words += ["hydra.sweep.dir=x", "dataset@here=iris"]
    assert line._check(words, of_files=True) is line._check(["zzz=1"], of_files=False) is None


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["-cn"], "-cn: there is no such flag; normbench --help"),
        (["--multirum"], "did you mean --multirun"),
        (["--seed=3"], "type seed=3$"),
        (["--seed", "3"], "type seed=3$"),
    ],
)
def test_a_flag_that_there_is_not_is_refused(words, answer):
    line._parser()
    with pytest.raises(UserError, match=answer):
        line._refuse_flags(words)


@pytest.mark.parametrize("word", ["seed=1,2", "normalizer=standard,zca", "seed=range(0,3)"])
def test_the_config_of_one_job_has_one_value_of_each_setting(word):
    line._refuse_swept(["seed=1", "step_sizes=[1,2]"])
    with pytest.raises(UserError, match="--cfg shows the config of one job; give one value"):
        line._refuse_swept(["cost=softmax", word])


def test_flags_that_there_are_and_dashes_alone_are_taken():
    line._parser()
    flags = ["--cfg", "job", "-m", "-", "--", "seed=1", "--config-dir=x"]
    assert line._refuse_flags(flags) is None


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ([], "takes one word, install=SHELL or uninstall=SHELL"),
        (["install=bash", "install=zsh"], "takes one word"),
        (["install=csh"], "where SHELL is bash, fish, zsh"),
        (["query=fish"], "is what a shell asks once it is installed; write install=fish"),
        (["install=bash"], None),
        (["uninstall=zsh"], None),
    ],
)
def test_completion_is_installed_or_removed_for_one_shell(words, answer, monkeypatch):
    monkeypatch.delenv("COMP_LINE", raising=False)
    if answer is None:
        line._check_completion(words)
        return
    with pytest.raises(UserError, match=answer):
        line._check_completion(words)
    monkeypatch.setenv("COMP_LINE", "normbench ")
    if words == ["query=fish"]:
        line._check_completion(words)


def test_an_option_file_is_bounded_in_bytes_and_aliases(tmp_path):
    (tmp_path / "normalizer").mkdir()
    file = tmp_path / "normalizer" / "mine.yaml"
    file.write_text("x" * 100_000)
    assert line._folder(str(tmp_path)) == tmp_path
    file.write_text("x" * 100_001)
    with pytest.raises(UserError, match="has 100001 bytes, and the file of an option at most"):
        line._folder(str(tmp_path))
    file.write_text("a: &a 1\n" + "b: *a\n" * 20)
    line._folder(str(tmp_path))
    file.write_text("a: &a 1\n" + "b: *a\n" * 21)
    with pytest.raises(UserError, match=r"has 21 aliases \(\*name\), and 20 at most may be"):
        line._folder(str(tmp_path))
    file.write_text("b: *a\n" * 21)  # without an anchor there is nothing to repeat
    line._folder(str(tmp_path))
    assert line._folder(None) is None
    with pytest.raises(UserError, match="is no folder; name one that holds options"):
        line._folder(str(file))


def launcher(**settings):
    return {"_target_": hydra_settings.JOBLIB, **settings}


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"_target_": hydra_settings.BASIC}, None),
        ({"_target_": hydra_settings.QUEUE}, None),
        ({"_target_": "other.Launcher"}, "is no launcher of a comparison's; write hydra/launcher"),
        ("basic", "hydra.launcher._target_=basic: is no launcher"),
        (launcher(n_jobs=1), None),
        (launcher(n_jobs=64), None),
        (launcher(n_jobs=-1), None),
        (launcher(n_jobs=0), "or -1 for a job a core"),
        (launcher(n_jobs=100_000), "hydra.launcher.n_jobs=100000: .*, or -1 for a job a core"),
        (launcher(n_jobs=2, verbose=5), "hydra.launcher.verbose=5: cannot be set; of a launcher's"),
        (launcher(n_jobs=2, n_jobz=5), "hydra.launcher.n_jobz=5: cannot be set; of a launcher's"),
        (
            {"_target_": hydra_settings.BASIC, "n_jobs": 2},
            "hydra.launcher.n_jobs=2: jobs run one after the other; add hydra/launcher=joblib",
        ),
    ],
)
def test_a_launcher_is_one_of_three_with_a_number_of_jobs(given, answer):
    if answer is None:
        hydra_settings._check_launcher(given)
        return
    with pytest.raises(UserError, match=answer):
        hydra_settings._check_launcher(given)


@pytest.mark.parametrize(
    ("name", "value", "maximum", "is_right"),
    [
        *(("l.timeout_min", 5, 5, True), ("l.timeout_min", 6, 5, False)),
        *(("l.timeout_min", 0, 5, False), ("l.timeout_min", None, 5, False)),
        *(("l.mem_gb", None, 5, True), ("l.partition", None, None, True)),
        *(("l.partition", "a.b+c-d_e@f", None, True), ("l.partition", "-a", None, False)),
        *(("l.partition", "a b", None, False), ("l.partition", "\u00e9", None, False)),
        *(("l.partition", "", None, False), ("l.other", None, None, True)),
    ],
)
def test_settings_of_a_queue_are_numbers_up_to_a_maximum_or_names(name, value, maximum, is_right):
    if is_right:
        hydra_settings._check_queue_setting(name, value, maximum)
        return
    with pytest.raises(UserError, match=f"^{name}"):
        hydra_settings._check_queue_setting(name, value, maximum)
