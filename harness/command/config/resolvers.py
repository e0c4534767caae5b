"""What `${...}` in a config can stand for beside another setting."""

from functools import partial
from typing import Any

from omegaconf import DictConfig, OmegaConf

from normbench import settings
from normbench.command.config.compose import hydra_of
from normbench.datasets import UserError

PER_CHOICE = {"per_scheme": "normalizer", "per_optimizer": "optimizer"}


def register() -> None:
    """Make `${decades:first,last}`, `${per_scheme:{name:value}}`, `${per_optimizer:...}` known."""
    OmegaConf.register_new_resolver("decades", settings.decades, replace=True)
    for word, group in PER_CHOICE.items():
        OmegaConf.register_new_resolver(word, partial(_per_choice, word, group), replace=True)


def _per_choice(word: str, group: str, values: Any, *, _root_: DictConfig) -> Any:
    """Return the value of the job's choice: `${per_scheme:{identity:1,standard:2}}`."""
    name = str(hydra_of(_root_).runtime.choices[group])
    if name not in values:
        raise UserError(
            f"{word}: has no value for {group}={name}, only for {', '.join(values)}; add one"
        )
    return values[name]
