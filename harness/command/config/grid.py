"""The jobs of a sweep: every combination of what the command line names, each with its config.

Hydra composes a config in some 70 ms. Here an option is read from its file, or composed once where
something else may add to it, and a job's config is a copy of the first one in which options and
settings are replaced: 4 ms.
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

MOST_JOBS = 100_000
PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+(?:e-?\d+)?)?", re.ASCII)
Words = tuple[str, ...]


def hold_back(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command line without the options of choices, and those: `normalizer.ridge=0`.

    Hydra would look for them in the default choice, before it knows the one that is swept.
    """
    held = [word for word in words if word.split(".")[0] in CHOICES and "." in word.split("=")[0]]
    return [word for word in words if word not in held], held


def overridden(words: Sequence[str]) -> list[str]:
    """Return a line for each word of a command line that another one of its key follows."""
    last = {word.partition("=")[0]: word for word in words}
    pairs = ((word, last[word.partition("=")[0]]) for word in words if "=" in word)
    return [
        f"{word}: does not count; {later} comes after it" for word, later in pairs if later != word
    ]


@dataclass(frozen=True)
class Part:
    """What the command line says of one key: its values, as Hydra writes them."""

    key: str
    values: Words

    @property
    def group(self) -> str:
        """The group of an option, or the key itself."""
        return self.key.split(".")[0]

    @property
    def words(self) -> list[str]:
        """Each value as an override."""
        return [f"{self.key}={value}" for value in self.values]


