"""A sweep: its jobs are checked before any starts, share one parent run, and end in one table.

With `__main__`, the only place that knows Hydra. Heavy libraries are imported where they are
needed, so that `--help` and `--cfg job` do without them.
"""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from omegaconf import DictConfig, OmegaConf

if TYPE_CHECKING:
    from datasets import Dataset
    from harness.experiment import Job
    from harness.tracking import Writer

LEDGER = "sweep.json"  # in the sweep's folder: what its jobs have to know, under every launcher
LIBRARIES = ("numpy", "scipy", "autograd", "scikit-learn", "hydra-core", "mlflow", "matplotlib")


class Sweep(BasicSweeper):
    """Hydra's own sweeper, which hands the composed jobs to a check before it launches them."""

    def sweep(self, arguments: list[str]) -> Any:
        """Check, run and conclude a sweep; leave with exit code 1 or 2 where jobs failed."""
        assert self.config is not None
        for argument in arguments:
            if argument.startswith("+"):
                _refuse_added(argument)
        HydraConfig.instance().set_config(self.config)
        self.folder = Path(self.config.hydra.sweep.dir).absolute()
        self.arguments = arguments
        self.parents: dict[str, str] = {}
        try:
            results = super().sweep(arguments)
        except BaseException as error:
            if not self.parents:
                shutil.rmtree(self.folder, ignore_errors=True)
            elif isinstance(error, (KeyboardInterrupt, SystemExit)):
                self._end("KILLED")
            else:
                self._end("FAILED")
            raise
        outcomes = [job.return_value for batch in results for job in batch]
        code = self._conclude(outcomes)
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
        if not batch:
            raise UserError(
                f"{' '.join(self.arguments)}: is a sweep of no jobs; "
                "check the pattern of the option that is swept"
            )
        configs = [
            self.hydra_context.config_loader.load_sweep_config(self.config, list(overrides))
            for overrides in batch
        ]
        mistake = None
        for config in configs:
            HydraConfig.instance().set_config(config)
            try:
                prepare(_without_hydra(config))
                break
            except UserError as error:
                mistake = mistake or error
        else:
            assert mistake is not None
            raise mistake
        self._start(configs)

    def _start(self, configs: list[DictConfig]) -> None:
        """Open the store, make a sweep run in each experiment, and write the ledger."""
        assert self.config is not None
        self.writer = _writer(self.config)
        self.sweep_id = self.folder.name
        command = "python -m harness " + shlex.join(self.arguments)
        tags = {"command": command.strip(), "jobs": str(len(configs)), **_versions(), **_commit()}
        for config in configs:
            HydraConfig.instance().set_config(config)
            name = experiment_name(config)
            if name not in self.parents:
                self.parents[name] = self.writer.start_sweep(name, self.sweep_id, tags)
        ledger = {"sweep_id": self.sweep_id, "parents": self.parents, "jobs": len(configs)}
        (self.folder / LEDGER).write_text(json.dumps(ledger))

    def _end(self, status: str) -> None:
        for run_id in self.parents.values():
            self.writer.finish(run_id, status)

    def _conclude(self, outcomes: list[dict[str, Any]]) -> int:
        """Draw and print the comparison, end the sweep's runs; return the exit code."""
        from results.conclusion import conclude

        failures = [outcome for outcome in outcomes if outcome["failure"]]
        store = self.writer.store
        written = conclude(store.uri, self.sweep_id, self.folder)
        for experiment, files in written.items():
            for file in files:
                self.writer.log_file(self.parents[experiment], file)
        self._end("FAILED" if len(failures) == len(outcomes) else "FINISHED")
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
    OmegaConf.register_new_resolver("decades", decades, replace=True)
    OmegaConf.register_new_resolver("per_scheme", _per_scheme, replace=True)


def run_job(config: DictConfig) -> dict[str, Any]:
    """Run and record one job; return what became of it: `failure` is empty, `user` or `bug`."""
    from datasets import UserError
    from harness.experiment import run
    from harness.progress import Progress

    hydra = HydraConfig.get()
    ledger = json.loads((Path(hydra.sweep.dir) / LEDGER).read_text())
    parent = ledger["parents"][experiment_name(config)]
    writer = _writer(config)
    params, tags = _parameters(config), {**_tags(config), "sweep_id": ledger["sweep_id"]}
    title = f"job {hydra.job.num + 1} of {ledger['jobs']}: {_title(config)}"
    progress = Progress(title)
    try:
        job = prepare(config)
        progress.begin(job.settings.iterations)
        outcome = run(job, progress)
        writer.write_job(parent, params, tags, job.dataset, outcome)
    except Exception as error:
        progress.end(f"failed: {error}")
        writer.write_failure(parent, params, tags, error)
        return {"failure": "user" if isinstance(error, UserError) else "bug"}
    progress.end("done")
    return {"failure": ""}


