"""Resolvers: what `${...}` in a config can stand for, beside another setting."""

import os
from functools import partial
from typing import Any

from omegaconf import DictConfig, Node, OmegaConf
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
    OmegaConf.register_new_resolver("decades", settings.decades, replace=True)
    for resolver, group in PER_CHOICE.items():
        OmegaConf.register_new_resolver(
            resolver, partial(_per_choice, resolver, group), replace=True
        )


def _environment(name: str, default: Any = ..., *, _node_: Node) -> str | None:
    """Return the value of an environment variable, or the default, as OmegaConf does.

    The setting that has the value is treated as a secret, except for `PLAIN_VARIABLES`.
    """
    value = oc.env(name) if default is ... else oc.env(name, default)
    if name in os.environ and name not in PLAIN_VARIABLES:
        setting = str(_node_._get_full_key(None)).partition("[")[0]  # of a list's entry, the list
        secrets.learn_setting(setting, str(value))
    return value


def _per_choice(resolver: str, group: str, values: Any, *, _root_: DictConfig) -> Any:
    """Return the value of the job's choice: `${per_scheme:{identity:1,standard:2}}`."""
    name = str(hydra_of(_root_).runtime.choices[group])
    if name not in values:
        raise UserError(
            f"{resolver}: has no value for {group}={name}, only for {', '.join(values)}; add one"
        )
    return values[name]
