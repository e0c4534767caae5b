"""The mutants are what they are said to be, and a test that notices nothing is told from others."""

import ast
import json
import os
import subprocess
import sys

import pytest

from tests.mutation.__main__ import ROOMS, Room, cases, judged
from tests.mutation.lines import Lines
from tests.mutation.mutants import of
from tests.wheel import ROOT

TEXT = '''"""Of 3 words."""


def mean(values: list[float], least: int = 2) -> float:
    """Return it, or 0."""
    if not values:
        return 0.0
    if len(values) < least:
        raise ValueError(f"{len(values) + 1}: too few")
    return -sum(values) / (len(values) - 1)
'''


def test_each_mutant_changes_one_line_and_parses():
    for mutant in of(TEXT):
        ast.parse(mutant.text)
        pairs = list(zip(TEXT.splitlines(), mutant.text.splitlines(), strict=True))
        (changed,) = [n for n, (one, other) in enumerate(pairs, 1) if one != other]
        assert changed == mutant.line
        assert (mutant.before, mutant.after) == tuple(text.strip() for text in pairs[changed - 1])


def test_the_kinds_of_mistakes():
    after = [mutant.after for mutant in of(TEXT)]
    assert "def mean(values: list[float], least: int = 3) -> float:" in after
    assert "if len(values) <= least:" in after
    assert "if (not (len(values) < least)):" in after
    assert "return sum(values) / (len(values) - 1)" in after
    assert "return -mean(values) / (len(values) - 1)" in after
    assert "return -sum(values) * (len(values) - 1)" in after
    assert "return -sum(values) / (len(values) + 1)" in after
    assert "return -sum(values) / (len(values) - 2)" in after
    assert {"if values:", "if (not (not values)):", "return 1.0"} <= set(after)
    assert len(after) == 11  # nothing of annotations, errors' words and docstrings


def test_what_numpy_takes_for_the_same_is_no_mutant():
    assert [mutant.after for mutant in of("x.sort(axis=-1)\nx.reshape(-1, 2)\n")] == [
        "x.sort(axis=0)",
        "x.reshape(-1, 3)",
    ]


def test_copies_checks_and_imports_for_types_are_no_mutants():
    types = "if TYPE_CHECKING:\n    import numpy\n"
    assert of(f"{types}x.astype(y, copy=False)\neigh(x, check_finite=False)\n") == []
    assert [mutant.after for mutant in of("sort(x, stable=False)\n")] == ["sort(x, stable=True)"]


def test_numbers_are_broken_so_that_it_can_matter():
    after = [mutant.after for mutant in of("a = [3, 200, 0.5, 1e-8, 2e6, True]\n")]
    numbers = [ast.literal_eval(text.removeprefix("a = ")) for text in after]
    assert [numbers[place][place] for place in range(6)] == [4, 20, 1.0, 1e8, 5e-7, False]


def test_lines_of_functions_are_noted_and_not_those_that_run_at_import(tmp_path):
    file, found = tmp_path / "made.py", Lines(tmp_path, ["made.py"])
    file.write_text(
        "LEAST = 3\n\n\nclass One:\n    size = 2\n\n    def of(self):\n        return 1\n"
    )
    code = compile(file.read_text(), str(file), "exec")
    before, space = sys.gettrace(), {}
    sys.settrace(found.called)
    try:
        exec(code, space)
        space["One"]().of()
    finally:
        sys.settrace(before)
    assert {name: sorted(lines) for name, lines in found.ran.items()} == {"made.py": [8]}


CACHED = """
from functools import cache
from made import of

@cache
def kept():
    return of()

def test_one():
    assert kept() == 1

def test_other():
    assert kept() == 1
"""


@pytest.mark.commands
def test_what_a_test_takes_from_a_cache_is_noted_for_it_too(tmp_path, monkeypatch):
    (tmp_path / "made.py").write_text("def of():\n    return 1\n")
    (tmp_path / "test_made.py").write_text(CACHED)
    monkeypatch.chdir(tmp_path)
    report = tmp_path / "report.json"
    call = f"note_lines('test_made.py', ['made.py'], {str(report)!r})"
    program = f"import sys; sys.path.append('.'); from tests.mutation.lines import *; {call}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    ran = json.loads(report.read_text())["ran"]
    assert ran == {"made.py": {"2": ["test_made.py::test_one", "test_made.py::test_other"]}}


@pytest.mark.commands
def test_every_room_has_mutants():
    assert min(len(cases(room)) for room in ROOMS) >= 10


@pytest.mark.slow
def test_tests_that_fail_while_nothing_is_broken_are_told(monkeypatch):
    monkeypatch.setitem(ROOMS, "costs", Room(["costs"], ["tests/costs/test_that_is_not_there.py"]))
    with pytest.raises(
        SystemExit, match="the tests fail while nothing is broken: tests/costs/test_that"
    ):
        list(judged(cases("costs")[:1], 1))
