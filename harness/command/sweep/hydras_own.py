"""What Hydra does not offer as an interface; everything of the kind stands here.

`hydra.main` loads a pickle that a flag names, and starts what a config names (callbacks, logs)
before this project sees it: its parts are put to work here instead. Its sweepers live in its own
namespace package.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from hydra._internal.config_search_path_impl import ConfigSearchPathImpl
from hydra._internal.hydra import Hydra
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.plugins.plugin import Plugin
from hydra.version import setbase
from omegaconf import DictConfig

from normbench.choices import CONF
from normbench.command.config import help as helping
from normbench.command.config.errors import user_errors
from normbench.command.config.hydra_settings import refuse_foreign


def load_plugins() -> None:
    """Load Hydra's plugins, without which it cannot search for options.

    Hydra's own plugin for submitit, where it is installed, registers launchers that are not
    accepted here, one of them under a name of this project's; they are removed.
    """
    setbase("1.3")  # Hydra's `version_base`: the defaults of that version
    Plugins.instance()
    for plugin_option in ("submitit_local.yaml", "submitit_slurm.yaml"):
        ConfigStore.instance().repo["hydra"]["launcher"].pop(plugin_option, None)


@contextmanager
def hydra_session(folder: Path | None) -> Iterator[Hydra]:
    """Yield Hydra on this project's options, and clear its global state at the end.

    Args:
        folder: A folder of the user's options, under names that this project's have not; None for
            none.
    """
    load_plugins()
    path = ConfigSearchPathImpl()
    path.append("hydra", "pkg://hydra.conf")
    path.append("main", str(CONF))
    path.append("schema", "structured://")
    # After `main`: of equal names, Hydra takes this project's option.
    if folder is not None:
        path.prepend("command-line", f"file://{folder}", SearchPathQuery(provider="schema"))
    try:
        yield _CheckedHydra.create_main_hydra2("normbench", path)
    finally:
        GlobalHydra.instance().clear()


class _CheckedHydra(Hydra):
    """Hydra, which starts nothing that a config names before it is checked."""

    def get_help(self, *arguments: Any, **named: Any) -> str:
        """Return Hydra's text of `--help`, with the schemes and the table of settings filled in."""
        return helping.fill_in(super().get_help(*arguments, **named))

    def compose_config(self, *arguments: Any, **named: Any) -> DictConfig:
        """Return the composed config; raise `UserError` where it does more than a comparison.

        The arguments are those of Hydra's method. Logging is not configured: such a config can
        name any program.
        """
        named["with_log_configuration"] = False
        with user_errors():
            config = super().compose_config(*arguments, **named)
            refuse_foreign(config)
        return config


def register(*plugins: type[Plugin]) -> None:
    """Register a sweeper and launchers with Hydra, as `hydra_plugins.normbench.NAME`.

    Hydra accepts plugins of the package `hydra_plugins` alone, and loads them by that path: a
    module of that name is created.
    """
    home = ModuleType("hydra_plugins.normbench")
    sys.modules[home.__name__] = home
    for plugin in plugins:
        plugin.__module__ = home.__name__
        setattr(home, plugin.__name__, plugin)
        Plugins.instance().register(plugin)
