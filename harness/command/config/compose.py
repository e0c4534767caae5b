"""Read a composed config: the job, its names, its parameters, its keys."""

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
from normbench.choices import allow_packages, build, import_target, sampling
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
from normbench.record.identity import Keys, keys, keys_of_text
from normbench.results.figures import NAMES
from normbench.results.safe import clean
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
        plain_settings: The settings as plain values; one that cannot be resolved stays as written.
        choices: The name of the chosen option of each group.
        mistake: Why a setting could not be resolved; None where all were.
        number: The number of the job in its comparison.
        overrides: The overrides of the job on the command line.
        folder: The folder of the comparison, in the home of comparisons and records.
        jobs: The number of jobs of the comparison.
        started: When it was started, by `time.time`.
        process: The number of its process; 0 in a task of a queue.
    """

    plain_settings: Mapping[str, Any]
    choices: Mapping[str, str]
    mistake: ValueError | None = None
    number: int = 0
    overrides: tuple[str, ...] = ()
    folder: Path = Path()
    jobs: int = 1
    started: float = 0.0
    process: int = 0

    @classmethod
    def from_config(cls, config: DictConfig) -> "JobSpec":
        """Return the job of a composed config; its number is 0 outside a sweep.

        Args:
            config: The config; a running job gets it without the section `hydra`, which is then
                taken from Hydra's own state.
        """
        hydra = hydra_of(config)
        overrides = OmegaConf.to_container(hydra.overrides.task, resolve=False)
        plain, mistake = _resolve(config)
        return cls(
            plain,
            {str(group): str(name) for group, name in hydra.runtime.choices.items()},
            mistake,
            # A task of a queue sets the number; other jobs of a sweep get theirs by `replace`.
            OmegaConf.select(hydra, "job.num", default=0, throw_on_missing=False) or 0,
            tuple(overrides) if isinstance(overrides, list) else (),
            Path(OmegaConf.select(hydra, "sweep.dir") or "").absolute(),
        )

    def job(self) -> "Job":
        """Build the job to run, and limit the memory of the process as its settings say.

        Raises `UserError` on a mistake in a setting.
        """
        if self.mistake:
            raise self.mistake
        return job(self.plain_settings)

    def check(self) -> None:
        """Raise `UserError` on a mistake in a setting that shows without the data."""
        if self.mistake:
            raise self.mistake
        check_settings(self.plain_settings)
        _build_settings(self.plain_settings)

    @cached_property
    def dataset(self) -> str:
        """The name of the data set in folders, experiments and figures.

        That is the name of the file for a user's own file, the option with the id for a data set
        of OpenML, and otherwise the name in the settings or that of the option.
        """
        dataset = self.plain_settings["dataset"]
        path, openml_id = dataset.get("path"), dataset.get("id")
        name = str(dataset.get("name") or self.choices["dataset"])
        if path:
            name = Path(str(path)).stem
        elif openml_id is not None:
            name = f"{self.choices['dataset']}_{openml_id}"
        # A path may hold a password, and a setting any characters.
        return clean.name(clean.blot(name), MAX_DATASET_NAME_LENGTH)

    @property
    def experiment(self) -> str:
        """The name of MLflow's experiment: `<dataset>-<cost>`.

        It is the data set alone for a study without a descent, where the cost has no effect.
        """
        without_descent = self.plain_settings["iterations"] == 0 and self.plain_settings["record"]
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
    def home(self) -> Path:
        """The folder of comparisons and their records."""
        return self.folder.parent

    @cached_property
    def keys(self) -> Keys:
        """The digests by which the record of the job is found."""
        try:
            return keys(self.experiment, self.parameters(), self.plain_settings)
        except (TypeError, ValueError):  # a mistaken setting, by which the job will fail
            return keys_of_text(str(self.plain_settings))

    @property
    def record_tags(self) -> dict[str, str]:
        """The tags of the record of the job."""
        digests = {names.FINGERPRINT.key: self.keys.job, names.DESCENT.key: self.keys.descent}
        return {**self.tags, **digests}

    def recorded_parameters(self) -> dict[str, Any]:
        """Return `parameters` with the start that `null` stands for before a scheme is known."""
        if self.plain_settings["start"] is not None:
            return self.parameters()
        return self.parameters() | {"start": _default_start_name(self.plain_settings)}

    def parameters(self) -> dict[str, Any]:
        """Return the choices and settings that are recorded, by their full names."""
        # The tags hold the name of each choice; `flatten` gives only the settings inside a choice.
        values = {**self.tags, **flatten(self.plain_settings)}
        rows = {name: settings.find_setting(name) for name in values}
        return {
            name: _canonical(name, values[name])
            for name, row in rows.items()
            if row and row.recorded
        }


def _canonical(name: str, value: Any) -> Any:
    """Return a value as it is recorded: numbers in the setting's type, step sizes ascending."""
    if isinstance(value, bool) or not (name == "step_sizes" or isinstance(value, (int, float))):
        return value
    try:
        checked = settings.check(name, value)
    except UserError:  # it is raised when the job is built
        return value
    return list(checked) if isinstance(checked, tuple) else checked


