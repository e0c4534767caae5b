"""The jobs of a sweep: every combination of swept values, each with its config.

Hydra composes a config in some 70 ms. Here each option is composed once, and a job's config is a
copy of the first one in which options and settings are replaced: 4 ms.
"""

import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf
from shlex import quote
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, RangeSweep
from omegaconf import DictConfig, OmegaConf, open_dict

from normbench import choices
from normbench.datasets.values import UserError, did_you_mean
from normbench.settings import CHOICES, ROWS
from normbench.synonyms import setting_of

MAX_JOBS = 100_000
# A number that needs no parser of Hydra's; group 1, its fraction, tells a float from an integer.
PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+(?:e-?\d+)?)?", re.ASCII)
JobOverrides = tuple[str, ...]  # the overrides of a job, such as ("cost=softmax", "seed=1")


def split_option_overrides(overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a command line into the overrides for Hydra, and those of options of choices.

    An option of a choice is, for example, `normalizer.ridge=0`. Hydra would look for it in the
    default choice, before it knows the choice that is swept.

    Args:
        overrides: The overrides on the command line.

    Returns:
        The overrides for Hydra, and the options, each in their order.
    """
    option_overrides = [
        override
        for override in overrides
        if override.split(".")[0] in CHOICES and "." in override.split("=")[0]
    ]
    return [
        override for override in overrides if override not in option_overrides
    ], option_overrides


def notes_on_overridden(overrides: Sequence[str]) -> list[str]:
    """Return a note for each override that a later one with the same key replaces."""
    last_by_key = {override.partition("=")[0]: override for override in overrides}
    pairs = (
        (override, last_by_key[override.partition("=")[0]])
        for override in overrides
        if "=" in override
    )
    return [
        f"{override}: does not count; {last_override} comes after it"
        for override, last_override in pairs
        if last_override != override
    ]


@dataclass(frozen=True)
class GridEntry:
    """One key of the command line with its values, as Hydra writes them.

    Attributes:
        key: A choice or a setting, such as `normalizer` or `cost.l2`.
        values: Its values; the key is swept where there are several.
    """

    key: str
    values: tuple[str, ...]

    @property
    def group(self) -> str:
        """The group of an option, such as `cost` of `cost.l2`, or the key itself."""
        return self.key.split(".")[0]

    @property
    def overrides(self) -> list[str]:
        """Each value as an override."""
        return [f"{self.key}={value}" for value in self.values]


class Grid:
    """The jobs of a sweep, in order: the overrides of each, and its config.

    Args:
        loader: Hydra's loader of configs.
        master: The config that Hydra composed without the swept values.
        arguments: The overrides without the options of choices, see `split_option_overrides`.
        held: The options of choices, such as `normalizer.ridge=0,1`.

    Attributes:
        entries: The keys of `arguments` with their values.
        options: The keys of `held` with their values.
        jobs: The overrides of each job.

    Raises:
        UserError: The sweep has no jobs or too many, something is swept that cannot be, or no
            chosen option of a group has a setting.
    """

    def __init__(
        self,
        loader: ConfigLoader,
        master: DictConfig,
        arguments: Sequence[str],
        held: Sequence[str],
    ) -> None:
        self._loader, self._master = loader, master
        parser = OverridesParser.create(config_loader=loader)
        parsed_lists = [
            parser.parse_overrides(list(override_list)) for override_list in (arguments, held)
        ]
        _refuse_many([override for parsed in parsed_lists for override in parsed])
        self.entries, self.options = (_last_by_key(parsed) for parsed in parsed_lists)
        if not all(entry.values for entry in [*self.entries, *self.options]):
            raise UserError(
                f"{' '.join([*arguments, *held])}: is a comparison of no jobs; "
                "check the pattern of the option that is swept"
            )
        # A group that is not compared, such as `tracking` or `experiment`, has one choice.
        for entry in self.entries:
            if (
                len(entry.values) > 1
                and entry.key not in CHOICES
                and entry.key in loader.list_groups("")
            ):
                raise UserError(f"{entry.key}: one choice holds for a whole comparison; name one")
        # The overrides of all that is not swept.
        self._fixed = [single.overrides[0] for single in self.entries if len(single.values) == 1]
        # The first of the swept choices of each group: a job's config is a copy of the config with
        # these choices, in which the choices of the job replace them.
        self._first = tuple(
            entry.overrides[0]
            for entry in self.entries
            if len(entry.values) > 1 and entry.key in CHOICES
        )
        # Caches of `_compose`, `_read`, `_is_of_files` and `_parse`, by their arguments.
        self._composed: dict[JobOverrides, DictConfig] = {}
        self._files: dict[tuple[str, str | None], DictConfig | None] = {}
        self._of_files: dict[str, bool] = {}
        self._parsed: dict[str, Any] = {}
        self._parser = parser
        self.jobs = list(dict.fromkeys(self._generate_jobs()))

    def swept_settings(self) -> Iterator[tuple[str, str, Any]]:
        """Yield each value of the swept settings that are checked on their own.

        Yields:
            The override, such as `cost.l2=0.1`, its key, and the value itself.
        """
        for entry in [*self.entries, *self.options]:
            if len(entry.values) > 1 and _is_checked_alone(entry.key):
                yield from (
                    (override, entry.key, self._parse(override)) for override in entry.overrides
                )

    def combinations_with(self, override: str) -> Iterator[dict[str, Any]]:
        """Yield the swept settings of the jobs that have an override, each combination once.

        Args:
            override: One value of a swept setting, such as `cost.l2=0.1`.

        Yields:
            The values of all swept settings of such a job, by their keys.
        """
        swept = {
            swept_override: (key, value) for swept_override, key, value in self.swept_settings()
        }
        jobs_with_override = (job for job in self.jobs if override in job)
        # Of each job only the overrides of swept settings count: jobs that differ in other ones,
        # such as choices, are one combination.
        combinations = dict.fromkeys(
            tuple(filter(swept.__contains__, job)) for job in jobs_with_override
        )
        for combination in combinations:
            yield dict(swept[swept_override] for swept_override in combination)

    def representatives(self, wrong_overrides: set[str]) -> dict[JobOverrides, JobOverrides]:
        """Return a job of each combination of choices, if possible one without wrong overrides.

        Jobs have the same combination where they differ only in settings that are checked by
        themselves, and either both or neither have a descent.

        Args:
            wrong_overrides: The overrides to avoid, from `compose.overrides_wrong_in_first_job`.

        Returns:
            The jobs, by those of their overrides that make the combination. Where each job of a
            combination has wrong overrides, the last one.
        """
        job_by_choices: dict[JobOverrides, JobOverrides] = {}
        for job in self.jobs:
            choices_key = tuple(
                override
                for override in job
                if not _is_checked_alone(override.split("=")[0])
                or override in ("iterations=0", "record=[]")  # decide whether there is a descent
            )
            # A job with wrong overrides gives way to the next job of the same combination.
            if choices_key not in job_by_choices or wrong_overrides.intersection(
                job_by_choices[choices_key]
            ):
                job_by_choices[choices_key] = job
        return job_by_choices

    def options_of(self, job: JobOverrides) -> dict[str, Any]:
        """Return the options of a job's choices that the command line sets.

        Args:
            job: The overrides of the job.

        Returns:
            The values by their keys, such as `{"normalizer.ridge": 0}`.
        """
        option_keys = {entry.key for entry in self.options}
        key_by_override = {override: override.split("=")[0] for override in job}
        return {
            key: self._parse(override)
            for override, key in key_by_override.items()
            if key in option_keys
        }

    def notes(self) -> list[str]:
        """Return a note for each option that some of the choices have and others lack."""
        lines = []
        for entry in self.options:
            having = self._having(entry)
            lacking = [name for name in self._names(entry.group) if name not in having]
            if lacking:
                lines.append(f"{entry.key}: for {', '.join(having)}; not for {', '.join(lacking)}")
        return lines

    def config(self, job: JobOverrides) -> DictConfig:
        """Return a new config of a job: the config of the first swept choices, changed.

        Args:
            job: The overrides of the job, one of `jobs`.
        """
        swept = {
            override
            for entry in self.entries
            if len(entry.values) > 1
            for override in entry.overrides
        }
        config = copy.deepcopy(self._compose(self._first))
        swept_choices = [
            override for override in job if override.split("=")[0] in CHOICES and override in swept
        ]
        for override in swept_choices:
            group, name = override.split("=", 1)
            _exchange(config, group, name, self._option(group, name))
        for override in job:
            # What is fixed is in the copied config already: this is a swept setting, or an option.
            if override not in swept_choices and override not in self._fixed:
                OmegaConf.update(config, override.split("=")[0], self._parse(override))
        with open_dict(config):
            config.hydra.overrides.task = list(job)
        return config

    def _parse(self, override: str) -> Any:
        """Return the value of an override; the result is cached.

        A plain number is parsed without Hydra's parser, which takes 1 ms.
        """
        if override not in self._parsed:
            number = PLAIN_NUMBER.fullmatch(override.partition("=")[2])
            if number:
                self._parsed[override] = (float if number[1] else int)(number[0])
            else:
                self._parsed[override] = self._parser.parse_override(override).value()
        return self._parsed[override]

    def _compose(self, chosen: JobOverrides) -> DictConfig:
        """Return the config of some choices with all that is not swept; the result is cached.

        Args:
            chosen: The overrides of the choices, such as `normalizer=pca`.
        """
        if chosen not in self._composed:
            exchanged = self._exchange_options(chosen)  # None: Hydra has to compose
            overrides = [*self._fixed, *chosen]
            self._composed[chosen] = exchanged or self._loader.load_sweep_config(
                self._master, overrides
            )
        return self._composed[chosen]

    def _exchange_options(self, chosen: JobOverrides) -> DictConfig | None:
        """Return a copy of the master config with the options of some choices in place of its own.

        Args:
            chosen: The overrides of the choices.

        Returns:
            The config; None where it would differ from what Hydra composes, so that Hydra has to.
        """
        master_overrides = self._parser.parse_overrides(
            _to_containers(self._master.hydra.overrides.task)
        )
        # The master config must have all that is fixed, so that only options are to be exchanged.
        master_entries = _last_by_key(master_overrides)
        in_master = (override for entry in master_entries for override in entry.overrides)
        if not set(self._fixed).issubset(in_master):
            return None
        config = copy.deepcopy(self._master)
        OmegaConf.set_readonly(config.hydra, False)  # as Hydra leaves what it composes
        for override in chosen:
            group, name = override.split("=", 1)
            option = self._read(group, name) if self._is_of_files(group) else None
            if option is None:
                return None
            _exchange(config, group, name, option)
        return config

    def _is_of_files(self, group: str) -> bool:
        """Return whether the options of a group are as in their files; the result is cached.

        They are, if no study is chosen, which may change options, and if the option in the master
        config equals its file, so that no override has changed it.
        """
        if group not in self._of_files:
            chosen_names = self._master.hydra.runtime.choices
            option = self._read(group, chosen_names.get(group))  # None for an unusual file
            is_unchanged = option is not None and _to_containers(option) == _to_containers(
                self._master[group]
            )
            self._of_files[group] = is_unchanged and not chosen_names.get("experiment")
        return self._of_files[group]

    def _read(self, group: str, name: str | None) -> DictConfig | None:
        """Return an option as Hydra would compose it, read from its file and the main config.

        Args:
            group: The group.
            name: The option.

        Returns:
            The config of the option, which is cached: do not change it. None where the file is
            missing, or has a defaults list or a header: Hydra has to compose it then.
        """
        if (group, name) not in self._files:
            loader: Any = self._loader
            load = loader.repository.load_config
            main_config, option = load(self._master.hydra.job.config_name), load(f"{group}/{name}")
            # The main config has the settings that every option of the group shares.
            is_plain = option and not option.defaults_list and not any(option.header.values())
            merged_option: Any = (
                OmegaConf.merge(main_config.config.get(group) or {}, option.config)
                if is_plain
                else None
            )
            self._files[group, name] = merged_option
        return self._files[group, name]

    def _names(self, group: str) -> list[str]:
        """Return the names of the chosen options of a group, in order; one if it is not swept."""
        for entry in self.entries:
            if entry.key == group:
                return list(entry.values)
        return [str(self._compose(self._first).hydra.runtime.choices[group])]

    def _having(self, entry: GridEntry) -> list[str]:
        """Return the names of the chosen options of a group that have a setting.

        Args:
            entry: The setting with its values, such as `normalizer.ridge`.

        Raises:
            UserError: No chosen option has the setting.
        """
        group, names = entry.group, self._names(entry.group)
        key = entry.key.removeprefix(f"{group}.")
        having = [name for name in names if _has(self._option(group, name), key)]
        if not having:
            options = [self._option(group, name) for name in names]
            # For the message; `_target_` is the code of an option, and no setting.
            valid_keys = {f"{group}.{key!s}" for option in options for key in option} - {
                f"{group}._target_"
            }
            raise UserError(
                f"{entry.key}: no such setting of {', '.join(names)}{_remedy(entry, valid_keys)}"
            )
        return having

    def _option(self, group: str, name: str) -> DictConfig:
        """Return the config of an option of a group, from its file or from a composed config.

        Args:
            group: The group.
            name: The option: a swept one, or the only one of a group that is not swept.
        """
        overrides = next((entry.overrides for entry in self.entries if entry.key == group), [])
        if (
            len(overrides) > 1
            and self._is_of_files(group)
            and (file_option := self._read(group, name))
        ):
            return file_option
        # The one option of a group that is not swept is in every composed config.
        chosen = (f"{group}={name}",) if len(overrides) > 1 else self._first
        option: DictConfig = self._compose(chosen)[group]
        return option

    def _generate_jobs(self) -> Iterator[JobOverrides]:
        """Yield the overrides of every job, in order.

        A job gets an option of a choice, such as `normalizer.ridge=0`, only where its choice has
        that option.
        """
        having = {entry.key: self._having(entry) for entry in self.options}
        for job in product(*(entry.overrides for entry in self.entries)):
            chosen = dict(override.split("=", 1) for override in job)
            # A group that is not on the command line has one choice, the first of `_names`.
            matching_options = [
                entry
                for entry in self.options
                if chosen.get(entry.group, self._names(entry.group)[0]) in having[entry.key]
            ]
            for options in product(*(entry.overrides for entry in matching_options)):
                yield (*job, *options)


def _last_by_key(overrides: Sequence[Override]) -> list[GridEntry]:
    """Return an entry for each key, in order; the last override of a key counts.

    Raises `UserError` for a sweep that cannot be enumerated, such as `interval(0,1)`.
    """
    entries: dict[str, GridEntry] = {}
    for override in overrides:
        key = override.get_key_element()
        if not override.is_sweep_override():
            entries[key] = GridEntry(key, (override.get_value_element_as_str(),))
        elif override.is_discrete_sweep():
            entries[key] = GridEntry(key, tuple(override.sweep_string_iterator()))
        else:
            raise UserError(f"{override.input_line}: is no list of values; separate them by commas")
    return list(entries.values())


def _refuse_many(overrides: Sequence[Override]) -> None:
    """Raise `UserError` for an override of Hydra's own settings, or for too many jobs.

    The number of jobs is estimated before any range is expanded, which could take all memory.
    """
    job_count = 1.0
    for override in overrides:
        if override.is_hydra_override():
            raise UserError(f"{override.input_line}: of Hydra's settings none can be swept")
        value = override.value()
        if isinstance(value, RangeSweep):
            step = abs(float(value.step or 0))
            length = abs(float(value.stop or 0) - float(value.start or 0))
            job_count *= length / step if step else inf  # a step of 0 never arrives
        elif isinstance(value, ChoiceSweep):
            job_count *= len(value.list)
        if not job_count <= MAX_JOBS:  # NaN is refused, too
            raise UserError(
                f"{override.input_line}: makes more than {MAX_JOBS:,} jobs; compare fewer "
                "values at a time"
            )


def _remedy(entry: GridEntry, valid_keys: set[str]) -> str:
    """Return the end of a message on a setting that no chosen option has.

    It names the options of the group that have the setting, the setting that it is a synonym of, a
    similar setting, or all valid ones.

    Args:
        entry: The setting as typed, such as `normalizer.ridge`, with its values.
        valid_keys: The settings of the chosen options, with their group.
    """
    group, option = entry.key.split(".")[:2]  # of a nested setting, the outer name
    other_choices = [
        name for name in choices.names(group) if option in choices.options(group, name)
    ]
    if other_choices:
        return f"; it is a setting of {group}={', '.join(other_choices)}"
    synonym = setting_of(option)
    # `optimizer.lr` is `step_sizes`; of another group's setting, such as `optimizer.reg`, say less.
    if synonym in valid_keys or (synonym in ROWS and synonym.isidentifier()):
        return f"; type {quote(f'{synonym}=' + ','.join(entry.values))}"
    choose = (
        f"choose of {', '.join(sorted(valid_keys))}"
        if valid_keys
        else "there are none: leave it out"
    )
    return (
        did_you_mean(option, [valid_key.split(".")[1] for valid_key in valid_keys], f"{group}.")
        or f"; {choose}"
    )


def _is_checked_alone(key: str) -> bool:
    """Return whether the value of a key is checked on its own, whatever is chosen.

    False for a choice, and for an option of a choice without a check in the table of settings:
    their values show a mistake only when a job is built.
    """
    row = ROWS.get(key)
    return key.split(".")[0] not in CHOICES or (row is not None and row.check is not None)


def _exchange(config: DictConfig, group: str, name: str, option: DictConfig) -> None:
    """Put a copy of an option into a config in place of the option of its group.

    Args:
        config: The config, changed in place, with the name of the choice in its section `hydra`.
        group: The group.
        name: The name of the option.
        option: The settings of the option.
    """
    with open_dict(config):
        config[group] = copy.deepcopy(option)
        config.hydra.runtime.choices[group] = name


def _to_containers(config: DictConfig) -> Any:
    """Return a config as plain containers, with its interpolations unresolved."""
    return OmegaConf.to_container(config, resolve=False)


def _has(config: DictConfig, key: str) -> bool:
    """Return whether a config has a dotted key; its value is not resolved and may be missing."""
    node: Any = config
    for name in key.split("."):
        # A value, a section that is null, or a section without the name ends the path.
        if not isinstance(node, DictConfig) or node._is_none() or name not in node.keys():  # noqa: SIM118
            return False
        node = node._get_node(name)
    return True
