"""The arrows between the rooms: who may import whom."""

import ast
import sys
import tomllib

import pytest

from tests.conftest import ROOT

# Folders of the checkout, and what they are called when they are imported.
ROOMS = {"conf": "normbench.conf", "costs": "normbench.costs", "datasets": "normbench.datasets"}
ROOMS |= {"optimizers": "normbench.optimizers", "results": "normbench.results"}
ROOMS |= {"harness": "normbench"}
NUMPY = {"numpy"}
# The rooms and libraries that each room may import, from the leaves up; None: any library.
BELOW = ("values", "points", "names", "datasets")  # what all that works on data knows
MAY = {
    "conf": ((), set()),
    "costs": ((), NUMPY | {"autograd", "scipy"}),
    "optimizers": ((), NUMPY | {"scipy"}),
    "values": ((), set()),  # of datasets: a user's mistake, and the checks of single settings
    "points": (("values",), NUMPY),  # of datasets: rows, wherever they are
    "datasets": (
        ("values", "points"),
        NUMPY | {"sklearn", "pooch", "pandas", "pyarrow", "requests", "scipy", "tqdm"},
    ),
    "names": ((), set()),  # of results: what is written and read
    "sentences": ((), set()),  # of results: all that is said
    "reasons": (("names", "sentences"), set()),  # of results: when theory says what
    "results": (("names", "sentences", "reasons"), None),
    "normalizers": ((), NUMPY | {"scipy", "sklearn"}),
    "engine": (
        ("values", "points", "costs", "optimizers", "normalizers"),
        NUMPY | {"scipy", "autograd", "threadpoolctl", "sklearn"},
    ),
    "theory": (("values", "points", "names", "engine", "normalizers"), NUMPY | {"scipy"}),
    "verdicts": (("values", "names"), NUMPY),
    "measures": (
        (
            *BELOW,
            "sentences",
            "reasons",
            "optimizers",
            "normalizers",
            "engine",
            "theory",
            "verdicts",
        ),
        NUMPY,
    ),
    "choices": (("values", "conf", "costs", "datasets", "optimizers", "normalizers"), None),
    "job": (
        ("points", "datasets", "costs", "optimizers", "engine", "theory", "verdicts", "measures"),
        NUMPY,
    ),
    "comparison": (
        (*BELOW, "costs", "choices", "engine", "verdicts", "job", "recording", "results"),
        NUMPY | {"pandas", "sklearn"},
    ),
    "recording": (
        (*BELOW, "job", "measures", "verdicts", "results"),
        None,
    ),
    "command": (
        ("", *BELOW, "choices", "engine", "verdicts", "job", "recording", "results"),
        None,
    ),
    "": (("command", "recording", "choices", "engine", "comparison", "results"), None),
}
TEXTS = {
    f"{name}{'.' if parts else ''}{'.'.join(parts)}": file
    for folder, name in ROOMS.items()
    for file in sorted((ROOT / folder).rglob("*.py"))
    for parts in [file.relative_to(ROOT / folder).with_suffix("").parts]
    if "__pycache__" not in parts
}
HANDS_ON = "normbench.results.__main__"  # of a checkout: it hands every word to the command


def imported(file):
    """Yield the dotted names that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            if node.module in ("normbench", "normbench.results"):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            else:
                yield node.module


def room_of(name):
    """Return the room of a module of the package; the face itself is the room without a name."""
    own = {f"normbench.results.{room}" for room in ("names", "sentences", "reasons")}
    if name in {*own, "normbench.datasets.values", "normbench.datasets.points"}:
        return name.split(".")[-1]
    part = name.split(".")[1] if "." in name else ""
    return part if part in MAY else ""


def breaches(file, name):
    rooms, libraries = MAY[room_of(name)]
    for other in imported(file):
        top = other.split(".")[0]
        if top == "normbench":
            if room_of(other) not in (room_of(name), *rooms):
                yield f"{name} imports {other}"
        elif libraries is not None and top not in libraries | set(sys.stdlib_module_names):
            yield f"{name} imports {other}"
        knows_hydra = room_of(name) in ("command", "") or name == "normbench.choices"
        if top in ("hydra", "hydra_plugins", "omegaconf") and not knows_hydra:
            yield f"{name} knows Hydra"


@pytest.mark.parametrize("name", [name for name in TEXTS if name != HANDS_ON])
def test_a_file_imports_only_what_its_room_may(name):
    assert list(breaches(TEXTS[name], name)) == []


def test_a_forbidden_import_is_seen(tmp_path):
    file = tmp_path / "softmax.py"
    file.write_text(
        "from normbench.engine import descent\nimport sklearn\nfrom hydra import main\n"
    )
    assert len(list(breaches(file, "normbench.costs.softmax"))) == 4


def inner(file):
    """Yield the modules of the harness that a file imports, also where only types are checked."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                yield below if modules_of(below) else node.module


def modules_of(name):
    """Return the names that a module goes by in `TEXTS`: a folder's is its `__init__`."""
    return {name, f"{name}.__init__"} & set(TEXTS)


def circle(edges):
    """Return modules that import one another in a circle, in order; empty without one."""
    open_, closed = [], set()

    def visit(name):
        if name in open_:
            return open_[open_.index(name) :]
        if name in closed:
            return []
        open_.append(name)
        for other in sorted(edges.get(name, ())):
            found = visit(other)
            if found:
                return found
        closed.add(open_.pop())
        return []

    return next((found for name in sorted(edges) if (found := visit(name))), [])


def test_no_module_imports_itself_by_way_of_others():
    edges = {
        name: {own for other in inner(file) for own in modules_of(other)} - {name}
        for name, file in TEXTS.items()
    }
    assert sum(len(others) for others in edges.values()) > 100  # it sees the imports
    assert circle(edges) == []


def test_a_circle_is_seen():
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circle({"a": {"b"}, "b": {"c", "d"}, "c": set(), "d": {"b"}}) == ["b", "d"]


def test_mlflow_is_written_in_one_place_and_read_in_one():
    knowing = {
        name
        for name, file in TEXTS.items()
        if any(other.split(".")[0] == "mlflow" for other in imported(file))
    }
    assert knowing <= {
        "normbench.results.mlflows_own",
        "normbench.recording.store",
        "normbench.recording.writer",
        "normbench.results.stores",
        "normbench.results.dashboard",
    }


def test_every_folder_is_in_the_package():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {
        ".".join([name, *file.parent.relative_to(ROOT / folder).parts])
        for folder, name in ROOMS.items()
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".py", ".yaml") and "__pycache__" not in file.parts
    }
    assert sorted(told) == sorted(folders)