def hydra_of(config: DictConfig) -> Any:
    """Return the section `hydra` of a config, or Hydra's own state for a config without it."""
    return config.hydra if "hydra" in config else HydraConfig.get()


def _resolve(config: DictConfig) -> tuple[dict[str, Any], ValueError | None]:
    """Return the settings as plain values, and the first mistake among them.

    Args:
        config: A composed config, whose section `hydra` is left out.

    Returns:
        The settings by key, with their interpolations resolved; one that cannot be resolved stays
        as written. And the error of the first such setting; None without one.
    """
    mistake: ValueError | None = None
    plain: dict[str, Any] = {}
    for key in [str(key) for key in config if key != "hydra"]:
        try:
            with user_errors():
                plain[key] = _to_plain(config[key], resolve=True)
        except ValueError as error:
            mistake = mistake or error
            # The node itself: `config[key]` would try to resolve it again.
            plain[key] = _to_plain(config._get_node(key), resolve=False)
    if isinstance(plain["step_sizes"], (int, float)):  # a single one is recorded as a list
        plain["step_sizes"] = [plain["step_sizes"]]
    return plain, mistake


def _to_plain(value: Any, resolve: bool) -> Any:
    """Return a value of a config, a container or a node among them, as plain Python.

    Args:
        value: The value.
        resolve: Whether the interpolations in a container are resolved.
    """
    if OmegaConf.is_config(value):
        return OmegaConf.to_container(value, resolve=resolve)
    return value._value() if isinstance(value, Node) else value


def job(plain: Mapping[str, Any]) -> "Job":
    """Check plain settings, limit the memory of the process as they say, and build their job.

    Raises `UserError` on a mistake in the settings.
    """
    check_settings(plain)
    if plain["memory"] is not None:
        import normbench.job  # noqa: F401 - so that what the program itself takes is counted
    limit_memory(plain["memory"])
    with allow_packages(plain["packages"]):
        return _build_job(plain)


def overrides_wrong_in_first_job(grid: Grid) -> set[str]:
    """Check each value of the swept settings by itself, in the settings of the first job.

    Args:
        grid: The jobs of the sweep.

    Returns:
        The overrides that break a rule there, but not together with some values of the other
        swept settings.

    Raises:
        UserError: An override is a mistake in every job that has it.
    """
    wrong: set[str] = set()
    first = JobSpec.from_config(grid.config(grid.jobs[0]))
    if first.mistake:  # it is raised when that job is built
        return wrong
    plain = first.plain_settings
    for override, key, value in grid.swept_settings():
        mistake = _find_mistake(plain, {key: value})
        # Another swept setting may make the value valid, so each combination with it is tried.
        if mistake and all(
            _find_mistake(plain, changes) for changes in grid.combinations_with(override)
        ):
            raise mistake
        if mistake:
            wrong.add(override)
    return wrong


def _find_mistake(plain: Mapping[str, Any], changes: Mapping[str, Any]) -> UserError | None:
    """Return the error of settings in which some are changed; None if they keep their rules.

    Args:
        plain: Nested settings.
        changes: The new values by their keys, such as `cost.l2`.
    """
    if "${" not in str(changes):  # an interpolation is resolved, and checked, with its own job
        changed = replace_settings(plain, changes)
        try:
            check_settings(changed)
            _build_settings(changed)
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
            # Puts a copy of the inner section into the outer one, then goes into the copy.
            section[folder] = section = dict(section[folder])
        section[name] = value
    return changed


def check_settings(plain: Mapping[str, Any]) -> None:
    """Raise `UserError` where a setting breaks its own rule, or does not exist.

    Args:
        plain: Nested settings. Rules between settings are checked by the job.
    """
    check_sections(plain)
    for name, value in flatten(plain).items():
        settings.check(name, value)
    figure_names(plain)  # raises for unknown names


def check_sections(plain: Mapping[str, Any]) -> None:
    """Raise `UserError` where a section holds no settings: `rules=1` would replace them all."""
    for section in (*CHOICES, "tracking", "rules", "search"):
        if not isinstance(plain[section], dict):
            raise UserError(
                f"{section}={format_value(plain[section])}: must be settings, each by its name, "
                f"such as {section}.NAME=VALUE; normbench --cfg job shows them"
            )