def prepare(config: DictConfig) -> "Job":
    """Return the job that a config describes; raise `UserError` on a mistake in it."""
    from harness.choices import build, locate
    from harness.convergence import Rules
    from harness.experiment import Job, check
    from harness.search import Search
    from harness.settings import Settings, number

    plain = _resolve(config)
    keys = ("iterations", "start", "start_scale", "starts", "seed", "precision", "record", "theory")
    settings = Settings(step_sizes=plain["step_sizes"], **{key: plain[key] for key in keys})
    cost = dict(plain["cost"])
    l2 = number("cost.l2", cost.pop("l2"), least=0)
    job = Job(
        dataset=_dataset(json.dumps(plain["dataset"])),
        cost=locate("cost", cost["_target_"]),
        normalizer=build("normalizer", plain["normalizer"]),
        optimizer=build("optimizer", plain["optimizer"]),
        settings=settings,
        l2=l2,
        rules=Rules(**plain["rules"]),
        search=Search(**plain["search"]),
    )
    check(job)
    return job


def experiment_name(config: DictConfig) -> str:
    """Return `<dataset>-<cost>`; a user's own file, or OpenML, gives its name to the data set.

    A study without a descent has no cost: its experiment is named after the data set.
    """
    if config.iterations == 0 and config.record:
        return _dataset_name(config)
    return f"{_dataset_name(config)}-{_choice('cost')}"


def decades(*arguments: Any) -> list[float]:
    """Return the step sizes that `${decades:first,last,per_decade}` stands for."""
    from harness.settings import decades as powers

    return powers(*arguments)


def _per_scheme(values: Any) -> Any:
    """Return the value of the job's normalizer: `${per_scheme:{identity:1,standard:2}}`."""
    from datasets import UserError

    name = _choice("normalizer")
    if name not in values:
        raise UserError(
            f"per_scheme: has no value for normalizer={name}, only for {', '.join(values)}; add one"
        )
    return values[name]


def _dataset(described: str) -> "Dataset":
    """Return a data set, loaded once a process; a mistake in it is not looked for again either."""
    found = _load(described)
    if isinstance(found, ValueError):
        raise found
    return found


@lru_cache(maxsize=4)
def _load(described: str) -> "Dataset | ValueError":
    from datasets import UserError, split
    from harness.choices import build
    from harness.settings import number, whole

    choice = json.loads(described)
    fraction = number("dataset.test_fraction", choice.pop("test_fraction"), least=0, below=1)
    seed = whole("dataset.split_seed", choice.pop("split_seed"), 0)
    try:
        return split(build("dataset", choice), fraction, seed)
    except UserError as error:
        return error


@lru_cache(maxsize=4)
def _open(uri: str, artifacts: str | None, folder: str) -> "Writer":
    from harness.tracking import Store, Writer

    return Writer(Store.at(uri, artifacts, Path(folder)))


def _writer(config: DictConfig) -> "Writer":
    tracking = config.tracking
    return _open(tracking.uri, tracking.artifacts, str(Path.cwd()))


def _resolve(config: DictConfig) -> dict[str, Any]:
    resolved = OmegaConf.to_container(config, resolve=True)
    assert isinstance(resolved, dict)
    return {str(key): value for key, value in resolved.items()}


def _without_hydra(config: DictConfig) -> DictConfig:
    return OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])


def _choice(group: str) -> str:
    return str(HydraConfig.get().runtime.choices[group])


def _dataset_name(config: DictConfig) -> str:
    path, number = config.dataset.get("path"), config.dataset.get("id")
    if path:
        return Path(str(path)).stem
    if number is not None:
        return f"{_choice('dataset')}_{number}"
    return str(config.dataset.get("name") or _choice("dataset"))


def _title(config: DictConfig) -> str:
    return f"{_dataset_name(config)} {_choice('cost')} {_choice('normalizer')}"


def _tags(config: DictConfig) -> dict[str, str]:
    return {
        "dataset": _dataset_name(config),
        "cost": _choice("cost"),
        "normalizer": _choice("normalizer"),
        "optimizer": _choice("optimizer"),
    }


def _parameters(config: DictConfig) -> dict[str, Any]:
    """Return the choices and settings of a job, flat; what cannot be resolved stands unresolved."""
    from omegaconf.errors import OmegaConfBaseException

    try:
        plain = _resolve(config)
    except (OmegaConfBaseException, ValueError):
        unresolved = OmegaConf.to_container(config, resolve=False)
        assert isinstance(unresolved, dict)
        plain = {str(key): value for key, value in unresolved.items()}
    flat: dict[str, Any] = {}
    for key, value in plain.items():
        if key == "tracking":
            continue
        if isinstance(value, dict):
            if key in HydraConfig.get().runtime.choices:
                flat[key] = _dataset_name(config) if key == "dataset" else _choice(key)
            flat |= {f"{key}.{name}": entry for name, entry in value.items()}
        else:
            flat[key] = value
    return flat


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
