"""The vocabulary: every metric, tag and verdict is spelled in one place."""

import ast

import pytest

from normbench import names
from tests.conftest import ROOT

FILES = sorted(
    file
    for room in ("harness", "results")
    for file in (ROOT / room).rglob("*.py")
    if file != ROOT / "harness" / "names.py"
)
DECLARED = [value for value in vars(names).values() if isinstance(value, (names.Metric, names.Tag))]
# Tags whose keys are everyday words, too: settings, and headings of tables.
EVERYDAY = {
    *(names.ROLE, names.NORMALIZER, names.DATASET, names.COST, names.OPTIMIZER, names.STEP_TAG),
    names.MODEL,
    *(names.VERDICT, names.REASON, names.BEST, names.FALLS, names.COMMAND, names.JOBS),
    *(names.SWEEP_ID, names.FOLDER, names.BLAS, names.JOB, names.DESCENT, names.RECORDED),
}


def is_face(node):
    """Return whether a statement names the modules of a room for others."""
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def literals(text):
    """Yield every text in a Python file, parts of f-strings too.

    Docstrings and the names of a room's modules are left out.
    """
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if not is_face(node)]
    told = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(getattr(node, "body", None), list)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


def spelled(text, room=""):
    """Yield the literals that spell a declared name."""
    words = {*names.VERDICTS, *(entry.key for entry in DECLARED)}
    if room != "recording":  # where they are nothing else
        words -= {tag.key for tag in EVERYDAY}
    starts = (*names.FAMILIES, names.METRICS, names.TAGS)
    for literal in literals(text):
        if literal in words or literal.startswith(starts):
            yield literal


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_other_file_spells_a_name(file):
    assert list(spelled(file.read_text(), file.parent.name)) == []


@pytest.mark.parametrize(
    "line",
    [
        'row.get("metrics.anything")',
        'row["tags.anything"]',
        'key == "train/cost"',
        'f"final/{name}"',
        'verdict == "converged"',
        'tags["theory_note"]',
    ],
)
def test_a_name_that_is_spelled_elsewhere_is_seen(line):
    assert list(spelled(line)) != []


def test_a_name_is_declared_once():
    for kind in (names.Metric, names.Tag):
        keys = [entry.key for entry in DECLARED if isinstance(entry, kind)]
        assert len(keys) == len(set(keys)) > 20
    assert all(tag.meaning for tag in DECLARED if isinstance(tag, names.Tag))


def test_the_keys_of_a_recorded_store_stay():
    """They are in stores that users have: a key that changes hides what was recorded."""
    assert [metric.key for metric in names.HISTORIES] == [
        "train/cost",
        "train/misclassifications",
        "test/cost",
        "test/misclassifications",
    ]
    assert names.quartile(names.TRAIN_COST, "q1").key == "train/cost_q1"
    assert names.final_metric(names.TEST_COST).key == "final/test_cost"
    assert names.grid(names.TRAIN_COST).key == "grid/train_cost"
    assert names.reached("1e-2").key == "final/iterations_to_1e-2"
    assert names.reached("1e-2", "seconds").key == "final/seconds_to_1e-2"
    assert names.start_reached("1e-2").key == "start/iterations_to_1e-2"
    assert names.target("1e-2").key == "theory/target_1e-2"
    assert names.predicted("1e-2").key == "theory/predicted_iterations_to_1e-2"
    assert names.THRESHOLD.column == "metrics.theory/step_threshold"
    assert names.membership("s1").column == "tags.sweep.s1"


def assigned(target, value):
    """Yield each name that an assignment defines, and the text of its value.

    A value that is unpacked from another name is told by its place there.
    """
    if isinstance(target, ast.Name):
        yield target.id, ast.unparse(value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        entries = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        for number, entry in enumerate(target.elts):
            if len(entries) == len(target.elts):
                yield from assigned(entry, entries[number])
            elif isinstance(entry, ast.Name):
                yield entry.id, f"{ast.unparse(value)}[{number}]"


def constants_of(text):
    """Yield the name and the value's text of each constant of a module."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from assigned(target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield from assigned(node.target, node.value)


def constants():
    """Yield the name, the value's text and the file of each constant of the product."""
    for folder in ("costs", "datasets", "harness", "optimizers", "results"):
        for file in (ROOT / folder).rglob("*.py"):
            for name, value in constants_of(file.read_text()):
                yield name, value, file.name


def test_constants_of_every_form_are_seen():
    text = "A = 1\nB, (C, D) = 2, (3, 4)\nE: int = 5\nF = G, H = 6, 7\nI, J = ORDERS\nK: int\n"
    assert dict(constants_of(text)) == {
        **{"A": "1", "B": "2", "C": "3", "D": "4", "E": "5"},
        **{"F": "(6, 7)", "G": "6", "H": "7", "I": "ORDERS[0]", "J": "ORDERS[1]"},
    }


def test_a_constants_name_means_one_thing():
    """It has one value, or is another module's constant of that name: its key or its column."""
    values = {}
    for name, value, file in constants():
        is_alias = value.removesuffix(".column").removesuffix(".key").endswith(f".{name}")
        if name.isupper() and name != "MEASURE" and not is_alias:  # of each measure, by contract
            values.setdefault(name, {})[value] = file
    assert len(values) > 1100
    assert {name: files for name, files in values.items() if len(files) > 1} == {}
