"""The arrows between the rooms: who may import whom."""

import ast
import sys
import tomllib
from functools import cache
from typing import NamedTuple

import pytest

from tests.conftest import ROOT

# Folders of the checkout, and what they are called when they are imported.
FOLDERS = {"conf": "normbench.conf", "costs": "normbench.costs", "datasets": "normbench.datasets"}
FOLDERS |= {"optimizers": "normbench.optimizers", "results": "normbench.results"}
FOLDERS |= {"harness": "normbench"}
# The rooms, from the top down. modules: the folders and modules of a room, of which the longest
# name counts. imports: the rooms that it may import, each further down. libraries: likewise.
TABLE = """
__main__
    modules: normbench.__main__
    imports: command

command
    modules: normbench.command
    imports: command.results command.sweep command.config command.startup recording.store
        results.safe interrupts

command.results
    modules: normbench.command.results
    imports: command.sweep command.startup recording.transfer recording.resume
        recording.reuse recording.store results.report results.studies results.pages
        results.figures results.figures.base results.answer results.store results.words verdicts
        synonyms datasets values results.safe names

command.sweep
    modules: normbench.command.sweep
    imports: command.config command.startup recording.resume recording.reuse recording.store
        results.report results.pages results.figures.base results.store rehearsal job choices
        datasets points settings values results.safe interrupts names
    libraries: hydra joblib omegaconf rich submitit

command.config
    modules: normbench.command.config
    imports: recording.reuse recording.store results.studies results.figures results.store
        job engine verdicts choices contracts synonyms datasets settings values results.safe names
    libraries: hydra hydra_plugins omegaconf

command.startup
    modules: normbench.command.startup
    imports: results.store engine.fast
    libraries: threadpoolctl

comparison
    modules: normbench.comparison
    imports: rehearsal recording.store results.report results.store job engine engine.scheme
        verdicts costs optimizers choices contracts synonyms datasets settings values names
    libraries: numpy pandas sklearn

rehearsal
    modules: normbench.rehearsal
    imports: job measures engine verdicts costs datasets values
    libraries: autograd numpy

recording
    modules: normbench.recording

recording.transfer
    modules: normbench.recording.transfer
    imports: recording.resume recording.store results.pages results.store values
        results.safe names
    libraries: pydantic

recording.resume
    modules: normbench.recording.resume
    imports: recording.store results.store datasets results.safe interrupts names
    libraries: numpy

recording.reuse
    modules: normbench.recording.reuse
    imports: recording.store results.store job measures verdicts optimizers datasets
        settings names
    libraries: numpy pandas

recording.store
    modules: normbench.recording.store
    imports: results.store job measures verdicts datasets values results.safe names
    libraries: mlflow numpy sqlalchemy

results.report
    modules: normbench.results.report
    imports: results.pages results.figures.film results.figures.melt results.figures
        results.figures.base
        results.answer results.compare results.store results.words results.safe names
    libraries: contourpy jinja2 matplotlib numpy pandas rich

results.studies
    modules: normbench.results.studies
    imports: results.answer results.compare results.store results.safe names
    libraries: numpy pandas scipy sklearn

results.pages
    modules: normbench.results.pages
    imports: results.figures results.answer results.compare results.store results.safe names

results.figures.film
    modules: normbench.results.figures.film
    imports: results.figures results.figures.base results.store results.safe
    libraries: PIL contourpy jinja2 matplotlib numpy pandas

results.figures.melt
    modules: normbench.results.figures.melt
    imports: results.figures results.figures.base results.compare results.store names
    libraries: matplotlib numpy pandas

results.figures
    modules: normbench.results.figures
    imports: results.figures.base results.compare results.store settings results.words
        results.safe names
    libraries: PIL matplotlib mpl_toolkits numpy pandas

results.figures.base
    modules: normbench.results.figures.base
    imports: results.compare results.store names
    libraries: PIL matplotlib numpy pandas

results.answer
    modules: normbench.results.answer
    imports: results.compare results.store settings results.words results.safe names
    libraries: numpy pandas

results.compare
    modules: normbench.results.compare
    imports: results.store verdicts settings results.words names
    libraries: numpy pandas scipy

results.store
    modules: normbench.results.store
    imports: settings results.safe names
    libraries: mlflow numpy pandas requests sqlalchemy

job
    modules: normbench.job
    imports: route measures theory engine.fast engine engine.scheme verdicts costs
        optimizers datasets points
    libraries: numpy

route
    modules: normbench.route
    imports: engine.fast engine engine.scheme models optimizers points settings values
    libraries: numpy

measures
    modules: normbench.measures
    imports: theory engine engine.scheme verdicts normalizers optimizers datasets points
        values results.words names
    libraries: numpy

theory
    modules: normbench.theory
    imports: engine normalizers points values names
    libraries: numpy scipy

engine.fast
    modules: normbench.engine.fast
    imports: engine engine.scheme models normalizers costs optimizers points values
    libraries: autograd jax numpy scipy threadpoolctl

engine
    modules: normbench.engine
    imports: engine.scheme models verdicts normalizers costs optimizers points settings values
    libraries: autograd numpy scipy

engine.scheme
    modules: normbench.engine.scheme
    imports: normalizers points values
    libraries: numpy sklearn

models
    modules: normbench.models
    imports: values
    libraries: autograd numpy

verdicts
    modules: normbench.verdicts
    imports: settings names
    libraries: numpy

choices
    modules: normbench.choices
    imports: contracts normalizers optimizers datasets synonyms values
    libraries: omegaconf sklearn

contracts
    modules: normbench.contracts
    imports: optimizers datasets

normalizers
    modules: normbench.normalizers
    libraries: numpy scipy sklearn threadpoolctl

costs
    modules: normbench.costs
    libraries: autograd numpy

synonyms
    modules: normbench.synonyms
    imports: values

optimizers
    modules: normbench.optimizers
    libraries: numpy scipy

datasets
    modules: normbench.datasets
    imports: points values
    libraries: numpy pandas pooch pyarrow requests rich scipy sklearn

points
    modules: normbench.datasets.on_disk.points normbench.datasets.on_disk.sparse
    libraries: numpy scipy

settings
    modules: normbench.settings
    imports: values

values
    modules: normbench.datasets.values

results.words
    modules: normbench.results.words
    imports: names

results.safe
    modules: normbench.results.safe

names
    modules: normbench.names

interrupts
    modules: normbench.interrupts
"""
# Arrows that go up the table.
UPWARDS: set[tuple[str, str]] = set()
TEXTS = {
    f"{name}{'.' if parts else ''}{'.'.join(parts)}".removesuffix(".__init__"): file
    for folder, name in FOLDERS.items()
    for file in sorted((ROOT / folder).rglob("*.py"))
    for parts in [file.relative_to(ROOT / folder).with_suffix("").parts]
    if "__pycache__" not in parts
}
# The face of the package, and of a checkout, hands every word to the command.
FACES = {"normbench", "normbench.results", "normbench.results.__main__"}
HYDRA = {"hydra", "hydra_plugins", "omegaconf"}
KNOW_HYDRA = {"command.config", "command.sweep", "choices"}


