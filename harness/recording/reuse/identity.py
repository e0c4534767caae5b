"""A job's identity: what changes the numbers of its descent, and what else was asked of it.

`descent` is a digest of the first: the data's content, cost, scheme, optimizer, start, step sizes,
iterations, precision, and the code that computes with them. Equal ones give equal histories.
`job` is a digest of that and of what is made of the histories: record, theory, search, rules,
shown step. An equal job is taken as it is recorded; so is one of an equal descent of which more
was asked. One that was only judged otherwise is judged again; anything else is descended.

No sentence, figure, rule or measure is part of `descent`: changing one leaves the histories valid.
"""

import ast
import hashlib
import importlib
import json
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, NamedTuple

from normbench import names
from normbench.datasets import Dataset

ENGINE = "normbench.engine"
# The rooms whose code makes the numbers of a descent: of the data, the content counts.
ROOMS = tuple(f"normbench.{room}." for room in ("engine", "normalizers", "costs", "optimizers"))
LIBRARIES = ("numpy", "scipy", "autograd", "scikit-learn")
# The settings of a descent, the choices and their options; those of a random start; those of what
# is made of the histories. No other setting changes a number: a data set's change its content.
CHOICES = (names.COST.key, names.NORMALIZER.key, names.OPTIMIZER.key)
DESCENT = ("step_sizes", "iterations", "start", "starts", "precision")
RANDOM = ("start_scale", "seed")
DRAWN = ("normal", "same_function")  # the starts that are
SEARCH = "search.critical"
FIT_ON = "dataset.fit_on"  # of no effect on the content of the data
FOLDS = ("dataset.folds", "dataset.repeats", "dataset.split_seed")
POINT = "shown_point"
ASKED = ("theory", SEARCH, "search.width", POINT)
JUDGED = ("rules.", "shown_step")
PLAIN = str.maketrans("", "", "[]()' \"")  # of a list as text


class Identity(NamedTuple):
    """The digests of a job, 64 hexadecimal digits each."""

    descent: str
    job: str


def identity(params: Mapping[str, Any], dataset: Dataset, parts: tuple[Any, ...]) -> Identity:
    """Return the identity of a job.

    params: its flat choices and settings. parts: the objects that compute it (cost, normalizer,
    optimizer), for their code.
    """
    data = [dataset.fingerprint, dataset.task, dataset.classes]
    members = [member for part in parts for member in _members(part)]
    modules = sorted({*_below(ENGINE), *(_module_of(member) for member in members)})
    code = {name: code_of(name, ROOMS) for name in modules}
    links = [_settings(member) for member in members] if len(members) > len(parts) else []
    descent = _digest(json.dumps([_of_descent(params), data, code, _versions(), links]))
    return Identity(descent, job_of(descent, params))


def job_of(descent: str, params: Mapping[str, Any]) -> str:
    """Return the digest of a job from that of its descent and its parameters, as text or not."""
    return _digest(
        json.dumps([descent, sorted(arrays_asked(params)), _asked(params), judged(params)])
    )