class Grid:
    """The jobs of a sweep, in order: words that Hydra composes, and the config of each.

    master: the config that Hydra composed without what is swept. arguments: the command line
    without the options of choices; held: those. Raises `UserError` for a sweep of no jobs and for
    an option that none of the swept choices has.
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
        overrides = [parser.parse_overrides(list(words)) for words in (arguments, held)]
        _refuse_many([override for some in overrides for override in some])
        self.parts, self.options = (_last(some) for some in overrides)
        if not all(part.values for part in [*self.parts, *self.options]):
            raise UserError(
                f"{' '.join([*arguments, *held])}: is a comparison of no jobs; "
                "check the pattern of the option that is swept"
            )
        for part in self.parts:
            if (
                len(part.values) > 1
                and part.key not in CHOICES
                and part.key in loader.list_groups("")
            ):
                raise UserError(f"{part.key}: one choice holds for a whole comparison; name one")
        self._fixed = [part.words[0] for part in self.parts if len(part.values) == 1]
        # What several choices of a group begin with is replaced in every job but the first.
        self._first = tuple(
            part.words[0] for part in self.parts if len(part.values) > 1 and part.key in CHOICES
        )
        self._composed: dict[Words, DictConfig] = {}
        self._files: dict[tuple[str, str | None], DictConfig | None] = {}
        self._of_files: dict[str, bool] = {}
        self._parsed: dict[str, Any] = {}
        self._parser = parser
        self.jobs = list(dict.fromkeys(self._jobs()))

    def settings(self) -> Iterator[tuple[str, str, Any]]:
        """Yield each value of the swept settings: its word, its key, and the value itself."""
        for part in [*self.parts, *self.options]:
            if len(part.values) > 1 and _is_setting(part.key):
                yield from ((word, part.key, self._parse(word)) for word in part.words)

    def beside(self, word: str) -> Iterator[dict[str, Any]]:
        """Yield what the swept settings are in the jobs that have a word, each once."""
        swept = {known: (key, value) for known, key, value in self.settings()}
        having = (words for words in self.jobs if word in words)
        for words in dict.fromkeys(tuple(filter(swept.__contains__, each)) for each in having):
            yield dict(swept[known] for known in words)

    def representatives(self, wrong: set[str]) -> dict[Words, Words]:
        """Return a job of each combination of choices, one without wrong words where there is one.

        Jobs are alike where they differ in settings alone that are checked by themselves.
        """
        found: dict[Words, Words] = {}
        for words in self.jobs:
            alike = tuple(
                word
                for word in words
                if not _is_setting(word.split("=")[0]) or word in ("iterations=0", "record=[]")
            )
            if alike not in found or wrong.intersection(found[alike]):
                found[alike] = words
        return found

    def options_of(self, words: Words) -> dict[str, Any]:
        """Return the options of a job's choices that the command line names, by their keys."""
        keys = {part.key for part in self.options}
        named = {word: word.split("=")[0] for word in words}
        return {key: self._parse(word) for word, key in named.items() if key in keys}

    def notes(self) -> list[str]:
        """Return a line for each option that some of the choices have and others have not."""
        told = []
        for part in self.options:
            has = self._having(part)
            others = [name for name in self._names(part.group) if name not in has]
            if others:
                told.append(f"{part.key}: for {', '.join(has)}; not for {', '.join(others)}")
        return told

    def config(self, words: Words) -> DictConfig:
        """Return a new config of a job."""
        swept = {word for part in self.parts if len(part.values) > 1 for word in part.words}
        made = copy.deepcopy(self._compose(self._first))
        chosen = [word for word in words if word.split("=")[0] in CHOICES and word in swept]
        for word in chosen:
            group, name = word.split("=", 1)
            _exchange(made, group, name, self._option(group, name))
        for word in words:
            if word not in chosen and word not in self._fixed:
                OmegaConf.update(made, word.split("=")[0], self._parse(word))
        with open_dict(made):
            made.hydra.overrides.task = list(words)
        return made

    def _parse(self, word: str) -> Any:
        """Return a word's value; plain numbers are not Hydra's parser's to read: it takes 1 ms."""
        if word not in self._parsed:
            plain = PLAIN.fullmatch(word.partition("=")[2])
            if plain:
                self._parsed[word] = (float if plain[1] else int)(plain[0])
            else:
                self._parsed[word] = self._parser.parse_override(word).value()
        return self._parsed[word]

    def _compose(self, choices: Words) -> DictConfig:
        """Return the config of some options, with all that is not swept; composed once."""
        if choices not in self._composed:
            made = self._exchanged(choices)
            words = [*self._fixed, *choices]
            self._composed[choices] = made or self._loader.load_sweep_config(self._master, words)
        return self._composed[choices]

    def _exchanged(self, choices: Words) -> DictConfig | None:
        """Return the master config with other options; None where Hydra has to compose them."""
        if not set(self._fixed).issubset(_plain(self._master.hydra.overrides.task)):
            return None
        made = copy.deepcopy(self._master)
        OmegaConf.set_readonly(made.hydra, False)  # as Hydra leaves what it composes
        for word in choices:
            group, name = word.split("=", 1)
            option = self._read(group, name) if self._is_of_files(group) else None
            if option is None:
                return None
            _exchange(made, group, name, option)
        return made

    def _is_of_files(self, group: str) -> bool:
        """Return whether the options of a group are what files say: no study adds to them."""
        if group not in self._of_files:
            known = self._master.hydra.runtime.choices
            option = self._read(group, known.get(group))
            same = option is not None and _plain(option) == _plain(self._master[group])
            self._of_files[group] = same and not known.get("experiment")
        return self._of_files[group]

    def _read(self, group: str, name: str | None) -> DictConfig | None:
        """Return an option as its file and that of every command have it, None where others do."""
        if (group, name) not in self._files:
            loader: Any = self._loader
            load = loader.repository.load_config
            every, option = load(self._master.hydra.job.config_name), load(f"{group}/{name}")
            plain = option and not option.defaults_list and not any(option.header.values())
            own: Any = (
                OmegaConf.merge(every.config.get(group) or {}, option.config) if plain else None
            )
            self._files[group, name] = own
        return self._files[group, name]

    def _names(self, group: str) -> list[str]:
        """Return the options of a group that the sweep has, in order."""
        for part in self.parts:
            if part.key == group:
                return list(part.values)
        return [str(self._compose(self._first).hydra.runtime.choices[group])]

    def _having(self, part: Part) -> list[str]:
        """Return the swept options that have a key; raise `UserError` where none has it."""
        group, names = part.group, self._names(part.group)
        key = part.key.removeprefix(f"{group}.")
        has = [name for name in names if _has(self._option(group, name), key)]
        if not has:
            options = [self._option(group, name) for name in names]
            known = {f"{group}.{key!s}" for option in options for key in option} - {
                f"{group}._target_"
            }
            raise UserError(
                f"{part.key}: no such setting of {', '.join(names)}{_remedy(part.key, known)}"
            )
        return has

    def _option(self, group: str, name: str) -> DictConfig:
        """Return an option of a group."""
        words = next((part.words for part in self.parts if part.key == group), [])
        if len(words) > 1 and self._is_of_files(group) and (own := self._read(group, name)):
            return own
        chosen = (f"{group}={name}",) if len(words) > 1 else self._first
        option: DictConfig = self._compose(chosen)[group]
        return option

    def _jobs(self) -> Iterator[Words]:
        """Yield the words of every job, in order; options go to the choices that have them."""
        having = {part.key: self._having(part) for part in self.options}
        for words in product(*(part.words for part in self.parts)):
            chosen = dict(word.split("=", 1) for word in words)
            mine = [
                part
                for part in self.options
                if chosen.get(part.group, self._names(part.group)[0]) in having[part.key]
            ]
            for options in product(*(part.words for part in mine)):
                yield (*words, *options)