def flatten(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by their full names, such as `cost.l2`.

    Only groups of settings are taken apart; any other mapping is a value.
    """
    flat: dict[str, Any] = {}
    for key, value in plain.items():
        if isinstance(value, Mapping) and key in settings.SETTING_GROUPS:
            flat |= {f"{key}.{name}": entry for name, entry in value.items()}
        else:
            flat[key] = value
    return flat


def _build_settings(plain: Mapping[str, Any]) -> tuple[Settings, Rules, Search]:
    """Return the checked settings of the descent, of the verdicts and of the search.

    Raises `UserError` where settings do not fit each other.

    Args:
        plain: Nested settings, each of which keeps its own rule.
    """
    descent_settings = {
        field.name: settings.check(field.name, plain[field.name])
        for field in fields(Settings)
        if field.name in plain
    }
    descent_settings |= {name: plain["normalizer"][name] for name in ("statistics", "window")}
    if descent_settings["start"] is None:
        # null may become a random start; `normal` is one, so that `starts` may be several.
        descent_settings["start"] = "normal"
    descent = Settings(**descent_settings, draws=_data_seeds(plain["dataset"]))
    return descent, Rules(**plain["rules"]), Search(**plain["search"])


def _data_seeds(dataset: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the seeds that drew a job's data: of held-out points, and of generated points.

    A seed that draws nothing is 0. Raises `UserError` for one that is no natural number.

    Args:
        dataset: The settings of the data set.
    """
    split = dataset["split_seed"] if dataset["test_fraction"] else 0
    seeds = {"dataset.split_seed": split, "dataset.seed": dataset.get("seed", 0)}
    return tuple(check_integer(name, seed, 0) for name, seed in seeds.items())


def _build_job(plain: Mapping[str, Any]) -> "Job":
    """Build the job of plain settings that `check_settings` accepts.

    Raises `UserError` where the data cannot be loaded, or where settings do not fit each other.
    """
    descent, rules, search = _build_settings(plain)
    cost = dict(plain["cost"])
    l2, l2_in = (settings.check(f"cost.{name}", cost.pop(name)) for name in ("l2", "l2_in"))
    dataset = _load_dataset(json.dumps(plain["dataset"]), json.dumps(plain["packages"]))
    # Late: a mistake in a number or a file is told before all of scikit-learn is loaded.
    from normbench.job import Job, check, with_default_start

    job = Job(
        dataset=dataset,
        cost=import_target("cost", cost.get("_target_")),
        normalizer=build("normalizer", plain["normalizer"]),
        optimizer=build("optimizer", plain["optimizer"]),
        model=build("model", plain["model"]),
        settings=descent,
        l2=l2,
        l2_in=l2_in,
        rules=rules,
        search=search,
    )
    if plain["start"] is None:
        job = with_default_start(job)
    check(job)
    return job


def figure_names(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the figures that a sweep draws, in the order of `NAMES`.

    Args:
        config: The settings; `figures` is a list of names, or None for all.

    Raises:
        UserError: It is no list, or a name is unknown.
    """
    wanted = config["figures"]
    if wanted is None:
        return tuple(NAMES)
    rule = "a list, such as figures=[histories], or null"
    checked_names = [
        check_choice("figures", name, tuple(NAMES)) for name in check_list("figures", wanted, rule)
    ]
    return tuple(name for name in NAMES if name in checked_names)


def _load_dataset(choice_json: str, packages: str) -> Dataset:
    """Return a data set; the last few are cached, and so is a mistake that a loader reports.

    Args:
        choice_json: The settings of the data set as JSON, which the cache can compare.
        packages: The allowed packages as JSON; a part of the cache's key.

    Raises:
        UserError: The data set cannot be loaded as the settings say.
    """
    dataset_or_error = _load_or_mistake(choice_json, packages)
    if isinstance(dataset_or_error, ValueError):
        raise dataset_or_error
    return dataset_or_error


@lru_cache(maxsize=4)
def _load_or_mistake(choice_json: str, packages: str) -> Dataset | ValueError:
    """Return a data set, or the mistake in its settings: the cache does not keep what is raised.

    Args:
        choice_json: The settings of the data set as JSON: `_target_`, arguments of the loader, and
            those of `Sampling`.
        packages: Not read here: with other allowed packages (see `allow_packages`), which
            `import_target` does read, a cached result may be wrong.
    """
    choice = json.loads(choice_json)
    drawn = sampling(choice)  # how points are drawn and held out, once they are loaded
    for field in fields(Sampling):
        del choice[field.name]  # no argument of the loader
    try:
        loader = import_target("dataset", choice.get("_target_"))
        # A loader with a parameter `points` or `keep_classes` draws or keeps these itself.
        for name in {"points", "keep_classes"} & {*inspect.signature(loader).parameters}:
            choice[name], drawn = getattr(drawn, name), replace(drawn, **{name: None})
        return drawn.apply(build("dataset", choice))
    except UserError as error:
        return error


def _default_start_name(plain: Mapping[str, Any]) -> str:
    """Return the name of the start that `start=null` stands for before a scheme is known.

    It is `zeros` where the model or the cost has a mistake, which is raised when the job is built.
    """
    from normbench.engine.start import default_start_name

    try:
        with allow_packages(plain["packages"]):
            model = build("model", plain["model"])
            return default_start_name(import_target("cost", plain["cost"].get("_target_")), model)
    except UserError:
        return "zeros"
