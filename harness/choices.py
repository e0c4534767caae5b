"""Choices by name: an option's file under `conf/`, and the object that it describes."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets.dataset import UserError

CONF = Path(__file__).resolve().parent.parent / "conf"


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


def locate(group: str, target: Any) -> Any:
    """Return the function or class at a dotted path such as `costs.softmax`."""
    module_name, _, attribute = str(target).rpartition(".")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(
            f"{group}._target_={target}: cannot be imported ({error}); "
            "give the dotted path of a function or class, such as costs.softmax"
        ) from error


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