class Room(NamedTuple):
    """A room: its modules, the rooms and the libraries that it may import."""

    modules: tuple[str, ...]
    imports: tuple[str, ...]
    libraries: tuple[str, ...]


def rooms_of(table):
    rooms = {}
    for paragraph in table.strip().split("\n\n"):
        name, *words = paragraph.split()
        fields = {"modules:": [], "imports:": [], "libraries:": []}
        for word in words:
            if word in fields:
                column = fields[word]
            else:
                column.append(word)
        rooms[name] = Room(*map(tuple, fields.values()))
    return rooms


ROOMS = rooms_of(TABLE)


def room_of(module):
    """Return the room of a module: the one with the longest of the names that it begins with."""
    names = [
        (len(part), room)
        for room, row in ROOMS.items()
        for part in row.modules
        if module == part or module.startswith(f"{part}.")
    ]
    return max(names, default=(0, ""))[1]


@cache
def imported(file):
    """Return the modules and names that a file imports, wherever in it."""
    modules = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                modules.append(below if below in TEXTS else node.module)
    return tuple(modules)


def breaches(file, name):
    """Yield what a file imports and may not."""
    own = room_of(name)
    for other in imported(file):
        top = other.split(".")[0]
        if top == "normbench":
            if room_of(other) not in (own, "", *ROOMS[own].imports):
                yield f"{name} imports {other}"
        elif top not in {*ROOMS[own].libraries, *sys.stdlib_module_names}:
            yield f"{name} imports {other}"
        if top in HYDRA and own not in KNOW_HYDRA:
            yield f"{name} knows Hydra"


