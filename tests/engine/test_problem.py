"""Who knows what of a Problem: traits and parts decide."""

import ast

import pytest

from tests.test_rooms import TEXTS, imported, room_of

IMPLEMENTATIONS = {"Objective", "Blocked", "Triangle"}


def trees():
    for name, file in TEXTS.items():
        yield name, ast.parse(file.read_text())


@pytest.mark.commands
def test_nobody_outside_the_engine_knows_a_problems_class():
    knowing = {
        name
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("normbench.engine")
        and IMPLEMENTATIONS & {alias.name for alias in node.names}
    }
    outside = {name for name in knowing if not room_of(name).startswith("engine")}
    assert not outside
    assert any(list(imported(TEXTS[name])) for name in knowing)
