"""The words after `normbench results`, in any order that a user types them in."""

import pytest

from normbench import names
from normbench.command.results.arguments import parse
from normbench.command.results.commands import main
from normbench.results.store.errors import ResultsError
from normbench.results.words.glossary import GLOSSARY


@pytest.mark.parametrize(
    "words",
    ["table a b --format csv", "table --format csv a b", "table a --format csv b"],
)
def test_sweeps_may_stand_before_and_behind_options(words):
    options = parse(words.split())
    assert (options.sweep, options.format) == (["a", "b"], "csv")


@pytest.mark.parametrize("words", ["table --formt csv a", "list --store x a", "studies a b"])
def test_what_is_no_sweep_is_unknown(words):
    with pytest.raises(ResultsError, match="unrecognized arguments: "):
        parse(words.split())


def test_an_option_that_is_nearly_one_is_named():
    with pytest.raises(ResultsError, match=r"--formt; .*did you mean --format$"):
        parse(["table", "--formt", "csv"])


def test_the_words_of_the_output_are_explained_in_a_line_each(capsys):
    assert main(["words"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(GLOSSARY)
    assert max(map(len, lines)) <= 110
    assert {*names.VERDICTS} - {names.FAILED} <= set(GLOSSARY)
