"""Choices by name: an option's file under `conf/`, and the object that it describes."""

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from normbench.datasets.dataset import Dataset
from normbench.datasets.values import UserError, check_list, did_you_mean, spell_setting
from normbench.optimizers import Optimizer
from normbench.optimizers import preconditioned as _preconditioned
from normbench.synonyms import remedy

CONF = Path(str(files("normbench.conf")))
ENTRY = re.compile(r"^(\w+):", re.MULTILINE)  # of an option's file, whose entries stand at its edge
TARGET = re.compile(r"^_target_: *(\S+)", re.MULTILINE)
ABOUT = re.compile(r"^_target_: *\S+ +# *(.+)", re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """What a group takes: what its `_target_` may be, and what calling that must give.

    A cost is not called here: it is the function itself.
    """

    rule: str
    example: str
    takes: Callable[[Any], bool]
    is_made: Callable[[Any], bool]


def _is_cost(found: Any) -> bool:
    """Return whether a thing is a function that can be called with scores and targets."""
    if isinstance(found, type) or not callable(found):
        return False
    try:
        inspect.signature(found).bind("scores", "targets")
    except TypeError:
        return False
    except ValueError:  # a function in C does not tell
        return True
    return True


def _transforms(found: Any) -> bool:
    return callable(getattr(found, "fit", None)) and callable(getattr(found, "transform", None))


def _makes_a_scheme(found: Any) -> bool:
    return _transforms(found) if isinstance(found, type) else callable(found)


PLACES = {
    "cost": Place(
        "cost: a function of scores and targets", "normbench.costs.softmax", _is_cost, _is_cost
    ),
    "dataset": Place(
        "loader: a function that gives a data set, as normbench.datasets.make_dataset makes it",
        "normbench.datasets.files.csv",
        callable,
        lambda found: isinstance(found, Dataset),
    ),
    "normalizer": Place(
        "scheme: a class with fit and transform, or a function that gives one, "
        "such as sklearn.preprocessing.StandardScaler",
        "sklearn.preprocessing.StandardScaler",
        _makes_a_scheme,
        lambda found: _transforms(found) and not isinstance(found, type),
    ),
    "optimizer": Place(
        "function that gives a normbench.optimizers.Optimizer",
        "normbench.optimizers.momentum",
        callable,
        lambda found: isinstance(found, Optimizer),
    ),
}
_named: ContextVar[tuple[str, ...]] = ContextVar("packages", default=())


def names(group: str) -> list[str]:
    """Return the names of a group's options: those of the files under `conf/<group>`."""
    folder = CONF / group
    files = folder.rglob("*.yaml")
    return sorted(file.relative_to(folder).with_suffix("").as_posix() for file in files)


def described(group: str) -> str:
    """Return the options of a group, each with what its file says of it beside the `_target_`."""
    lines = []
    for name in names(group):
        comment = ABOUT.search((CONF / group / f"{name}.yaml").read_text())
        lines.append(f"  {name:16}{comment[1] if comment else ''}".rstrip() + "\n")
    return "".join(lines)


def no_option(group: str, name: str, known: Sequence[str], typed_in: str = "") -> str:
    """Return that a group has no such option, and what to type: one that is meant, or a list.

    typed_in: the setting that names the option, where it is not the group itself.
    """
    setting = spell_setting(typed_in or group, name)
    meant = remedy(group, name, known)
    if meant:
        return f"{setting}: {meant}"
    choices = ", ".join(known)
    return f"{setting}: no such option; choose one of {choices}{did_you_mean(name, known)}"


def options(group: str, name: str, typed_in: str = "") -> dict[str, Any]:
    """Return what `conf/<group>/<name>.yaml` says; raise `UserError` that lists the choices.

    typed_in: see `no_option`.
    """
    from omegaconf import OmegaConf

    if name not in names(group):
        raise UserError(no_option(group, name, names(group), typed_in))
    path = CONF / group / f"{name}.yaml"
    found = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    assert isinstance(found, dict)
    return {str(key): value for key, value in found.items()}


def entries(group: str, name: str) -> list[str]:
    """Return what an option of a group has entries for; its file is not read as YAML, in 4 ms."""
    return ENTRY.findall((CONF / group / f"{name}.yaml").read_text())


@contextmanager
def allowing(packages: Any) -> Iterator[None]:
    """Let a `_target_` name these packages too, as long as the context lasts.

    packages: a list of top-level names. Raises `UserError` where it is anything else, or where
    there is no package of a name.
    """
    rule = "a list of packages' names, such as packages=[mypackage]"
    names = check_list("packages", packages, rule)
    if not all(isinstance(name, str) and name.isidentifier() for name in names):
        raise UserError(f"packages={packages}: must be {rule}")
    for name in names:
        if name not in sys.modules and find_spec(name) is None:
            raise UserError(
                f"packages=[{name}]: there is no package or module {name} in the working folder "
                f"({Path.cwd()}) or in this environment; work in the folder that holds it, or "
                "install it"
            )
    token = _named.set(tuple(names))
    try:
        yield
    finally:
        _named.reset(token)


def locate(group: str, target: Any, setting: str = "") -> Any:
    """Return what a dotted path such as `normbench.costs.softmax` names, once it fits its group.

    Nothing is called. What may be imported: of this project, what an option of the group names; of
    scikit-learn, the public classes that transform; otherwise only packages that the user has
    named. setting: the one that names it, where that is not the group's `_target_`. Raises
    `UserError`.
    """
    typed = "the name of" if setting else f"{group}= and"
    setting = setting or f"{group}._target_"
    if not target:
        raise UserError(
            f"{setting}: is missing; the option's file says what it stands for in a line "
            f"such as _target_: {PLACES[group].example}"
        )
    target = str(target)
    module_name, _, attribute = target.rpartition(".")
    package = target.split(".")[0]
    if package == "normbench":  # the files under `conf` are the declaration
        if target not in _declared(group):
            raise UserError(
                f"{setting}={target}: is named by no option of this project; "
                f"write {typed} one of {', '.join(names(group))}"
            )
    elif package == "sklearn":
        _refuse_inside(group, target, setting)
    elif package not in _named.get():
        raise UserError(
            f"{setting}={target}: is of {package}; a _target_ is of this "
            "project, of scikit-learn or of a package that the setting packages names; where you "
            f"trust that code, add packages=[{package}]"
        )
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (Exception, SystemExit) as error:  # the user's own module may do anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(
            f"{setting}={target}: cannot be imported ({reason}); "
            f"give the dotted path of a function or class, such as {PLACES[group].example}"
        ) from error
    if not PLACES[group].takes(found) or (package == "sklearn" and not _is_scheme_class(found)):
        raise UserError(f"{setting}={target}: is no {PLACES[group].rule}")
    return found


