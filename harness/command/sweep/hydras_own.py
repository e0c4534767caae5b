"""What Hydra does not offer as an interface; everything of the kind stands here.

`hydra.main` loads a pickle that a flag names, and starts what a config names (callbacks, logs)
before this project sees it: its parts are put to work here instead. Its sweepers live in its own
namespace package, and a launcher asks its `hydra_context` for the config of each job.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
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
from hydra.types import HydraContext
from hydra.version import setbase
from omegaconf import DictConfig

from normbench.choices import CONF
from normbench.command.config import help as helping
from normbench.command.config.errors import reading
from normbench.command.config.grid import Grid
from normbench.command.config.hydra_settings import refuse_foreign
from normbench.recording.resume import orphans


def begin() -> None:
    """Let Hydra find its own parts: without them it knows no kind of place to look for options.

    Another project's launcher, where it is installed, has options that are not taken here; one has
    the name of ours, which would then have to fit it.
    """
    setbase("1.3")
    Plugins.instance()
    for theirs in ("submitit_local.yaml", "submitit_slurm.yaml"):
        ConfigStore.instance().repo["hydra"]["launcher"].pop(theirs, None)


@contextmanager
def started(folder: Path | None) -> Iterator[Hydra]:
    """Yield Hydra on this project's options; those of a folder of the user's come first."""
    begin()
    path = ConfigSearchPathImpl()
    path.append("hydra", "pkg://hydra.conf")
    path.append("main", str(CONF))
    path.append("schema", "structured://")
    if folder is not None:
        path.prepend("command-line", f"file://{folder}", SearchPathQuery(provider="schema"))
    try:
        yield _Careful.create_main_hydra2("normbench", path)
    finally:
        GlobalHydra.instance().clear()


class _Careful(Hydra):
    """Hydra, which starts nothing that a config names before it is checked."""

    def get_help(self, *arguments: Any, **named: Any) -> str:
        """Return the text of `--help`, with a line for each scheme and the table of settings."""
        return helping.described(super().get_help(*arguments, **named))

    def compose_config(self, *arguments: Any, **named: Any) -> DictConfig:
        """Return the config of the words; raise `UserError` where it reaches beyond a comparison.

        Hydra's logs stay as they are: a config of them can name any program.
        """
        named["with_log_configuration"] = False
        with reading():
            config = super().compose_config(*arguments, **named)
            refuse_foreign(config)
        return config


def register(*plugins: type[Plugin]) -> None:
    """Make a sweeper and launchers known to Hydra, as `hydra_plugins.normbench.NAME`."""
    home = ModuleType("hydra_plugins.normbench")
    sys.modules[home.__name__] = home
    for plugin in plugins:
        plugin.__module__ = home.__name__
        setattr(home, plugin.__name__, plugin)
        Plugins.instance().register(plugin)


def hand_configs(launcher: Any, grid: Grid) -> None:
    """Let a launcher that runs the jobs in this process take their configs from the grid.

    Every other launcher composes them where it runs them: it would have to be sent all.
    """
    if not str(launcher.config.hydra.launcher.get("_target_")).endswith(".BasicLauncher"):
        return
    context = launcher.hydra_context
    loader = copy(context.config_loader)  # the grid has the original
    loader.load_sweep_config = lambda master, words: grid.config(tuple(words))
    launcher.hydra_context = HydraContext(config_loader=loader, callbacks=context.callbacks)


@contextmanager
def guarded_workers(launcher: Any) -> Iterator[None]:
    """Let joblib's processes not hear Ctrl-C, and end with this one, from the first moment on.

    Ctrl-C is the sweep's, which ends them; while they begin, they would print a traceback.
    """
    if type(launcher).__name__ != "JoblibLauncher":
        yield
        return
    from joblib.externals.loky.backend import fork_exec as loky

    plain = loky.fork_exec

    def masked(command: list[str], *arguments: Any, **named: Any) -> Any:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return plain(orphans.watched(command), *arguments, **named)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    loky.fork_exec = masked
    try:
        yield
    finally:
        loky.fork_exec = plain
