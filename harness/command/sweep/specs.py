"""The jobs of a grid, composed once for jobs that differ only in numbers."""

import re
from dataclasses import replace

from omegaconf import OmegaConf

from normbench.command.config import compose
from normbench.command.config.compose import JobSpec
from normbench.command.config.errors import user_errors
from normbench.command.config.grid import Grid

MAX_COMPOSED = 100  # jobs that are kept: some kilobytes each


class Specs:
    """The specifications of a command's jobs, by their overrides."""

    def __init__(self) -> None:
        # By the overrides that jobs share: one of these jobs, and its settings as YAML.
        self.composed: dict[tuple[str, ...], tuple[JobSpec, str]] = {}

    def get(self, grid: Grid, job: tuple[str, ...]) -> JobSpec:
        """Return a job as its config describes it, from the config of a similar job if possible.

        That is one which differs only in options of choices that are numbers here, and to which no
        other setting refers: composing a config takes much longer.

        Args:
            grid: The jobs of the sweep.
            job: The overrides of the job.

        Raises:
            UserError: The config cannot be composed.
        """
        options = grid.options_of(job)
        shared_overrides = tuple(
            override for override in job if override.split("=")[0] not in options
        )
        # A number cannot refer to another setting, as a text such as `${seed}` does.
        are_numbers = all(isinstance(value, (int, float)) for value in options.values())
        if are_numbers and shared_overrides in self.composed:
            spec, written = self.composed[shared_overrides]
            if not any(_refers(written, key) for key in options):
                return replace(
                    spec,
                    overrides=job,
                    plain_settings=compose.replace_settings(spec.plain_settings, options),
                )
        if len(self.composed) >= MAX_COMPOSED:
            self.composed.clear()  # jobs with equal overrides stand near each other in a grid
        with user_errors():
            config = grid.config(job)
        spec = JobSpec.from_config(config)
        own_settings = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
        written = OmegaConf.to_yaml(own_settings, resolve=False)
        self.composed[shared_overrides] = spec, written
        return spec


def _refers(written: str, key: str) -> bool:
    """Return whether any setting may refer to another, as `seed: ${dataset.split_seed}` does.

    Args:
        written: All settings of a job as YAML, with their references unresolved.
        key: The setting that may be referred to. Its last part decides, since a relative reference
            does not name the group.
    """
    name = re.escape(key.rpartition(".")[2])
    return re.search(rf"\$\{{[^}}]*\b{name}\b", written) is not None
