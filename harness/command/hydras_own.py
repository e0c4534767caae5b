"""What Hydra does not offer as an interface; everything of the kind stands here.

Its sweepers live in its own namespace package, and a launcher asks its `hydra_context` for the
config of each job.
"""

import sys
from types import ModuleType
from typing import Any, cast

from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext
from omegaconf import DictConfig

from normbench.command.grid import Grid


def register(sweeper: type[Sweeper]) -> None:
    """Make a sweeper known to Hydra, as `hydra_plugins.normbench.NAME`."""
    home = ModuleType("hydra_plugins.normbench")
    sweeper.__module__ = home.__name__
    setattr(home, sweeper.__name__, sweeper)
    sys.modules[home.__name__] = home
    Plugins.instance().register(sweeper)


def hand_configs(launcher: Any, grid: Grid) -> None:
    """Let a launcher that runs the jobs in this process take their configs from the grid.

    Every other launcher composes them where it runs them: it would have to be sent all.
    """
    if not str(launcher.config.hydra.launcher.get("_target_")).endswith(".BasicLauncher"):
        return
    context = cast(HydraContext, launcher.hydra_context)
    loader = cast(Any, _FromGrid(context.config_loader, grid))
    launcher.hydra_context = HydraContext(config_loader=loader, callbacks=context.callbacks)


class _FromGrid:
    """Hydra's loader, except that the configs of jobs come from a grid."""

    def __init__(self, loader: Any, grid: Grid) -> None:
        self._loader, self._grid = loader, grid

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def load_sweep_config(self, master: DictConfig, overrides: list[str]) -> DictConfig:
        """Return a job's config."""
        return self._grid.config(tuple(overrides))
