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
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, RangeSweep
from omegaconf import DictConfig, OmegaConf, open_dict

from normbench import choices
from normbench.datasets.values import UserError, did_you_mean
from normbench.settings import CHOICES, ROWS

MAX_JOBS = 100_000
PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+(?:e-?\d+)?)?", re.ASCII)
Job = tuple[str, ...]


def hold_back(overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a command line into the overrides for Hydra, and those of options of choices.

    An option of a choice is, for example, `normalizer.ridge=0`. Hydra would look for it in the
    default choice, before it knows the choice that is swept.
    """
    option_overrides = [
        override
        for override in overrides
        if override.split(".")[0] in CHOICES and "." in override.split("=")[0]
    ]
    return [
        override for override in overrides if override not in option_overrides
    ], option_overrides


def overridden(overrides: Sequence[str]) -> list[str]:
    """Return a line for each override that a later one with the same key replaces."""
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
    """One key of the command line with its values, as Hydra writes them."""

    key: str
    values: Job

    @property
    def group(self) -> str:
        """The group of an option, or the key itself."""
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
        arguments: The command line without the options of choices, see `hold_back`.
        held: The options of choices.

    Raises:
        UserError: The sweep has no jobs, or none of the swept choices has an option.
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
        for entry in self.entries:
            if (
                len(entry.values) > 1
                and entry.key not in CHOICES
                and entry.key in loader.list_groups("")
            ):
                raise UserError(f"{entry.key}: one choice holds for a whole comparison; name one")
        self._fixed = [single.overrides[0] for single in self.entries if len(single.values) == 1]
        # The first of the swept choices of each group: a job's config is a copy of the config with
        # these choices, in which the choices of the job replace them.
        self._first = tuple(
            entry.overrides[0]
            for entry in self.entries
            if len(entry.values) > 1 and entry.key in CHOICES
        )
        self._composed: dict[Job, DictConfig] = {}
        self._files: dict[tuple[str, str | None], DictConfig | None] = {}
        self._of_files: dict[str, bool] = {}
        self._parsed: dict[str, Any] = {}
        self._parser = parser
        self.jobs = list(dict.fromkeys(self._jobs()))

    def settings(self) -> Iterator[tuple[str, str, Any]]:
        """Yield each value of the swept settings: its override, its key, and the value itself."""
        for entry in [*self.entries, *self.options]:
            if len(entry.values) > 1 and _is_setting(entry.key):
                yield from (
                    (override, entry.key, self._parse(override)) for override in entry.overrides
                )

    def beside(self, override: str) -> Iterator[dict[str, Any]]:
        """Yield the swept settings of the jobs that have an override, each combination once.

        Args:
            override: One value of a swept setting, such as `cost.l2=0.1`.

        Yields:
            The values of all swept settings of such a job, by their keys.
        """
        swept = {swept_override: (key, value) for swept_override, key, value in self.settings()}
        having = (job for job in self.jobs if override in job)
        for job in dict.fromkeys(
            tuple(filter(swept.__contains__, swept_part)) for swept_part in having
        ):
            yield dict(swept[swept_override] for swept_override in job)

    def representatives(self, wrong_overrides: set[str]) -> dict[Job, Job]:
        """Return a job of each combination of choices, if possible one without wrong overrides.

        Jobs have the same combination where they differ only in settings that are checked by
        themselves, and either both or neither have a descent.

        Args:
            wrong_overrides: The overrides to avoid, from `wrong_settings`.

        Returns:
            The jobs, by those of their overrides that make the combination.
        """
        job_by_choices: dict[Job, Job] = {}
        for job in self.jobs:
            choices_key = tuple(
                override
                for override in job
                if not _is_setting(override.split("=")[0])
                or override in ("iterations=0", "record=[]")  # decide whether there is a descent
            )
            if choices_key not in job_by_choices or wrong_overrides.intersection(
                job_by_choices[choices_key]
            ):
                job_by_choices[choices_key] = job
        return job_by_choices

    def options_of(self, job: Job) -> dict[str, Any]:
        """Return the options of a job's choices that the command line sets, by their keys."""
        keys = {entry.key for entry in self.options}
        named = {override: override.split("=")[0] for override in job}
        return {key: self._parse(override) for override, key in named.items() if key in keys}

    def notes(self) -> list[str]:
        """Return a line for each option that some of the choices have and others lack."""
        lines = []
        for entry in self.options:
            has = self._having(entry)
            lacking = [name for name in self._names(entry.group) if name not in has]
            if lacking:
                lines.append(f"{entry.key}: for {', '.join(has)}; not for {', '.join(lacking)}")
        return lines

    def config(self, job: Job) -> DictConfig:
        """Return a new config of a job."""
        swept = {
            override
            for entry in self.entries
            if len(entry.values) > 1
            for override in entry.overrides
        }
        config = copy.deepcopy(self._compose(self._first))
        chosen = [
            override for override in job if override.split("=")[0] in CHOICES and override in swept
        ]
        for override in chosen:
            group, name = override.split("=", 1)
            _exchange(config, group, name, self._option(group, name))
        for override in job:
            if override not in chosen and override not in self._fixed:
                OmegaConf.update(config, override.split("=")[0], self._parse(override))
        with open_dict(config):
            config.hydra.overrides.task = list(job)
        return config

    def _parse(self, override: str) -> Any:
        """Return an override's value; plain numbers are parsed here: Hydra's parser takes 1 ms."""
        if override not in self._parsed:
            plain = PLAIN_NUMBER.fullmatch(override.partition("=")[2])
            if plain:
                self._parsed[override] = (float if plain[1] else int)(plain[0])
            else:
                self._parsed[override] = self._parser.parse_override(override).value()
        return self._parsed[override]

    def _compose(self, choices: Job) -> DictConfig:
        """Return the config of some options, with all that is not swept; composed once."""
        if choices not in self._composed:
            exchanged = self._exchanged(choices)
            overrides = [*self._fixed, *choices]
            self._composed[choices] = exchanged or self._loader.load_sweep_config(
                self._master, overrides
            )
        return self._composed[choices]

    def _exchanged(self, choices: Job) -> DictConfig | None:
        """Return the master config with other options; None where Hydra has to compose them."""
        master_overrides = self._parser.parse_overrides(_plain(self._master.hydra.overrides.task))
        # The master config must have all that is fixed, so that only options are to be exchanged.
        master_entries = _last_by_key(master_overrides)
        if not set(self._fixed).issubset(o for entry in master_entries for o in entry.overrides):
            return None
        config = copy.deepcopy(self._master)
        OmegaConf.set_readonly(config.hydra, False)  # as Hydra leaves what it composes
        for override in choices:
            group, name = override.split("=", 1)
            option = self._read(group, name) if self._is_of_files(group) else None
            if option is None:
                return None
            _exchange(config, group, name, option)
        return config

    def _is_of_files(self, group: str) -> bool:
        """Return whether no study or other override changes the options of a group.

        The option in the master config must then equal that of its file.
        """
        if group not in self._of_files:
            chosen_names = self._master.hydra.runtime.choices
            option = self._read(group, chosen_names.get(group))
            is_unchanged = option is not None and _plain(option) == _plain(self._master[group])
            self._of_files[group] = is_unchanged and not chosen_names.get("experiment")
        return self._of_files[group]

    def _read(self, group: str, name: str | None) -> DictConfig | None:
        """Return an option as Hydra would compose it, read from its file and the main config.

        None where the option's file has a defaults list or a header: Hydra has to compose it then.
        """
        if (group, name) not in self._files:
            loader: Any = self._loader
            load = loader.repository.load_config
            main_config, option = load(self._master.hydra.job.config_name), load(f"{group}/{name}")
            is_plain = option and not option.defaults_list and not any(option.header.values())
            merged_option: Any = (
                OmegaConf.merge(main_config.config.get(group) or {}, option.config)
                if is_plain
                else None
            )
            self._files[group, name] = merged_option
        return self._files[group, name]

    def _names(self, group: str) -> list[str]:
        """Return the swept options of a group, in order."""
        for entry in self.entries:
            if entry.key == group:
                return list(entry.values)
        return [str(self._compose(self._first).hydra.runtime.choices[group])]

    def _having(self, entry: GridEntry) -> list[str]:
        """Return the swept options that have a key; raise `UserError` where none has it."""
        group, names = entry.group, self._names(entry.group)
        key = entry.key.removeprefix(f"{group}.")
        has = [name for name in names if _has(self._option(group, name), key)]
        if not has:
            options = [self._option(group, name) for name in names]
            valid_keys = {f"{group}.{key!s}" for option in options for key in option} - {
                f"{group}._target_"
            }
            raise UserError(
                f"{entry.key}: no such setting of "
                f"{', '.join(names)}{_remedy(entry.key, valid_keys)}"
            )
        return has

    def _option(self, group: str, name: str) -> DictConfig:
        """Return the config of an option of a group, from its file or from a composed config."""
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

    def _jobs(self) -> Iterator[Job]:
        """Yield the overrides of every job, in order.

        A job gets an option of a choice, such as `normalizer.ridge=0`, only where its choice has
        that option.
        """
        having = {entry.key: self._having(entry) for entry in self.options}
        for job in product(*(entry.overrides for entry in self.entries)):
            chosen = dict(override.split("=", 1) for override in job)
            matching_options = [
                entry
                for entry in self.options
                if chosen.get(entry.group, self._names(entry.group)[0]) in having[entry.key]
            ]
            for options in product(*(entry.overrides for entry in matching_options)):
                yield (*job, *options)


def _last_by_key(overrides: Sequence[Override]) -> list[GridEntry]:
    """Return an entry for each key, in order; the last value on the command line counts."""
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
    """Raise `UserError` where Hydra's own settings are swept, or there are too many jobs."""
    jobs = 1.0
    for override in overrides:
        if override.is_hydra_override():
            raise UserError(f"{override.input_line}: of Hydra's settings none can be swept")
        value = override.value()
        if isinstance(value, RangeSweep):
            step = abs(float(value.step or 0))
            jobs *= abs(float(value.stop or 0) - float(value.start or 0)) / step if step else inf
        elif isinstance(value, ChoiceSweep):
            jobs *= len(value.list)
        if not jobs <= MAX_JOBS:
            raise UserError(
                f"{override.input_line}: makes more than {MAX_JOBS:,} jobs; compare fewer "
                "values at a time"
            )


def _remedy(key: str, valid_keys: set[str]) -> str:
    """Return the remedy for an option that no swept choice has: another choice or option."""
    group, option = key.split(".")[:2]
    other_choices = [
        name for name in choices.names(group) if option in choices.options(group, name)
    ]
    if other_choices:
        return f"; it is a setting of {group}={', '.join(other_choices)}"
    choose = (
        f"choose of {', '.join(sorted(valid_keys))}"
        if valid_keys
        else "there are none: leave it out"
    )
    return (
        did_you_mean(option, [valid_key.split(".")[1] for valid_key in valid_keys], f"{group}.")
        or f"; {choose}"
    )


def _is_setting(key: str) -> bool:
    """Return whether the value of a key is checked on its own, whatever is chosen.

    A choice is not, nor is an option of a choice without a check in the table of settings.
    """
    row = ROWS.get(key)
    return key.split(".")[0] not in CHOICES or (row is not None and row.check is not None)


def _exchange(config: DictConfig, group: str, name: str, option: DictConfig) -> None:
    """Put a copy of an option into a config in place of another of its group."""
    with open_dict(config):
        config[group] = copy.deepcopy(option)
        config.hydra.runtime.choices[group] = name


def _plain(config: DictConfig) -> Any:
    """Return a config as plain containers, with its interpolations unresolved."""
    return OmegaConf.to_container(config, resolve=False)


def _has(config: DictConfig, key: str) -> bool:
    """Return whether a config has a key, whatever its value, unresolved."""
    node: Any = config
    for name in key.split("."):
        if not isinstance(node, DictConfig) or node._is_none() or name not in node.keys():  # noqa: SIM118
            return False
        node = node._get_node(name)
    return True
