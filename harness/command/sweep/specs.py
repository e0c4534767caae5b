"""The jobs of a grid, composed once for those that differ in numbers alone."""

import re
from dataclasses import replace

from omegaconf import OmegaConf

from normbench.command.config import compose
from normbench.command.config.compose import JobSpec
from normbench.command.config.errors import reading
from normbench.command.config.grid import Grid


class Specs:
    """What a command's jobs are, by their words."""

    def __init__(self) -> None:
        # The words that jobs share, one such job, and its settings as they are written.
        self.composed: tuple[tuple[str, ...], JobSpec, str] | None = None

    def of(self, grid: Grid, words: tuple[str, ...]) -> JobSpec:
        """Return a job as its config describes it.

        Raises `UserError` where a setting cannot be resolved.
        """
        options = grid.options_of(words)
        others = tuple(word for word in words if word.split("=")[0] not in options)
        numbers = all(isinstance(value, (int, float)) for value in options.values())
        if numbers and self.composed and self.composed[0] == others:
            _, spec, written = self.composed
            if not any(_refers(written, key) for key in options):
                return replace(spec, words=words, plain=compose.replaced(spec.plain, options))
        self.composed = None
        with reading():
            config = grid.config(words)
        spec = JobSpec.of(config)
        own = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
        self.composed = others, spec, OmegaConf.to_yaml(own, resolve=False)
        return spec


def _refers(written: str, key: str) -> bool:
    """Return whether a setting refers to another, as `seed=${dataset.split_seed}` does."""
    name = re.escape(key.rpartition(".")[2])
    return re.search(rf"\$\{{[^}}]*\b{name}\b", written) is not None
