"""Resolvers: what `${...}` in a config can stand for, beside another setting."""

from functools import partial
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from normbench import settings
from normbench.command.config.compose import hydra_of
from normbench.datasets import UserError

PER_CHOICE = {"per_scheme": "normalizer", "per_optimizer": "optimizer"}


def register() -> None:
    """Register the resolvers of this project with OmegaConf.

    They are `${decades:first,last}`, `${per_scheme:{name:value}}` and `${per_optimizer:...}`.
    """
    OmegaConf.register_new_resolver("decades", _decades, replace=True)
    for resolver, group in PER_CHOICE.items():
        OmegaConf.register_new_resolver(
            resolver, partial(_per_choice, resolver, group), replace=True
        )


def _decades(*arguments: Any) -> ListConfig:
    """Return powers of ten as a list of OmegaConf, which `--cfg job --resolve` can print."""
    return OmegaConf.create(settings.powers_of_ten(*arguments))


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