@cache
def _declared(group: str) -> frozenset[str]:
    """Return each `_target_` of a group's options; the files are read once a process."""
    files = (file.read_text() for file in (CONF / group).glob("*.yaml"))
    return frozenset(name for text in files for name in TARGET.findall(text))


def _refuse_inside(group: str, target: str, setting: str) -> None:
    """Refuse all of scikit-learn but schemes named `sklearn.MODULE.NAME`, of a public module."""
    import sklearn

    parts = target.split(".")
    if group != "normalizer":
        raise UserError(
            f"{setting}={target}: scikit-learn gives schemes alone; here stands "
            f"a {PLACES[group].rule}"
        )
    if len(parts) != 3 or parts[1] not in sklearn.__all__:
        raise UserError(
            f"{setting}={target}: is in no public module of scikit-learn; "
            "write it as its documentation does, such as sklearn.preprocessing.StandardScaler"
        )


def _is_scheme_class(found: Any) -> bool:
    """Return whether a class of scikit-learn's own transforms points."""
    from sklearn.base import BaseEstimator

    return (
        isinstance(found, type)
        and issubclass(found, BaseEstimator)
        and found.__module__.startswith("sklearn.")
    )


def build(group: str, choice: Mapping[str, Any], link: tuple[str, str] | None = None) -> Any:
    """Return `_target_` called with the other entries of a choice.

    An option that the function does not take, or that it refuses with a ValueError, is a user's
    mistake; so is a function that gives another kind of thing. link: the setting that names a
    scheme beside the group itself, and its name there.
    """
    setting, within = (link[0], ".".join(link)) if link else ("", group)
    arguments = {key: value for key, value in choice.items() if key != "_target_"}
    if group == "normalizer":
        arguments = {key: _range(value) for key, value in arguments.items()}
    target = choice.get("_target_")
    made = locate(group, target, setting)
    if str(target).startswith("sklearn.") and arguments.get("memory") is not None:
        raise UserError(
            f"{within}.memory={arguments['memory']}: keeps pickles in a folder and loads them, "
            "which can run code; leave it out"
        )
    try:
        found = made(**arguments)
    except UserError:
        raise
    except (TypeError, ValueError) as error:
        shown = ", ".join(f"{within}.{key}={value}" for key, value in arguments.items())
        raise UserError(f"{shown or within}: {' '.join(str(error).split())}") from error
    if not PLACES[group].is_made(found):
        raise UserError(
            f"{setting or f'{group}._target_'}={target}: gives {type(found).__name__}; "
            f"it must be a {PLACES[group].rule}"
        )
    return found


def chain(schemes: Any) -> Any:
    """Return the named schemes one after the other, as a scikit-learn pipeline.

    schemes: a list of names under `conf/normalizer`, or of what a `_target_` may name, each alone
    or with settings of its own, as in `["standard", {"pca": {"components": 2}}]`. Raises
    `UserError` on an empty list, or a name or a setting that does not exist.
    """
    from sklearn.pipeline import make_pipeline

    if isinstance(schemes, str) or not isinstance(schemes, Sequence) or not schemes:
        raise UserError(
            f"normalizer.schemes={schemes}: must be a list of one scheme or more, "
            "such as [standard,pca]"
        )
    return make_pipeline(*(_link(entry) for entry in schemes))


def preconditioned(scheme: Any = "pca_sphere") -> Optimizer:
    """Return gradient descent preconditioned by a named scheme, see `optimizers.preconditioned`.

    scheme: as an entry of `chain`. Raises `UserError` on a name or a setting that does not exist.
    """
    return _preconditioned(_link(scheme, "optimizer.scheme"))


def _link(entry: Any, setting: str = "normalizer.schemes") -> Any:
    """Return the scheme that an entry of a setting stands for."""
    named = {entry: {}} if isinstance(entry, str) else entry
    alone = isinstance(named, Mapping) and len(named) == 1
    if not alone or not isinstance(next(iter(named.values())), Mapping):
        raise UserError(
            f"{setting}: {entry} is not a scheme; give a name, or a name with its "
            "settings, such as {pca:{components:2}}"
        )
    ((name, settings),) = named.items()
    is_path = "." in str(name)
    known = {"_target_": name} if is_path else options("normalizer", name, setting)
    return build("normalizer", known | dict(settings), (setting, str(name)))


def _range(value: Any) -> Any:
    """Return a list of numbers as a tuple, which scikit-learn wants where it takes a range."""
    numbers = isinstance(value, list) and all(isinstance(entry, (int, float)) for entry in value)
    return tuple(value) if numbers and value else value
