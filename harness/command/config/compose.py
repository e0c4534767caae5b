"""Read a composed config: the job, its names, its parameters, its store."""

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, Node, OmegaConf

from normbench import names, settings
from normbench.choices import allowing, build, locate, sampling
from normbench.command.config.errors import user_errors
from normbench.command.config.grid import Grid
from normbench.datasets import Dataset, Sampling, UserError
from normbench.datasets.values import (
    check_choice,
    check_integer,
    check_list,
    format_value,
    limit_memory,
)
from normbench.engine.settings import Settings
from normbench.recording.reuse import request
from normbench.recording.reuse.identity import identity
from normbench.recording.store.connection import Store
from normbench.recording.store.writer import Writer
from normbench.results.figures import BY_DEFAULT, NAMES
from normbench.results.safe import clean, secrets
from normbench.settings import CHOICES
from normbench.verdicts.convergence import Rules
from normbench.verdicts.search import Search

if TYPE_CHECKING:  # it loads scipy and scikit-learn
    from normbench.job import Job

SPLIT_SEED_PREFIX = "dataset.split_seed="
MAX_DATASET_NAME_LENGTH = 100  # characters of a data set's name, in the names of files


@dataclass(frozen=True)
class JobSpec:
    """One job as its config describes it, read once.

    Attributes:
        plain: The settings as plain values; one that cannot be resolved stays as written.
        choices: The name of the chosen option of each group.
        mistake: Why a setting could not be resolved; None where all were.
        number: The number of the job in its sweep.
        overrides: The overrides of the job on the command line.
        folder: The folder of the sweep.
    """

    plain: Mapping[str, Any]
    choices: Mapping[str, str]
    mistake: ValueError | None = None
    number: int = 0
    overrides: tuple[str, ...] = ()
    folder: Path = Path()

    @classmethod
    def from_config(cls, config: DictConfig) -> "JobSpec":
        """Return the job of a composed config.

        Args:
            config: The config; a running job gets it without the section `hydra`.
        """
        hydra = hydra_of(config)
        overrides = OmegaConf.to_container(hydra.overrides.task, resolve=False)
        plain, mistake = _resolved(config)
        return cls(
            plain,
            {str(group): str(name) for group, name in hydra.runtime.choices.items()},
            mistake,
            OmegaConf.select(hydra, "job.num", default=0, throw_on_missing=False) or 0,
            tuple(overrides) if isinstance(overrides, list) else (),
            Path(OmegaConf.select(hydra, "sweep.dir") or "").absolute(),
        )

    def job(self) -> "Job":
        """Return the job to run; raise `UserError` on a mistake in a setting."""
        if self.mistake:
            raise self.mistake
        return job(self.plain)

    @cached_property
    def dataset(self) -> str:
        """The name of the data set in folders, experiments and figures.

        That is the name of the file for a user's own file, the option with the id for a data set
        of OpenML, and otherwise the name in the settings or that of the option.
        """
        dataset = self.plain["dataset"]
        path, number = dataset.get("path"), dataset.get("id")
        name = str(dataset.get("name") or self.choices["dataset"])
        if path:
            name = Path(str(path)).stem
        elif number is not None:
            name = f"{self.choices['dataset']}_{number}"
        return clean.name(secrets.blot(name), MAX_DATASET_NAME_LENGTH)

    @property
    def experiment(self) -> str:
        """`<dataset>-<cost>`; for a study without a descent, which has no cost, the data set."""
        without_descent = self.plain["iterations"] == 0 and self.plain["record"]
        return self.dataset if without_descent else f"{self.dataset}-{self.choices['cost']}"

    @property
    def title(self) -> str:
        """The job's name in lines of progress, with the split where there are several."""
        split_seeds = [
            override.partition("=")[2]
            for override in self.overrides
            if override.startswith(SPLIT_SEED_PREFIX)
        ]
        split_text = f", split {split_seeds[-1]}" if split_seeds else ""
        return f"{self.dataset} {self.choices['cost']} {self.choices['normalizer']}{split_text}"

    @property
    def tags(self) -> dict[str, str]:
        """The tags of every run of the job."""
        return {group: self.choices[group] for group in CHOICES} | {names.DATASET.key: self.dataset}

    @property
    def request(self) -> str | None:
        """What its identity depends on, see `reuse.request`; None where reuse is off."""
        if self.mistake or not self.plain["reuse"]:
            return None
        return request.digest(self.plain, self.tags)

    def has_file(self) -> bool:
        """Return whether its store is a file that exists."""
        try:
            return bool(self._store.database and self._store.database.is_file())
        except ValueError:  # told where it is opened
            return False

    def parameters(self) -> dict[str, Any]:
        """Return the choices and settings that are recorded, flat.

        `start=null` is recorded as the start that it stands for before a scheme is known: see
        `settle`.
        """
        values = {**self.tags, **flatten(self.plain)}
        if values["start"] is None:
            values["start"] = _first_start(self.plain)
        rows = {name: settings.find_setting(name) for name in values}
        return {name: values[name] for name, row in rows.items() if row and row.recorded}

    def settle(self, params: dict[str, Any], tags: dict[str, str], built_job: "Job") -> None:
        """Add to parameters and tags what a built job determines: its start, and its identity.

        Args:
            params: The parameters of the job, changed in place.
            tags: The tags of the job, changed in place.
            built_job: The job, whose components are part of its fingerprint.
        """
        if self.plain["start"] is None:
            params["start"] = built_job.settings.start
            if built_job.settings.start == "normal" and built_job.model is None:
                tags[names.STANDS_IN.key] = "true"
        components = (built_job.cost, built_job.normalizer, built_job.optimizer)
        model = () if built_job.model is None else (built_job.model,)
        identity_of_job = identity(params, built_job.dataset, (*components, *model))
        tags |= {
            names.FINGERPRINT.key: identity_of_job.job,
            names.DESCENT.key: identity_of_job.descent,
        }
        tags[names.GRID_DESCENT.key] = identity_of_job.grid

    def writer(self) -> Writer:
        """Return the writer to the store, opened once in a process."""
        return _open(self._store)

    @cached_property
    def _store(self) -> Store:
        """The store that the settings name."""
        tracking = self.plain["tracking"]
        return Store.at(tracking["uri"], tracking["artifacts"], Path.cwd())