def _last(overrides: Sequence[Override]) -> list[Part]:
    """Return a part for each key, in order; what stands last on the command line counts."""
    parts: dict[str, Part] = {}
    for override in overrides:
        key = override.get_key_element()
        if not override.is_sweep_override():
            parts[key] = Part(key, (override.get_value_element_as_str(),))
        elif override.is_discrete_sweep():
            parts[key] = Part(key, tuple(override.sweep_string_iterator()))
        else:
            raise UserError(f"{override.input_line}: is no list of values; separate them by commas")
    return list(parts.values())


def _refuse_many(overrides: Sequence[Override]) -> None:
    """Raise `UserError` where values are swept that are Hydra's own, or make too many jobs."""
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
        if not jobs <= MOST_JOBS:
            raise UserError(
                f"{override.input_line}: makes more than {MOST_JOBS:,} jobs; compare fewer "
                "values at a time"
            )


def _remedy(key: str, known: set[str]) -> str:
    """Return what is meant by an option that no choice has: another choice's, or a known one."""
    group, option = key.split(".")[:2]
    others = [name for name in choices.names(group) if option in choices.options(group, name)]
    if others:
        return f"; it is a setting of {group}={', '.join(others)}"
    choose = f"choose of {', '.join(sorted(known))}" if known else "there are none: leave it out"
    return did_you_mean(option, [one.split(".")[1] for one in known], f"{group}.") or f"; {choose}"


def _is_setting(key: str) -> bool:
    """Return whether a key is no choice and no option of one: it is checked by itself."""
    row = ROWS.get(key)
    return key.split(".")[0] not in CHOICES or (row is not None and row.check is not None)


def _exchange(config: DictConfig, group: str, name: str, option: DictConfig) -> None:
    """Put a copy of an option into a config in place of another of its group."""
    with open_dict(config):
        config[group] = copy.deepcopy(option)
        config.hydra.runtime.choices[group] = name


def _plain(config: DictConfig) -> Any:
    return OmegaConf.to_container(config, resolve=False)


def _has(config: DictConfig, key: str) -> bool:
    """Return whether a config has a key, whatever its value, unresolved."""
    node: Any = config
    for name in key.split("."):
        if not isinstance(node, DictConfig) or node._is_none() or name not in node.keys():  # noqa: SIM118
            return False
        node = node._get_node(name)
    return True
