"""A sweep: its jobs are checked before any starts, share one parent run, and end in one table.

With `__main__` and `config`, the only place that knows Hydra. Heavy libraries are imported where
they are needed, so that `--help` and `--cfg job` do without them.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from omegaconf import DictConfig

from harness import config as configs

if TYPE_CHECKING:
    from harness.records import JobRecord, Place
    from harness.tracking import Writer

LEDGER = "sweep.json"  # in the sweep's folder: what its jobs have to know, under every launcher
LIBRARIES = ("numpy", "scipy", "autograd", "scikit-learn", "hydra-core", "mlflow", "matplotlib")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Sweep(BasicSweeper):
    """Hydra's own sweeper, which hands the composed jobs to a check before it launches them."""

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
        try:
            results = super().sweep(arguments)
            outcomes = [job.return_value for batch in results for job in batch]
            code = self._conclude(outcomes)
        except BaseException as error:
            if not self.parents:
                shutil.rmtree(self.folder, ignore_errors=True)
            else:
                self._stop(error)
            raise
        if code:
            raise SystemExit(code)
        return results

    def validate_batch_is_legal(self, batch: Sequence[Sequence[str]]) -> None:
        """Compose every job, as Hydra's own does, and start the sweep where one of them can run.

        Where every job is a user's mistake the first is raised and nothing is recorded.
        """
        from datasets import UserError

        assert self.hydra_context is not None
        assert self.config is not None
        # Hydra has just written its config there, and with it a password of the store's.
        (self.folder / "multirun.yaml").unlink(missing_ok=True)
        if not batch:
            raise UserError(
                f"{' '.join(self.arguments)}: is a sweep of no jobs; "
                "check the pattern of the option that is swept"
            )
        composed = [
            self.hydra_context.config_loader.load_sweep_config(self.config, list(overrides))
            for overrides in batch
        ]
        mistake = None
        for config in composed:
            HydraConfig.instance().set_config(config)
            try:
                configs.prepare(configs.without_hydra(config))
                break
            except UserError as error:
                mistake = mistake or error
        else:
            assert mistake is not None
            raise mistake
        self._start(composed)

    def _start(self, composed: list[DictConfig]) -> None:
        """Open the store, make a sweep run in each experiment, and write the ledger."""
        from harness import leftovers
        from results.runs import without_passwords

        assert self.config is not None
        self.writer = configs.writer(self.config)
        self.lock = leftovers.hold(self.folder)
        written = leftovers.tidy(self.writer, self.folder.parent)
        if written:
            print(f"logged {written} jobs that an earlier command had kept", file=sys.stderr)
        self.sweep_id = self.folder.name
        command = without_passwords("python -m harness " + shlex.join(self.arguments)).strip()
        tags = {"command": command, "jobs": str(len(composed)), **leftovers.home(self.folder)}
        tags |= {**_versions(), **_commit()}
        for config in composed:
            HydraConfig.instance().set_config(config)
            name = configs.experiment_name(config)
            if name not in self.parents:
                self.parents[name] = self.writer.start_sweep(name, self.sweep_id, tags)
        ledger = {
            "sweep_id": self.sweep_id,
            "parents": self.parents,
            "jobs": len(composed),
            "process": os.getpid(),
        }
        (self.folder / LEDGER).write_text(json.dumps(ledger))
        _share_threads(self.config)

    def _stop(self, error: BaseException) -> None:
        """End what a sweep that stops before its end has left running; its jobs stay recorded."""
        from harness.store import StoreLostError

        status = "KILLED" if isinstance(error, (KeyboardInterrupt, SystemExit)) else "FAILED"
        with suppress(StoreLostError):  # the next command does it
            self.writer.end_abandoned(lambda tags: tags.get("folder") == str(self.folder), status)

    def _conclude(self, outcomes: list[dict[str, Any]]) -> int:
        """Draw and print the comparison, end the sweep's runs; return the exit code."""
        from harness.publishing import publish
        from harness.store import StoreLostError
        from results.conclusion import conclude

        lost = [outcome for outcome in outcomes if outcome["failure"] == "store"]
        if lost:
            raise StoreLostError(
                f"{lost[0]['reason']}; {len(lost)} of {len(outcomes)} jobs are kept in "
                f"{self.folder} and logged by the next command"
            )
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
        publish(self.writer, self.sweep_id, self.parents)
        written = conclude(self.writer.store.uri, self.sweep_id, self.folder)
        for experiment, files in written.items():
            for file in files:
                self.writer.log_file(self.parents[experiment], file)
        status = "FAILED" if len(failures) == len(outcomes) else "FINISHED"
        for parent in self.parents.values():
            self.writer.finish(parent, status)
        if not failures:
            return 0
        return 2 if all(outcome["failure"] == "user" for outcome in failures) else 1


