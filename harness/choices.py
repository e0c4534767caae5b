"""Choices by name: an option's file under `conf/`, and the object that it describes."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.resources import files
from pathlib import Path
from typing import Any

from normbench.datasets.dataset import UserError

CONF = Path(str(files("normbench.conf")))
OWN = ("normbench", "sklearn")
# What `_target_` named before the project was a package, and what it is now.
FORMER = {
    "costs.": "normbench.costs.",
    "datasets.": "normbench.datasets.",
    "optimizers.": "normbench.optimizers.",
    "harness.normalizers.": "normbench.normalizers.",
    "harness.choices.": "normbench.choices.",
}
_named: ContextVar[tuple[str, ...]] = ContextVar("packages", default=())


def options(group: str, name: str) -> dict[str, Any]:
    """Return what `conf/<group>/<name>.yaml` says; raise `UserError` that lists the choices."""
    from omegaconf import OmegaConf

    path = CONF / group / f"{name}.yaml"
    if path.parent != CONF / group or not path.is_file():
        names = ", ".join(sorted(file.stem for file in (CONF / group).glob("*.yaml")))
        raise UserError(f"{group}={name}: no such option; choose one of {names}")
    found = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    assert isinstance(found, dict)
    return {str(key): value for key, value in found.items()}


@contextmanager
def allowing(packages: Any) -> Iterator[None]:
    """Let a `_target_` name these packages too, as long as the context lasts.

    packages: a list of top-level names. Raises `UserError` where it is anything else.
    """
    names = [] if isinstance(packages, str) or not hasattr(packages, "__iter__") else list(packages)
    if not all(isinstance(name, str) and name.isidentifier() for name in names) or (
        not names and packages not in ([], ())
    ):
        raise UserError(
            f"packages={packages}: must be a list of packages' names, such as packages=[mypackage]"
        )
    token = _named.set(tuple(names))
    try:
        yield
    finally:
        _named.reset(token)


def canonical(value: Any, packages: Any = ()) -> Any:
    """Return a setting with every `_target_` in it in its present spelling.

    packages: the user's own, whose names mean what they say.
    """
    if isinstance(value, list):
        return [canonical(entry, packages) for entry in value]
    if not isinstance(value, dict):
        return value
    made = {key: canonical(entry, packages) for key, entry in value.items()}
    target = made.get("_target_")
    if isinstance(target, str):
        made["_target_"] = _present(target, packages)
    return made


def _present(target: str, packages: Any) -> str:
    own = isinstance(packages, (list, tuple)) and target.split(".")[0] in packages
    for former, present in FORMER.items():
        if target.startswith(former) and not own:
            return present + target.removeprefix(former)
    return target


def locate(group: str, target: Any) -> Any:
    """Return the function or class at a dotted path such as `normbench.costs.softmax`.

    Raises `UserError` where it is not of this project, of scikit-learn or of a package that the
    user names: nothing else is imported, so that a config is no program.
    """
    target = _present(str(target), _named.get())
    _refuse_foreign(group, target, target)
    module_name, _, attribute = target.rpartition(".")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(
            f"{group}._target_={target}: cannot be imported ({error}); "
            "give the dotted path of a function or class, such as normbench.costs.softmax"
        ) from error
    if module_name.split(".")[0] in OWN:  # a module also holds what it imports from elsewhere
        formula = getattr(found, "formula", found)  # of a cost that autograd has wrapped
        home = getattr(formula, "__module__", None) or getattr(found, "__name__", "")
        _refuse_foreign(group, target, str(home))
    return found


def _refuse_foreign(group: str, target: Any, path: str) -> None:
    package = path.split(".")[0]
    if package not in (*OWN, *_named.get()):
        raise UserError(
            f"{group}._target_={target}: is of {package or 'no package'}; a _target_ is of this "
            "project, of scikit-learn or of a package that the setting packages names; where you "
            f"trust that code, add packages=[{package}]"
        )


def build(group: str, choice: Mapping[str, Any]) -> Any:
    """Return `_target_` called with the other entries of a choice.

    An option that the function does not take, or that it refuses with a ValueError, is a user's
    mistake.
    """
    take = _range if group == "normalizer" else _as_it_is
    arguments = {key: take(value) for key, value in choice.items() if key != "_target_"}
    made = locate(group, choice.get("_target_"))
    try:
        return made(**arguments)
    except UserError:
        raise
    except (TypeError, ValueError) as error:
        shown = ", ".join(f"{group}.{key}={value}" for key, value in arguments.items())
        raise UserError(f"{shown or group}: {' '.join(str(error).split())}") from error


def chain(schemes: Any) -> Any:
    """Return the named schemes one after the other, as a scikit-learn pipeline.

    schemes: a list of names under `conf/normalizer`, each alone or with settings of its own, as in
    `["standard", {"pca": {"components": 2}}]`. Raises `UserError` on an empty list, or a name or
    a setting that does not exist.
    """
    from sklearn.pipeline import make_pipeline

    if isinstance(schemes, str) or not isinstance(schemes, Sequence) or not schemes:
        raise UserError(
            f"normalizer.schemes={schemes}: must be a list of one scheme or more, "
            "such as [standard,pca]"
        )
    return make_pipeline(*(_link(entry) for entry in schemes))


def _link(entry: Any) -> Any:
    """Return the scheme that an entry of a chain stands for."""
    named = {entry: {}} if isinstance(entry, str) else entry
    alone = isinstance(named, Mapping) and len(named) == 1
    if not alone or not isinstance(next(iter(named.values())), Mapping):
        raise UserError(
            f"normalizer.schemes: {entry} is not a scheme; give a name, or a name with its "
            "settings, such as {pca:{components:2}}"
        )
    ((name, settings),) = named.items()
    return build("normalizer", options("normalizer", name) | dict(settings))


def _as_it_is(value: Any) -> Any:
    return value


def _range(value: Any) -> Any:
    """Return a list of numbers as a tuple, which scikit-learn wants where it takes a range."""
    numbers = isinstance(value, list) and all(isinstance(entry, (int, float)) for entry in value)
    return tuple(value) if numbers and value else value
