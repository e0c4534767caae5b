"""Choices by name: an option's file under `conf/`, and the object that it describes."""

import importlib
from collections.abc import Mapping
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
    # YAML has lists alone; scikit-learn takes tuples for ranges.
    arguments = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in choice.items()
        if key != "_target_"
    }
    made = locate(group, choice.get("_target_"))
    try:
        return made(**arguments)
    except UserError:
        raise
    except (TypeError, ValueError) as error:
        shown = ", ".join(f"{group}.{key}={value}" for key, value in arguments.items())
        raise UserError(f"{shown or group}: {' '.join(str(error).split())}") from error
