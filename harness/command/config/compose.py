"""What a composed config says: the job, its names, its parameters, its store."""

import inspect
import json
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from normbench import names, settings
from normbench.command.config.grid import Grid
from normbench.results.safe import clean
from normbench.settings import CHOICES

LONGEST_NAME = 100  # characters of a data set's name, in the names of files

if TYPE_CHECKING:
    from normbench.datasets import Dataset
    from normbench.engine.settings import Settings
    from normbench.job import Job
    from normbench.recording.store.connection import Store, Tables
    from normbench.recording.store.writer import Writer
    from normbench.verdicts.convergence import Rules
    from normbench.verdicts.search import Search


def prepare(config: DictConfig) -> "Job":
    """Return the job that a config describes; raise `UserError` on a mistake in it."""
    return job(resolved(config))


def job(plain: dict[str, Any]) -> "Job":
    """Return the job of some plain settings; raise `UserError` on a mistake in them."""
    from normbench.choices import allowing

    _check(plain)
    _limit_memory(plain["memory"])
    with allowing(plain["packages"]):
        return _job(plain)


def _limit_memory(value: Any) -> None:
    """Set what this process may hold; raise `UserError` where the program alone takes it."""
    from normbench.datasets.values import limit_memory

    if value is not None:
        import normbench.job  # noqa: F401 - so that what the program itself takes is counted
    limit_memory(value)


def wrong_settings(grid: Grid) -> set[str]:
    """Return the words of swept settings that do not fit the first job.

    Raises `UserError` for one that is a mistake in every job that has it.
    """
    from normbench.datasets import UserError

    wrong: set[str] = set()
    try:
        plain = resolved(without_hydra(grid.config(grid.jobs[0])))
    except ValueError:  # told with the job itself
        return wrong
    for word, key, value in grid.settings():
        try:
            check_settings(plain, {key: value})
        except UserError:
            if not any(_pass(plain, changes) for changes in grid.beside(word)):
                raise
            wrong.add(word)
    return wrong


def _pass(plain: Mapping[str, Any], changes: Mapping[str, Any]) -> bool:
    from normbench.datasets import UserError

    try:
        check_settings(plain, changes)
    except UserError:
        return False
    return True


