"""The rooms: who may import whom, and which names are spelled in one place.

Each file of the product is parsed once, and each test lists every breach.
"""

import ast
import graphlib
import re
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

from normbench import names
from tests.wheel import FOLDERS, ROOT

# From the top down: a room imports from itself and from what stands below it. A room is a folder
# or a module; what is not named here belongs to the room whose name it begins with.
ORDER = """
    __main__ command comparison rehearsal record
    job checks preparation measures theory engine engine.scheme
    results.report results.studies results.pages results.figures results.answer results.compare
    results.store
    models verdicts choices contracts normalizers costs synonyms optimizers
    datasets datasets.on_disk.points datasets.on_disk.sparse settings datasets.values
    results.words results.safe names interrupts
"""
ROOMS = ORDER.split()
# Rooms that are extended by one file, and what they may know.
ALONE = {"costs": set(), "optimizers": set(), "normalizers": {"datasets.on_disk.points"}}
# What reads the records, and who may call it: what computes knows nothing of it.
SHARED = {"results.words", "results.safe"}
READERS = {room for room in ROOMS if room.startswith("results.")} - SHARED
CALLERS = {"__main__", "command", "comparison", "rehearsal", "record", *READERS}
# Libraries that few rooms may know.
LIBRARIES = {
    "hydra": {"command"},
    "omegaconf": {"command", "choices"},
    "mlflow": {"record"},
    "sqlalchemy": {"record"},
    "matplotlib": {"results.report", "results.figures"},
}
# The face of the package, and of a checkout, hands every word to the command.
FACES = {"normbench", "normbench.results", "normbench.results.__main__"}
# Tags whose keys are everyday words, too: settings, and headings of tables.
EVERYDAY = {
    *(names.ROLE, names.NORMALIZER, names.DATASET, names.COST, names.OPTIMIZER, names.STEP_TAG),
    *(names.MODEL, names.VERDICT, names.REASON, names.BEST, names.FALLS, names.COMMAND, names.JOBS),
    *(names.SWEEP_ID, names.BLAS, names.JOB, names.DESCENT, names.RECORDED),
    *(names.KEY, names.WRITER),
}
DECLARED = [value for value in vars(names).values() if isinstance(value, (names.Metric, names.Tag))]
VAGUE = {"found", "made", "told", "kept", "here", "known"}


def module_name(file: Path) -> str:
    """Return what a file of the product is called when it is imported."""
    path = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    return f"normbench.{path}".replace(".harness", "").removesuffix(".__init__")


TEXTS = {
    module_name(file): file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py"))
}


@cache
def parse(file: Path) -> tuple[ast.Module, tuple[ast.AST, ...]]:
    """Return the syntax tree of a file, and all of its nodes."""
    tree = ast.parse(file.read_text())
    return tree, tuple(ast.walk(tree))


def room_of(module: str) -> str:
    """Return the room of a module, the one with the longest name that it begins with."""
    name = f"{module.removeprefix('normbench.')}."
    return max((room for room in ROOMS if name.startswith(f"{room}.")), key=len, default="")


@cache
def imported(file: Path) -> tuple[str, ...]:
    """Return the modules that a file imports, wherever in it."""
    modules = []
    for node in parse(file)[1]:
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                modules.append(below if below in TEXTS else node.module or "")
    return tuple(modules)


def import_breaches(module: str, file: Path):
    """Yield what a module imports and may not."""
    room = room_of(module)
    if not room:
        yield f"{module} is in no room"
        return
    below = set(ROOMS[ROOMS.index(room) :]) | {""}
    below -= READERS if room not in CALLERS else set()
    below = {room, *ALONE[room]} if room in ALONE else below
    for other in imported(file):
        top = other.partition(".")[0]
        is_breach = room_of(other) not in below if top == "normbench" else False
        if is_breach or room not in LIBRARIES.get(top, {room}):
            yield f"{module} imports {other}"


def private_breaches(module: str, file: Path):
    """Yield the private names of other modules that a module imports or reads."""
    modules = set()
    for node in parse(file)[1]:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("normbench"):
            modules |= {alias.asname or alias.name for alias in node.names}
            private = [alias.name for alias in node.names if re.match("_[a-z]", alias.name)]
            yield from (f"{module} imports {node.module}.{name}" for name in private)
    for node in parse(file)[1]:
        if isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr):
            owner = ast.unparse(node.value)
            if owner in modules and owner.islower():
                yield f"{module} reads {owner}.{node.attr}"