def hydra_of(config: DictConfig) -> Any:
    """Return Hydra's section of a config; for a job's, which has none, Hydra's own state."""
    return config.hydra if "hydra" in config else HydraConfig.get()


def _resolved(config: DictConfig) -> tuple[dict[str, Any], ValueError | None]:
    """Return settings as plain values, and the first mistake in one that cannot be resolved."""
    mistake: ValueError | None = None
    plain: dict[str, Any] = {}
    for key in [str(key) for key in config if key != "hydra"]:
        try:
            with user_errors():
                plain[key] = _plain(config[key], resolve=True)
        except ValueError as error:
            mistake = mistake or error
            plain[key] = _plain(config._get_node(key), resolve=False)
    if isinstance(plain["step_sizes"], (int, float)):  # one is recorded as a list of one
        plain["step_sizes"] = [plain["step_sizes"]]
    return plain, mistake


def _plain(value: Any, resolve: bool) -> Any:
    """Return a value of a config as plain Python."""
    if OmegaConf.is_config(value):
        return OmegaConf.to_container(value, resolve=resolve)
    return value._value() if isinstance(value, Node) else value


def job(plain: Mapping[str, Any]) -> "Job":
    """Return the job of plain settings, with their limit of memory set from now on.

    Raises `UserError` on a mistake in them.
    """
    check(plain)
    if plain["memory"] is not None:
        import normbench.job  # noqa: F401 - so that what the program itself takes is counted
    limit_memory(plain["memory"])
    with allowing(plain["packages"]):
        return _job(plain)


def wrong_settings(grid: Grid) -> set[str]:
    """Return the overrides of swept settings that do not fit the first job.

    Raises `UserError` for an override that is a mistake in every job that has it.
    """
    wrong: set[str] = set()
    first = JobSpec.from_config(grid.config(grid.jobs[0]))
    if first.mistake:  # told with the job itself
        return wrong
    plain = first.plain
    for override, key, value in grid.settings():
        mistake = _mistake(plain, {key: value})
        # Another swept setting may make the value valid, so each combination with it is tried.
        if mistake and all(_mistake(plain, changes) for changes in grid.beside(override)):
            raise mistake
        if mistake:
            wrong.add(override)
    return wrong


def _mistake(plain: Mapping[str, Any], changes: Mapping[str, Any]) -> UserError | None:
    """Return how changed settings break their rules, None if they do not."""
    if "${" not in str(changes):  # a reference is resolved, and checked, with the job itself
        changed = replace_settings(plain, changes)
        try:
            check(changed)
            _settings(changed)
        except UserError as error:
            return error
    return None