def check_settings(plain: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
    """Raise `UserError` where some settings of otherwise plain settings break their rules."""
    if "${" not in str(changes):  # else checked with the job itself
        changed = replaced(plain, changes)
        _check(changed)
        _settings(changed)


def replaced(plain: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain settings in which some have another value, each by its key: `cost.l2`.

    What does not change is shared with those that are given: nothing changes either of them later.
    """
    changed = dict(plain)
    for key, value in changes.items():
        place = changed
        *folders, name = key.split(".")
        for folder in folders:
            place[folder] = place = dict(place[folder])
        place[name] = value
    return changed


def _check(plain: Mapping[str, Any]) -> None:
    """Raise `UserError` where a setting breaks its own rule, or where there is no such setting."""
    from normbench.datasets import UserError
    from normbench.datasets.values import typed

    for part in (*CHOICES, "tracking", "rules", "search"):
        if not isinstance(plain[part], dict):
            raise UserError(
                f"{part}={typed(plain[part])}: must be settings, each by its name, such as "
                f"{part}.NAME=VALUE; normbench --cfg job shows them"
            )
    for name, value in flattened(plain).items():
        settings.check(name, value)
    figures(plain)


def flattened(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by their full names: `cost.l2`."""
    flat: dict[str, Any] = {}
    for key, value in plain.items():
        inside = isinstance(value, Mapping) and key in settings.SECTIONS
        flat |= (
            {f"{key}.{name}": entry for name, entry in value.items()} if inside else {key: value}
        )
    return flat


def _settings(plain: Mapping[str, Any]) -> tuple["Settings", "Rules", "Search"]:
    from normbench.engine.settings import Settings
    from normbench.verdicts.convergence import Rules
    from normbench.verdicts.search import Search

    given = {field.name: plain[field.name] for field in fields(Settings) if field.name in plain}
    if given["start"] is None:
        given["start"] = "normal"  # several may follow from null
    descent = Settings(**given, draws=_draws(plain["dataset"]))
    return descent, Rules(**plain["rules"]), Search(**plain["search"])


def _draws(dataset: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the seeds that drew a job's data: of the points held out, and of points made."""
    from normbench.datasets.values import whole

    split = dataset["split_seed"] if dataset["test_fraction"] else 0
    seeds = {"dataset.split_seed": split, "dataset.seed": dataset.get("seed", 0)}
    return tuple(whole(name, seed, 0) for name, seed in seeds.items())


def _job(plain: dict[str, Any]) -> "Job":
    from normbench.choices import build, locate

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


def figures(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the figures that a sweep ends in, in their order; raise `UserError` on a mistake."""
    from normbench.datasets import UserError
    from normbench.datasets.values import one_of
    from normbench.results.figures import NAMES

    wanted = config["figures"]
    if wanted is None:
        return tuple(NAMES)
    if isinstance(wanted, str) or not hasattr(wanted, "__iter__"):
        raise UserError(f"figures={wanted}: must be a list, such as figures=[histories], or null")
    named = [one_of("figures", name, tuple(NAMES)) for name in wanted]
    return tuple(name for name in NAMES if name in named)


def settle_start(
    config: DictConfig, params: dict[str, Any], tags: dict[str, str], job: "Job"
) -> None:
    """Put into a job's parameters and tags what `start=null` stands for under its scheme."""
    if config.start is None:
        params["start"] = job.settings.start
        if job.settings.start == "normal":
            tags[names.STANDS_IN.key] = "true"


def identity(params: Mapping[str, Any], job: "Job") -> dict[str, str]:
    """Return the tags by which a job whose `parameters` are known is found again."""
    from normbench.recording.reuse import identity as identities

    parts = (job.cost, job.normalizer, job.optimizer)
    found = identities.identity(params, job.dataset, parts)
    return {names.FINGERPRINT.key: found.job, names.DESCENT.key: found.descent}


def experiment_name(config: Mapping[str, Any]) -> str:
    """Return `<dataset>-<cost>`; a user's own file, or OpenML, gives its name to the data set.

    A study without a descent has no cost: its experiment is named after the data set.
    """
    if config["iterations"] == 0 and config["record"]:
        return _dataset_name(config)
    return f"{_dataset_name(config)}-{_choice('cost')}"


def _dataset(described: str, packages: str) -> "Dataset":
    """Return a data set, loaded once a process; a mistake in it is not looked for again either."""
    found = _load(described, packages)
    if isinstance(found, ValueError):
        raise found
    return found


@lru_cache(maxsize=4)
def _load(described: str, packages: str) -> "Dataset | ValueError":
    from normbench.choices import build, locate
    from normbench.datasets import Drawn, UserError

    choice = json.loads(described)
    drawn = Drawn(**{each.name: choice.pop(each.name) for each in fields(Drawn)})
    try:
        loader = locate("dataset", choice.get("_target_"))
        if "points" in inspect.signature(loader).parameters:  # it draws them itself
            choice["points"], drawn = drawn.points, replace(drawn, points=None)
        return drawn.of(build("dataset", choice))
    except UserError as error:
        return error


@lru_cache(maxsize=4)
def _store(uri: str, artifacts: str | None, folder: str) -> "Store":
    from normbench.recording.store.connection import Store

    return Store.at(uri, artifacts, Path(folder))


@lru_cache(maxsize=4)
def _open(uri: str, artifacts: str | None, folder: str) -> "Writer":
    from normbench.recording.store.writer import Writer

    return Writer(_store(uri, artifacts, folder))


def _first_start(plain: Mapping[str, Any]) -> str:
    """Return what `start=null` stands for before the scheme is asked."""
    from normbench.choices import allowing, locate
    from normbench.datasets import UserError
    from normbench.job import first_start

    try:
        with allowing(plain["packages"]):
            return first_start(locate("cost", plain["cost"].get("_target_")))
    except UserError:  # told with the job itself
        return "zeros"


def begin_tables(config: DictConfig) -> "Tables":
    """Return the tables of a config's store, in the making where there is no such store yet."""
    from normbench.recording.store.connection import Tables

    tracking = config.tracking
    try:
        store = _store(tracking.uri, tracking.artifacts, str(Path.cwd()))
        store.begin()
    except Exception:  # whatever stands there instead of a place; told when it is opened
        return Tables()
    return store.tables


def writer(config: DictConfig) -> "Writer":
    """Return the writer to the store that a config names; opened once a process."""
    tracking = config.tracking
    return _open(tracking.uri, tracking.artifacts, str(Path.cwd()))


def resolved(config: DictConfig) -> dict[str, Any]:
    """Return a job's settings as plain values; raise `UserError` for what cannot be resolved."""
    from normbench.command.config.errors import reading

    with reading():
        found = OmegaConf.to_container(config, resolve=True)
    assert isinstance(found, dict)
    return {str(key): value for key, value in found.items()}


def without_hydra(config: DictConfig) -> DictConfig:
    """Return a composed config without Hydra's own part, as a job gets it."""
    return OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])


def _choice(group: str) -> str:
    return str(HydraConfig.get().runtime.choices[group])


def _dataset_name(config: Mapping[str, Any]) -> str:
    """Return the name of a data set as folders, experiments and figures have it."""
    dataset = config["dataset"]
    path, number = dataset.get("path"), dataset.get("id")
    name = str(dataset.get("name") or _choice("dataset"))
    if path:
        name = Path(str(path)).stem
    elif number is not None:
        name = f"{_choice('dataset')}_{number}"
    return clean.name(name, LONGEST_NAME)


def title(config: DictConfig) -> str:
    """Return how a job is called in lines of progress."""
    return f"{_dataset_name(config)} {_choice('cost')} {_choice('normalizer')}"


def tags(config: DictConfig) -> dict[str, str]:
    """Return the tags that every run of a job has."""
    return {
        names.DATASET.key: _dataset_name(config),
        names.COST.key: _choice("cost"),
        names.NORMALIZER.key: _choice("normalizer"),
        names.OPTIMIZER.key: _choice("optimizer"),
    }


def parameters(config: DictConfig) -> dict[str, Any]:
    """Return the choices and settings of a job, flat; what cannot be resolved stands unresolved.

    Of `start=null` what it stands for, as long as no scheme is asked: see `settle_start`.
    """
    try:
        plain = resolved(config)
        if plain["start"] is None:
            plain["start"] = _first_start(plain)
    except ValueError:
        unresolved = OmegaConf.to_container(config, resolve=False)
        assert isinstance(unresolved, dict)
        plain = {str(key): value for key, value in unresolved.items()}
    chosen = {group: _choice(group) for group in CHOICES} | {"dataset": _dataset_name(config)}
    every = chosen | flattened(plain)
    return {name: value for name, value in every.items() if settings.is_recorded(name)}
