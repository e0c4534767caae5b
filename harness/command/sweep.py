"""A sweep: its jobs are checked before any starts, share one parent run, and end in one table.

With `__main__`, `config` and `job`, the only place that knows Hydra. Heavy libraries are imported
where they are needed, so that `--help` and `--cfg job` do without them.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import IO, Any, cast

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.types import HydraContext
from omegaconf import DictConfig, OmegaConf

from normbench.command import config as configs
from normbench.command.errors import SweepError

LIBRARIES = ("numpy", "scipy", "autograd", "scikit-learn", "hydra-core", "mlflow", "matplotlib")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
AT_ONCE = 100  # jobs handed to the launcher, which keeps the config of each until all are done


class Sweep(BasicSweeper):
    """Hydra's own sweeper, which checks the composed jobs before it launches them."""

    def sweep(self, arguments: list[str]) -> Any:
        """Check, run and conclude a sweep; leave with exit code 1 or 2 where jobs failed."""
        assert self.config is not None
        for argument in arguments:
            if argument.startswith("+"):
                _refuse_added(argument)
            _refuse_several_studies(argument)
        HydraConfig.instance().set_config(self.config)
        self.folder = Path(self.config.hydra.sweep.dir).absolute()
        self.arguments = arguments
        self.parents: dict[str, str] = {}
        self.lock: IO[str] | None = None
        self.composed: dict[tuple[str, ...], DictConfig] = {}
        try:
            batch = self._batch()
            experiments = self._check(batch)
            self._start(experiments, len(batch))
            code = self._conclude(self._launch(batch))
        except BaseException as error:
            self._stop(error)
            raise
        if code:
            raise SystemExit(code)

    def _batch(self) -> Sequence[Sequence[str]]:
        """Return the overrides of every job; unlike Hydra, write no config, with its passwords."""
        from normbench.datasets import UserError

        assert self.hydra_context is not None
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        overrides = parser.parse_overrides([*self._parse_config(), *self.arguments])
        (batch,) = self.split_arguments(overrides, None)
        if not batch:
            raise UserError(
                f"{' '.join(self.arguments)}: is a sweep of no jobs; "
                "check the pattern of the option that is swept"
            )
        return batch

    def _check(self, batch: Sequence[Sequence[str]]) -> list[str]:
        """Compose every job and return the names of their experiments, once one job can run.

        Where every job is a user's mistake the first is raised and nothing is recorded.
        """
        from normbench.datasets import UserError

        assert self.hydra_context is not None
        assert self.config is not None
        experiments: dict[str, None] = {}
        first: UserError | None = None
        fits = False
        loader = self.hydra_context.config_loader
        if len(batch) > AT_ONCE:  # some 20 a second
            print(f"checking {len(batch)} jobs", file=sys.stderr)
        for place, overrides in enumerate(batch):
            config = loader.load_sweep_config(self.config, list(overrides))
            if place < AT_ONCE and _is_basic(self.config):
                self.composed[tuple(overrides)] = config
            HydraConfig.instance().set_config(config)
            experiments[configs.experiment_name(config)] = None
            try:
                fits = fits or bool(configs.prepare(configs.without_hydra(config)))
            except UserError as error:
                first = first or error
        if first and not fits:
            raise first
        return list(experiments)

    def _start(self, experiments: Sequence[str], jobs: int) -> None:
        """Open the store, make a sweep run in each experiment, and write the ledger."""
        from normbench.datasets import UserError
        from normbench.recording import leftovers
        from normbench.recording.store import without_passwords

        assert self.config is not None
        self.writer = configs.writer(self.config)
        try:
            written = leftovers.tidy(self.writer, self.folder.parent)
            self.lock = leftovers.hold(self.folder)
        except OSError as error:
            raise UserError(
                f"hydra.sweep.dir={self.folder}: cannot be written ({error.strerror}); "
                "name a folder that can, such as hydra.sweep.dir=/tmp/sweep"
            ) from error
        if written:
            print(f"logged {written} jobs that an earlier command had kept", file=sys.stderr)
        # The id stands in MLflow's tags and queries: letters and digits, dots and dashes alone.
        self.sweep_id = self.writer.free_id(re.sub(r"[^\w.-]", "_", self.folder.name, flags=re.A))
        command = without_passwords("normbench " + shlex.join(self.arguments)).strip()
        tags = {"command": command, "jobs": str(jobs), **leftovers.home(self.folder)}
        tags |= {**_versions(), **_commit()}
        for name in experiments:
            self.parents[name] = self.writer.start_sweep(name, self.sweep_id, tags)
        ledger = {
            "sweep_id": self.sweep_id,
            "parents": self.parents,
            "jobs": jobs,
            "process": os.getpid(),
        }
        (self.folder / leftovers.LEDGER).write_text(json.dumps(ledger))
        _share_threads(self.config)

    def _launch(self, batch: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """Return what became of every job. An error that is not a job's own is raised at the end.

        Raises `SweepError` where a launcher's process was killed.
        """
        assert self.launcher is not None
        if self.composed:
            context = cast(HydraContext, self.launcher.hydra_context)  # type: ignore[attr-defined]
            loader: Any = _Composed(context.config_loader, self.composed)
            self.launcher.hydra_context = HydraContext(  # type: ignore[attr-defined]
                config_loader=loader, callbacks=context.callbacks
            )
        outcomes: list[dict[str, Any]] = []
        bug: Exception | None = None
        for first in range(0, len(batch), AT_ONCE):
            some = batch[first : first + AT_ONCE]
            try:
                results = self.launcher.launch(some, initial_job_idx=first)
            except BrokenProcessPool as error:
                raise SweepError(
                    "a job's process was killed, perhaps for want of memory; what had finished is "
                    "recorded, and the same command runs the rest (with hydra.launcher.n_jobs=1 "
                    "one job has all the memory)"
                ) from error
            for result in results:
                try:
                    outcomes.append(result.return_value)
                except Exception as error:
                    bug = bug or error
        if bug:
            raise bug
        return outcomes

    def _stop(self, error: BaseException) -> None:
        """End what a sweep that stops before its end has left running; its jobs stay recorded."""
        if not self.parents:  # nothing is recorded: nothing stays
            if self.lock:
                from normbench.recording.leftovers import LOCK

                (self.folder / LOCK).unlink(missing_ok=True)
                with suppress(OSError):  # a folder of the user's
                    self.folder.rmdir()
            return
        status = "KILLED" if isinstance(error, (KeyboardInterrupt, SystemExit)) else "FAILED"
        with suppress(Exception):  # the next command does it
            self.writer.end_abandoned(self._is_mine, status)

    def _is_mine(self, tags: Any) -> bool:
        return bool(tags.get("folder") == str(self.folder))

    def _conclude(self, outcomes: list[dict[str, Any]]) -> int:
        """Draw and print the comparison, end the sweep's runs; return the exit code."""
        from normbench.recording.drawn import Known
        from normbench.recording.pages import publish
        from normbench.results.conclusion import present
        from normbench.results.errors import ResultsError
        from normbench.results.runs import load

        lost = [outcome for outcome in outcomes if outcome["failure"] == "store"]
        if lost:
            raise SweepError(self._loss(lost, len(outcomes)))
        failures = [outcome for outcome in outcomes if outcome["failure"]]
        reused = sum(outcome["reused"] for outcome in outcomes)
        if reused:
            print(f"reused {reused} of {len(outcomes)}")
        for experiment, parent in self.parents.items():
            jobs = [
                {"run_id": outcome["run_id"], "reused": outcome["reused"]}
                for outcome in outcomes
                if outcome["experiment"] == experiment
            ]
            self.writer.log_json(parent, jobs, "jobs.json")
        known = Known(self.writer, self.folder, self.parents, outcomes)
        try:
            found = load(self.writer.store.uri, self.sweep_id)
            publish(self.writer, found, self.parents)
            drawn = known.copied()
            try:
                written = present(found, self.folder, drawn=drawn)
            except BrokenPipeError:  # as in `normbench | head`: the figures are still due
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                written = present(found, self.folder, drawn=drawn)
        except ResultsError as error:
            words = str(error.args[0]).removeprefix("--out ")
            raise SweepError(
                f"{words}; every job is recorded: normbench results draws them"
            ) from error
        for experiment, files in written.items():
            for file in files:
                self.writer.log_file(self.parents[experiment], file)
        known.remember(written)
        status = "FAILED" if len(failures) == len(outcomes) else "FINISHED"
        for parent in self.parents.values():
            self.writer.finish(parent, status)
        self.writer.end_abandoned(self._is_mine)  # what a call repeated in vain has left
        if not failures:
            return 0
        return 2 if all(outcome["failure"] == "user" for outcome in failures) else 1

    def _loss(self, lost: Sequence[dict[str, Any]], jobs: int) -> str:
        """Return the line about jobs that are not in the store."""
        kept = sum(outcome["kept"] for outcome in lost)
        words = [lost[0]["reason"]]
        if kept:
            words.append(
                f"{kept} of {jobs} jobs are kept in {self.folder} and logged by the next command"
            )
        if kept < len(lost):
            words.append(f"{len(lost) - kept} of {jobs} could not be kept: the same command runs")
            words[-1] += " them again"
        return "; ".join(words)


class _Composed:
    """Hydra's loader, which hands out what is composed already: that is half of a sweep's start."""

    def __init__(self, loader: Any, composed: dict[tuple[str, ...], DictConfig]) -> None:
        self._loader, self._composed = loader, composed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def load_sweep_config(self, master: DictConfig, overrides: list[str]) -> DictConfig:
        """Return a job's config; each that is kept is handed out once."""
        known = self._composed.pop(tuple(overrides), None)
        if known is None:
            return cast(DictConfig, self._loader.load_sweep_config(master, overrides))
        OmegaConf.set_readonly(known.hydra, None)  # as HydraConfig left it
        return known


def _is_basic(config: DictConfig) -> bool:
    """Return whether the jobs run here, one after the other: another process would be sent all."""
    return str(config.hydra.launcher.get("_target_")).endswith(".BasicLauncher")


def register() -> None:
    """Make the sweeper and the resolvers known to Hydra.

    Hydra instantiates only plugins of its own namespace package, so the class says it lives there.
    """
    home = ModuleType("hydra_plugins.normbench")
    Sweep.__module__, home.__dict__["Sweep"] = home.__name__, Sweep
    sys.modules[home.__name__] = home
    Plugins.instance().register(Sweep)
    configs.register_resolvers()


def _share_threads(config: DictConfig) -> None:
    """Share the cores out among jobs that a launcher runs side by side, for processes to come."""
    side_by_side = config.hydra.launcher.get("n_jobs")
    if side_by_side is None:
        return
    cores = len(os.sched_getaffinity(0))
    jobs = cores if side_by_side < 0 else max(1, side_by_side)
    for name in THREADS:
        os.environ.setdefault(name, str(max(1, cores // jobs)))


def _versions() -> dict[str, str]:
    from normbench.engine.fast.kernels import in_use

    found = {f"version.{name}": version(name) for name in LIBRARIES}
    return {"version.python": sys.version.split()[0], **found, "blas": in_use()}


def _commit() -> dict[str, str]:
    """Return the commit of the code and whether the tree was dirty; nothing outside a checkout."""
    from normbench import CHECKOUT

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        # Installed in an environment inside the user's own repository, git would tell of that one.
        if Path(git("rev-parse", "--show-toplevel")) != CHECKOUT:
            return {}
        commit = git("rev-parse", "HEAD")
        dirty = bool(git("status", "--porcelain"))
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {"mlflow.source.git.commit": commit, "git_dirty": str(dirty).lower()}


def _refuse_added(argument: str) -> None:
    from normbench.datasets import UserError

    if argument.startswith(("+experiment=", "+hydra")):
        return
    bare = argument.lstrip("+")
    raise UserError(
        f"{argument}: adds a setting that nothing reads; write {bare} for a setting that exists "
        "(normbench --cfg job lists them)"
    )


def _refuse_several_studies(argument: str) -> None:
    from normbench.datasets import UserError

    key, _, value = argument.lstrip("+").partition("=")
    if key == "experiment" and ("," in value or "(" in value):
        raise UserError(
            f"{argument}: each study sets a sweep of its own, so that several cannot be swept at "
            "once; run them one after the other (make textbook runs those of the textbook)"
        )
