"""A job's identity: what changes the numbers of its descent, and what else was asked of it.

`descent` is a digest of the first: the data's content, cost, scheme, optimizer, start, step sizes,
iterations, precision, `NUMBERS`, and the code of the cost, scheme and optimizer, which may be a
user's. Equal ones give histories that are equal to rounding: a processor, a kernel or a version of
numpy, scipy or autograd changes no more, so that none of them is part of it (a sweep's tags say
them). scikit-learn's version is, where the scheme is its own. Checkpoints are kept apart by more.
`job` is a digest of that and of what is made of the histories: record, theory, search, rules,
shown step. An equal job is taken as it is recorded; so is one of an equal descent of which more
was asked. One that was only judged otherwise is judged again; anything else is descended.

No sentence, figure, rule or measure is part of `descent`: changing one leaves the histories valid.
"""

import ast
import hashlib
import importlib
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from normbench.datasets import Dataset
from normbench.optimizers import Optimizer
from normbench.settings import ASKED_PART, DESCENT_PART, JUDGED_PART, of_identity

# Raise it with any change that moves the numbers of a descent by more than rounding, in the engine
# or in what a cost, scheme or optimizer calls: recorded jobs are then descended again. A test with
# recorded numbers fails where it was forgotten.
NUMBERS = 4
BESIDE = ("refine", "shadows")
PLAIN = str.maketrans("", "", "[]()' \"")  # of a list as text


class Identity(NamedTuple):
    """The digests of a job, 64 hexadecimal digits each.

    grid: of the descent, but for what is looked for beside its grid (`BESIDE`).
    """

    descent: str
    job: str
    grid: str


def identity(params: Mapping[str, Any], dataset: Dataset, parts: tuple[Any, ...]) -> Identity:
    """Return the identity of a job.

    params: its flat choices and settings. parts: the objects that compute it (cost, normalizer,
    optimizer), for their code.
    """
    data = [dataset.fingerprint, dataset.task, dataset.classes]
    members = [member for part in parts for member in _members(part)]
    code = {name: code_of(name) for name in sorted({_module_of(member) for member in members})}
    links = [_settings(member) for member in members] if len(members) > len(parts) else []
    own = of_identity(DESCENT_PART, params)
    descent = _digest(json.dumps([own, data, code, NUMBERS, links]))
    alone = {key: value for key, value in own.items() if key not in BESIDE}
    grid = _digest(json.dumps([alone, data, code, NUMBERS, links]))
    return Identity(descent, job_of(descent, params), grid)


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
    return of_identity(JUDGED_PART, params)


def arrays_asked(params: Mapping[str, Any]) -> frozenset[str]:
    """Return the words of `record`: which arrays are asked for."""
    told = str(params.get("record", "[]"))
    return frozenset(word for word in told.translate(PLAIN).split(",") if word)


def _asked(params: Mapping[str, Any]) -> dict[str, str]:
    """Return what is asked for beside arrays."""
    asked = of_identity(ASKED_PART, params)
    return {key: value for key, value in asked.items() if key != "record"}


@lru_cache
def code_of(module: str) -> str:
    """Return a digest of what a module says; of scikit-learn's, its version.

    Comments, docstrings, layout and the words of an error do not count.
    """
    if module.startswith("sklearn."):
        return version("scikit-learn")
    file = getattr(importlib.import_module(module), "__file__", None)
    if not file or not file.endswith(".py"):  # of a built-in or compiled one
        return module
    tree = ast.parse(Path(file).read_text())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
        if isinstance(node, ast.Raise):
            node.exc = node.cause = None
    return _digest(ast.dump(tree))


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
    if isinstance(part, Optimizer):  # its rule is a function
        named = part.step
    return str(named.__module__)


def _digest(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()
