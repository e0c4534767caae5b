"""Resolvers: what `${...}` in a config can stand for, beside another setting."""

import os
from functools import partial
from typing import Any

from omegaconf import DictConfig, ListConfig, Node, OmegaConf
from omegaconf.resolvers import oc

from normbench import settings
from normbench.command.config.compose import hydra_of
from normbench.datasets import UserError
from normbench.results.safe import secrets

PLAIN_VARIABLES = ("NORMBENCH_DATA", "XDG_CACHE_HOME", "HOME")  # no secret stands there
PER_CHOICE = {"per_scheme": "normalizer", "per_optimizer": "optimizer"}


def register() -> None:
    """Register the resolvers of this project with OmegaConf.

    They are `${decades:first,last}`, `${per_scheme:{name:value}}`, `${per_optimizer:...}`, and
    `${oc.env:NAME}`, whose value is treated as a secret.
    """
    OmegaConf.register_new_resolver("oc.env", _environment, replace=True)
    OmegaConf.register_new_resolver("decades", _decades, replace=True)
    for resolver, group in PER_CHOICE.items():
        OmegaConf.register_new_resolver(
            resolver, partial(_per_choice, resolver, group), replace=True
        )


def _decades(*arguments: Any) -> ListConfig:
    """Return powers of ten as a list of OmegaConf, which `--cfg job --resolve` can print."""
    return OmegaConf.create(settings.powers_of_ten(*arguments))


def _environment(name: str, default: Any = ..., *, _node_: Node) -> str | None:
    """Return the value of an environment variable, or the default, as OmegaConf does.

    The setting that has the value is treated as a secret, except for `PLAIN_VARIABLES`.

    Args:
        name: The name of the variable.
        default: The value where the variable is not set; `...` where that is an error.
        _node_: The node of the setting that refers to the variable, which OmegaConf passes.
    """
    value = oc.env(name) if default is ... else oc.env(name, default)
    if name in os.environ and name not in PLAIN_VARIABLES:
        # The setting of an entry of a list is the list.
        setting = str(_node_._get_full_key(None)).partition("[")[0]
        secrets.learn_setting(setting, str(value))
    return value


def _per_choice(resolver: str, group: str, values: Any, *, _root_: DictConfig) -> Any:
    """Return the value of the job's choice: `${per_scheme:{identity:1,standard:2}}`.

    Args:
        resolver: The name of the resolver, for messages.
        group: The group whose choice selects the value, such as `normalizer`.
        values: The values by the names of options.
        _root_: The whole config, which OmegaConf passes.

    Raises:
        UserError: The choice has no value.
    """
    name = str(hydra_of(_root_).runtime.choices[group])
    if name not in values:
        raise UserError(
            f"{resolver}: has no value for {group}={name}, only for {', '.join(values)}; add one"
        )
    return values[name]