def spelled(file: Path):
    """Yield the texts in a file that spell a metric, a tag or a verdict."""
    nodes = parse(file)[1]
    keys = {*names.VERDICTS, *(entry.key for entry in DECLARED)} - {tag.key for tag in EVERYDAY}
    families = [value for name, value in vars(names).items() if name.endswith("_PREFIX")]
    prefixes = (*families, names.OWN_UNITS, names.METRICS, names.TAGS)
    left_out = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in left_out]
    for value in (node.value for node in texts if isinstance(node.value, str)):
        if value in keys or value.startswith(prefixes):
            yield value


def defined_names(file: Path):
    """Yield each name that a file defines."""
    for node in parse(file)[1]:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name


def constants(file: Path):
    """Yield the names and the values' texts of a module's constants, those in tuples too."""
    for node in parse(file)[0].body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            (target, *_) = node.targets if isinstance(node, ast.Assign) else [node.target]
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts))
            for name, value in pairs:
                yield ast.unparse(name), ast.unparse(value)


def test_imports_go_down_the_rooms():
    modules = {
        m: f for m, f in TEXTS.items() if m not in FACES and not m.startswith("normbench.conf")
    }
    assert [breach for row in modules.items() for breach in import_breaches(*row)] == []


def test_no_module_uses_a_private_name_of_another():
    assert [breach for row in TEXTS.items() for breach in private_breaches(*row)] == []


def test_no_module_imports_itself_by_way_of_others():
    edges = {name: {*imported(file)} & set(TEXTS) - {name} for name, file in TEXTS.items()}
    assert sum(map(len, edges.values())) > 100  # it sees the imports
    graphlib.TopologicalSorter(edges).prepare()  # raises where there is a circle, and names it


def test_a_breach_of_each_kind_is_seen(tmp_path):
    file = tmp_path / "softmax.py"
    file.write_text(
        "from normbench.engine import descent\nimport mlflow\nfrom normbench.names import _key\n"
        'descent._go(_key, "train/cost", f"final/{_key}")\ntags["theory_note"]\n'
    )
    imports = ["normbench.engine.descent", "mlflow", "normbench.names"]
    module = "normbench.costs.softmax"
    assert [*import_breaches(module, file)] == [f"{module} imports {name}" for name in imports]
    assert len([*private_breaches(module, file)]) == 2
    assert [*spelled(file)] == ["train/cost", "theory_note", "final/"]


def test_keys_and_verdicts_are_spelled_in_one_place():
    breaches = [
        f"{module} spells {text!r}"
        for module, file in TEXTS.items()
        if file.parts[len(ROOT.parts)] in ("harness", "results") and module != names.__name__
        for text in spelled(file)
    ]
    assert breaches == []
    for kind in (names.Metric, names.Tag):
        keys = [entry.key for entry in DECLARED if isinstance(entry, kind)]
        assert len(keys) == len(set(keys)) > 20


def test_a_constants_name_means_one_thing():
    """It has one value, or is another module's constant of that name: its key or its column."""
    values = defaultdict(dict)
    for module, file in TEXTS.items():
        for name, value in constants(file):
            is_alias = value.removesuffix(".column").removesuffix(".key").endswith(f".{name}")
            if name.isupper() and not is_alias:  # of each measure
                values[name][value] = module
    assert len(values) > 100
    assert {name: files for name, files in values.items() if len(files) > 1} == {}


def test_names_say_what_they_hold():
    files = {**TEXTS, **{file.name: file for file in (ROOT / "docs").glob("*.py")}}
    breaches = [
        f"{module}: {name}"
        for module, file in files.items()
        for name in defined_names(file)
        if {*name.lower().strip("_").split("_")} <= VAGUE
    ]
    assert breaches == []


def test_every_folder_is_in_the_package():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {
        module_name(file.parent / "__init__.py")
        for folder in FOLDERS
        for suffix in ("*.py", "*.yaml")
        for file in (ROOT / folder).rglob(suffix)
    }
    assert sorted(settings["packages"]) == sorted(folders)