def register() -> None:
    """Make the sweeper and the resolvers known to Hydra.

    Hydra instantiates only plugins of its own namespace package, so the class says it lives there.
    """
    home = ModuleType("hydra_plugins.normbench")
    Sweep.__module__, home.__dict__["Sweep"] = home.__name__, Sweep
    sys.modules[home.__name__] = home
    Plugins.instance().register(Sweep)
    configs.register_resolvers()


def run_job(config: DictConfig) -> dict[str, Any]:
    """Run and record one job, or take it from what is recorded; return what became of it.

    `failure` is empty, `user` (a mistake), `bug`, or `store` (kept on disk, with its `reason`);
    `run_id` and `experiment` are those of the scheme's run; `reused` says that it was there.
    """
    from datasets import UserError
    from harness import records
    from harness.experiment import run
    from harness.progress import Progress

    configs.register_resolvers()  # a launcher's process of its own does not know them
    hydra = HydraConfig.get()
    ledger = json.loads((Path(hydra.sweep.dir) / LEDGER).read_text())
    writer, experiment = configs.writer(config), configs.experiment_name(config)
    title = f"job {hydra.job.num + 1} of {ledger['jobs']}: {configs.title(config)}"
    progress = Progress(title, bar=os.getpid() == ledger["process"])
    place = _place(config, writer, experiment, ledger)
    failure = ""
    try:
        job = configs.prepare(config)
        place.tags["fingerprint"] = fingerprint = configs.identity(config, job)
        known = writer.find(experiment, fingerprint) if config.reuse else None
        if known:
            writer.adopt(known, ledger["sweep_id"])
            progress.end("reused")
            return {"failure": "", "run_id": known, "experiment": experiment, "reused": True}
        progress.begin(job.settings.iterations)
        record = records.of_outcome(place, job.dataset, run(job, progress))
        progress.end("done")
    except Exception as error:
        failure = "user" if isinstance(error, UserError) else "bug"
        record = records.of_failure(place, error)
        progress.end(f"failed: {record.scheme.tags['reason']}")
    told = _write(writer, record, Path(hydra.sweep.dir).absolute())
    return {"failure": failure, "experiment": experiment, "reused": False, **told}


def _place(
    config: DictConfig, writer: "Writer", experiment: str, ledger: dict[str, Any]
) -> "Place":
    """Return where a job's runs belong, and the tags that they share."""
    from harness.records import Place
    from harness.tracking import membership

    sweep_id = ledger["sweep_id"]
    tags = {
        **configs.tags(config),
        "sweep_id": sweep_id,
        "job": f"{sweep_id}/{HydraConfig.get().job.num}",
        membership(sweep_id): "yes",
    }
    parent = ledger["parents"][experiment]
    return Place(writer.store.shown, experiment, parent, configs.parameters(config), tags)


def _write(writer: "Writer", record: "JobRecord", folder: Path) -> dict[str, Any]:
    """Write a job's record; it waits on disk until the store has all of it."""
    from harness.leftovers import PENDING
    from harness.store import StoreLostError

    number = record.scheme.tags["job"].rpartition("/")[2]
    file = folder / PENDING / f"{number}.npz"
    record.save(file)
    try:
        run_id = writer.write(record)
    except StoreLostError as error:
        return {"failure": "store", "reason": str(error), "run_id": ""}
    file.unlink()
    return {"run_id": run_id}


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
    from harness.kernels import in_use

    found = {f"version.{name}": version(name) for name in LIBRARIES}
    return {"version.python": sys.version.split()[0], **found, "blas": in_use()}


def _commit() -> dict[str, str]:
    """Return the commit of the code and whether the tree was dirty; nothing outside a checkout."""
    folder = Path(__file__).resolve().parent

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        commit = git("rev-parse", "HEAD")
        dirty = bool(git("status", "--porcelain"))
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {"mlflow.source.git.commit": commit, "git_dirty": str(dirty).lower()}


def _refuse_added(argument: str) -> None:
    from datasets import UserError

    if argument.startswith(("+experiment=", "+hydra")):
        return
    bare = argument.lstrip("+")
    raise UserError(
        f"{argument}: adds a setting that nothing reads; write {bare} for a setting that exists "
        "(python -m harness --cfg job lists them)"
    )


def _refuse_several_studies(argument: str) -> None:
    from datasets import UserError

    key, _, value = argument.lstrip("+").partition("=")
    if key == "experiment" and ("," in value or "(" in value):
        raise UserError(
            f"{argument}: each study sets a sweep of its own, so that several cannot be swept at "
            "once; run them one after the other (make textbook runs those of the textbook)"
        )