def covers(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether what was asked of a job holds all that is wanted, beside its judging.

    recorded, wanted: parameters of two jobs of one descent, their values as text or not.
    """
    return arrays_asked(recorded) >= arrays_asked(wanted) and _asked(recorded) == _asked(wanted)


def judged(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings by which a job's histories are judged; none without a descent."""
    if arrays_asked(params) and str(params.get("iterations")) == "0":
        return {}
    return {key: str(value) for key, value in sorted(params.items()) if key.startswith(JUDGED)}


def arrays_asked(params: Mapping[str, Any]) -> frozenset[str]:
    """Return the words of `record`: which arrays are asked for."""
    told = str(params.get("record", "[]"))
    return frozenset(word for word in told.translate(PLAIN).split(",") if word)


def _of_descent(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that change the numbers: a seed counts where it draws the start."""
    keys = {*CHOICES, *DESCENT, *(RANDOM if params.get("start") in DRAWN else ())}
    options = tuple(f"{choice}." for choice in CHOICES)
    unused = "" if float(params.get("cost.l2") or 0) else "cost.l2_in"
    return {
        key: str(value)
        for key, value in sorted(params.items())
        if (key in keys or key.startswith(options)) and key != unused
    } | ({FIT_ON: "all"} if params.get(FIT_ON) == "all" else {})


def _asked(params: Mapping[str, Any]) -> dict[str, str]:
    """Return what is asked beside arrays; the search's width counts where there is a search."""
    told = {key: str(params.get(key)) for key in ASKED}
    if told[SEARCH] != "True":
        told.pop("search.width")
    if str(params.get(FOLDS[0])) != "None":
        told |= {key: str(params.get(key)) for key in FOLDS}
    return told


@lru_cache(maxsize=1)
def _below(package: str) -> tuple[str, ...]:
    """Return the names of all modules of a package of this project."""
    found = walk_packages(importlib.import_module(package).__path__, f"{package}.")
    return tuple(module.name for module in found)


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    return {name: version(name) for name in LIBRARIES}


@lru_cache
def code_of(module: str, rooms: tuple[str, ...] = ("normbench.",)) -> str:
    """Return a digest of what a module and the project's modules that it needs say.

    rooms: only modules below these names count. Comments, docstrings, layout and the words of an
    error do not. A module from elsewhere counts by its version, or, without one, by its own text.
    """
    needed = {name: path for name, path in _needed(module).items() if name.startswith(rooms)}
    own = {name: _read(path)[0] for name, path in sorted(needed.items())}
    if own:
        return _digest(json.dumps(own))
    top = importlib.import_module(module.split(".")[0])
    told = getattr(top, "__version__", None)
    file = getattr(sys.modules.get(module) or importlib.import_module(module), "__file__", None)
    return str(told) if told else _read(Path(file))[0] if file else module


def _read(path: Path) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return what `_parsed` does of a Python file as it is now."""
    about = path.stat()
    return _parsed(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=256)
def _parsed(path: Path, changed: int, size: int) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return a digest of a file's syntax without what `code_of` leaves out; its imports.

    Of an import the module and the name, which is empty where the module itself is imported.
    """
    tree = ast.parse(path.read_text())
    imports: list[tuple[str, str]] = []
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_docstring(body[0]):
            del body[0]
        if isinstance(node, ast.Raise):
            node.exc = node.cause = None
        if isinstance(node, ast.Import):
            imports += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports += [(node.module, alias.name) for alias in node.names]
    return _digest(ast.dump(tree)), tuple(imports)


def _needed(module: str) -> dict[str, Path]:
    """Return the project's modules that a module needs, itself first, with their files."""
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _file(name)
        if path is None or name in found:
            continue
        found[name] = path
        waiting += [_home(home, member) if member else home for home, member in _read(path)[1]]
    return found


def _home(module: str, name: str) -> str:
    """Return where `from module import name` finds it: a package's face leads to the room behind.

    Otherwise a change of one cost would make the results of every cost invalid.
    """
    below = f"{module}.{name}"
    if _file(below):
        return below
    if _file(module) is None:
        return module
    found = getattr(importlib.import_module(module), name, None)
    home = getattr(found, "__module__", None)
    return home if isinstance(home, str) and _file(home) else module


def _members(part: Any) -> Iterator[Any]:
    """Yield the schemes of a pipeline, whose settings are in no parameter; any other as it is."""
    steps = getattr(part, "steps", None)
    if steps and type(part).__module__.startswith("sklearn."):
        for _, step in steps:
            yield from _members(step)
    else:
        yield part


def _settings(part: Any) -> list[str]:
    """Return a scheme's settings that are numbers or words; a function has no text."""
    told = part.get_params() if hasattr(part, "get_params") else {}
    plain = (bool, int, float, str, tuple, type(None))
    words = [f"{key}={value!r}" for key, value in told.items() if isinstance(value, plain)]
    return [type(part).__qualname__, *sorted(words)]


def _module_of(part: Any) -> str:
    """Return the module that says what a function or an object does."""
    part = getattr(part, "formula", part)  # of a cost that autograd has wrapped
    named = part if hasattr(part, "__qualname__") else type(part)
    if isinstance(part, tuple):  # an optimizer: its rule is a function
        named = part[1]
    return str(named.__module__)


@lru_cache
def _file(module: str) -> Path | None:
    """Return the file of one of this project's modules, wherever it is installed."""
    if module.split(".")[0] != "normbench":
        return None
    try:
        found = find_spec(module)
    except ModuleNotFoundError:  # a name in a module, not a module
        return None
    return Path(found.origin) if found and found.origin else None


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _digest(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()