def replace_settings(plain: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain settings in which some have another value.

    Unchanged sections are shared with the given settings: nothing changes either of them later.

    Args:
        plain: Nested settings.
        changes: The new values by their keys, such as `cost.l2`.

    Returns:
        The changed settings; the given ones stay as they are.
    """
    changed = dict(plain)
    for key, value in changes.items():
        section = changed
        *folders, name = key.split(".")
        for folder in folders:
            # Copies the inner section into the outer one, then descends into the copy.
            section[folder] = section = dict(section[folder])
        section[name] = value
    return changed


def check(plain: Mapping[str, Any]) -> None:
    """Raise `UserError` where a setting breaks its own rule, or does not exist."""
    for section in (*CHOICES, "tracking", "rules", "search"):
        if not isinstance(plain[section], dict):
            raise UserError(
                f"{section}={format_value(plain[section])}: must be settings, each by its name, "
                f"such as {section}.NAME=VALUE; normbench --cfg job shows them"
            )
    for name, value in flatten(plain).items():
        settings.check(name, value)
    figures(plain)


def flatten(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by their full names, such as `cost.l2`."""
    flat: dict[str, Any] = {}
    for key, value in plain.items():
        inside = isinstance(value, Mapping) and key in settings.SETTING_GROUPS
        flat |= (
            {f"{key}.{name}": entry for name, entry in value.items()} if inside else {key: value}
        )
    return flat


def _settings(plain: Mapping[str, Any]) -> tuple[Settings, Rules, Search]:
    """Return the settings of the descent, of the verdicts and of the search."""
    descent_settings = {
        field.name: plain[field.name] for field in fields(Settings) if field.name in plain
    }
    descent_settings |= {name: plain["normalizer"][name] for name in ("statistics", "window")}
    if descent_settings["start"] is None:
        # null may become a random start; `normal` is one, so that `starts` may be several.
        descent_settings["start"] = "normal"
    descent = Settings(**descent_settings, draws=_draws(plain["dataset"]))
    return descent, Rules(**plain["rules"]), Search(**plain["search"])


def _draws(dataset: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the seeds that drew a job's data: of held-out points, and of generated points."""
    split = dataset["split_seed"] if dataset["test_fraction"] else 0
    seeds = {"dataset.split_seed": split, "dataset.seed": dataset.get("seed", 0)}
    return tuple(check_integer(name, seed, 0) for name, seed in seeds.items())


def _job(plain: Mapping[str, Any]) -> "Job":
    """Return the job of checked plain settings."""
    descent, rules, search = _settings(plain)
    cost = dict(plain["cost"])
    l2, l2_in = (settings.check(f"cost.{name}", cost.pop(name)) for name in ("l2", "l2_in"))
    dataset = _dataset(json.dumps(plain["dataset"]), json.dumps(plain["packages"]))
    # Late: a mistake in a number or a file is told before all of scikit-learn is loaded.
    from normbench.job import Job, check, with_default_start

    job = Job(
        dataset=dataset,
        cost=locate("cost", cost.get("_target_")),
        normalizer=build("normalizer", plain["normalizer"]),
        optimizer=build("optimizer", plain["optimizer"]),
        model=build("model", plain["model"]),
        settings=descent,
        l2=l2,
        l2_in=l2_in,
        rules=rules,
        search=search,
        engine=plain["engine"],
    )
    if plain["start"] is None:
        job = with_default_start(job)
    check(job)
    return job


def figures(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the figures that a sweep draws, in their order; raise `UserError` on a mistake."""
    wanted = config["figures"]
    if wanted is None:
        return BY_DEFAULT
    rule = "a list, such as figures=[histories], or null"
    named = [
        check_choice("figures", name, tuple(NAMES)) for name in check_list("figures", wanted, rule)
    ]
    return tuple(name for name in NAMES if name in named)


def _dataset(choice_json: str, packages: str) -> Dataset:
    """Return a data set, loaded once in a process; a mistake in it is cached too.

    Args:
        choice_json: The settings of the data set as JSON, which the cache can compare.
        packages: The allowed packages as JSON; another list is another entry of the cache.
    """
    dataset_or_error = _load(choice_json, packages)
    if isinstance(dataset_or_error, ValueError):
        raise dataset_or_error
    return dataset_or_error


@lru_cache(maxsize=4)
def _load(choice_json: str, packages: str) -> Dataset | ValueError:
    """Return a data set, or the mistake in its settings."""
    choice = json.loads(choice_json)
    drawn = sampling(choice)
    for field in fields(Sampling):
        del choice[field.name]
    try:
        loader = locate("dataset", choice.get("_target_"))
        # A loader with this parameter draws the points itself, and sampling draws none.
        if "points" in inspect.signature(loader).parameters:
            choice["points"], drawn = drawn.points, replace(drawn, points=None)
        return drawn.apply(build("dataset", choice))
    except UserError as error:
        return error


@lru_cache(maxsize=4)
def _open(store: Store) -> Writer:
    """Return a writer to a store; later jobs of the process get the same one."""
    return Writer(store)


def _first_start(plain: Mapping[str, Any]) -> str:
    """Return the start that `start=null` stands for before a scheme is known."""
    from normbench.job import first_start

    try:
        with allowing(plain["packages"]):
            model = build("model", plain["model"])
            return first_start(locate("cost", plain["cost"].get("_target_")), model)
    except UserError:  # told with the job itself
        return "zeros"
