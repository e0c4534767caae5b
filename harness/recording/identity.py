"""A job's identity: its resolved choices, the content of its data, and the code that computes it.

Equal identities give equal results, so that what is recorded need not be computed again.
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
from typing import Any

ENGINE = "normbench.job"
LIBRARIES = ("numpy", "scipy", "autograd", "scikit-learn")
# Where a job's data and results lie is no part of what it computes.
WORDS = "study."  # and what a study says of itself is none either
PLACES = ("data_dir", "dataset.data_dir", "dataset.path", "reuse")


def identity(params: Mapping[str, Any], data: str, parts: tuple[Any, ...]) -> str:
    """Return the fingerprint of a job, 64 hexadecimal digits.

    params: its flat choices and settings; data: the data's fingerprint; parts: the objects that
    compute it (cost, normalizer, optimizer), for their code.
    """
    chosen = {
        key: str(value)
        for key, value in sorted(params.items())
        if key not in PLACES and not key.startswith(WORDS)
    }
    members = [member for part in parts for member in _members(part)]
    modules = sorted({ENGINE, *(_module_of(member) for member in members)})
    code = {name: code_of(name) for name in modules}
    links = [_settings(member) for member in members] if len(members) > len(parts) else []
    return _digest(json.dumps([chosen, data, code, _versions(), links]))


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    return {name: version(name) for name in LIBRARIES}


@lru_cache
def code_of(module: str) -> str:
    """Return a digest of what a module and the project's modules that it needs say.

    Comments, docstrings and layout do not count. A module from elsewhere counts by its version,
    or, without one, by its own text.
    """
    own = {name: _read(path)[0] for name, path in sorted(_needed(module).items())}
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
    """Return a digest of a file's syntax without comments, docstrings and layout; its imports.

    Of an import the module and the name, which is empty where the module itself is imported.
    """
    tree = ast.parse(path.read_text())
    imports: list[tuple[str, str]] = []
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_docstring(body[0]):
            del body[0]
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

    Otherwise any cost's change would void the results of all.
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
    """Return what a scheme is set to, of the numbers and words alone: a function has no text."""
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
