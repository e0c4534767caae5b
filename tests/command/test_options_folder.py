"""A folder of options from anywhere: nothing in it takes minutes to be read."""

import pytest

from normbench.command.sweep import line
from normbench.datasets import UserError

LAUGHS = "a: &a [x,x]\n" + "".join(
    f"b{n}: &b{n} [{','.join([f'*b{n - 1}' if n else '*a'] * 10)}]\n" for n in range(9)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LAUGHS, "has 90 aliases"),
        ("a: 1\n" * 30_000, "has 150000 bytes, and the file of an option at most 100000"),
    ],
)
def test_a_file_of_options_that_would_take_minutes_is_refused(text, words, tmp_path):
    file = tmp_path / "dataset" / "mine.yaml"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(UserError, match=f"^{file}: {words}"):
        line._folder(str(tmp_path))


def test_a_few_aliases_and_formulas_are_taken(tmp_path):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "mine.yaml").write_text("a: &a [1]\nb: *a\nc: 2 * 3\n")
    assert line._folder(str(tmp_path)) == tmp_path