INSIDE = [name for name in TEXTS if name not in FACES and not name.startswith("normbench.conf")]


@pytest.mark.parametrize("name", INSIDE)
def test_a_file_imports_only_what_its_room_may(name):
    assert room_of(name)
    assert list(breaches(TEXTS[name], name)) == []


def test_a_forbidden_import_is_seen(tmp_path):
    file = tmp_path / "softmax.py"
    file.write_text(
        "from normbench.engine import descent\nimport sklearn\nfrom hydra import main\n"
    )
    assert len(list(breaches(file, "normbench.costs.softmax"))) == 4


def arrows():
    """Return the rooms that each room does import, and the libraries."""
    found = {room: (set(), set()) for room in ROOMS}
    for name in INSIDE:
        for other in imported(TEXTS[name]):
            top = other.split(".")[0]
            if top == "normbench":
                found[room_of(name)][0].add(room_of(other))
            elif top not in sys.stdlib_module_names:
                found[room_of(name)][1].add(top)
    return found


def face(room):
    """Return the modules that a room's `__init__` names for others; None where it has code."""
    if f"normbench.{room}" not in TEXTS or TEXTS[f"normbench.{room}"].name != "__init__.py":
        return None
    body = ast.parse(TEXTS[f"normbench.{room}"].read_text()).body
    lists = [node for node in body if ast.unparse(node).startswith("__all__ = ")]
    if len(lists) + 1 < len(body):
        return None
    return {name for node in lists for name in ast.literal_eval(node.value)}


@pytest.mark.parametrize("room", [room for room in ROOMS if face(room) is not None])
def test_others_use_the_modules_that_a_room_names(room):
    used = {
        other.removeprefix(f"normbench.{room}.").split(".")[0]
        for name in INSIDE
        if room_of(name) != room
        for other in imported(TEXTS[name])
        if room_of(other) == room and other != f"normbench.{room}"
    }
    assert used == face(room)


def test_imports_go_down_the_table():
    order = list(ROOMS)
    upwards = [
        f"{room} imports {other}"
        for room, row in ROOMS.items()
        for other in row.imports
        if order.index(other) <= order.index(room) and (room, other) not in UPWARDS
    ]
    assert upwards == []


def test_no_permission_is_left_over():
    for room, (others, libraries) in arrows().items():
        assert set(ROOMS[room].imports) == others - {room, ""}, room
        assert set(ROOMS[room].libraries) == libraries, room


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
    edges = {name: {*imported(file)} & set(TEXTS) - {name} for name, file in TEXTS.items()}
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
        "normbench.results.store.mlflows_own",
        "normbench.recording.store.connection",
        "normbench.recording.store.writer",
        "normbench.results.store.stores",
        "normbench.results.pages.dashboard",
    }


def test_every_folder_is_in_the_package():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {
        ".".join([name, *file.parent.relative_to(ROOT / folder).parts])
        for folder, name in FOLDERS.items()
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".py", ".yaml") and "__pycache__" not in file.parts
    }
    assert sorted(told) == sorted(folders)
