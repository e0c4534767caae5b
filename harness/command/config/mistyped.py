"""Words of a command line that are no settings, or mean something else than they seem to.

They are looked for before Hydra reads them, so that each is answered with what to type.
"""

import re
from collections.abc import Sequence
from shlex import quote

from normbench import settings
from normbench.choices import names, options
from normbench.command.config.errors import setting_names
from normbench.datasets.values import UserError
from normbench.settings import CHOICES
from normbench.synonyms import setting_of

# The words that may follow `normbench results`, and those that seem to start a comparison.
OF_RESULTS = (
    *("show", "list", "studies", "table", "theory", "figure", "report", "rejudge", "delete"),
    *("export", "import", "profile", "words"),
)
TO_RUN = ("run", "compare", "start", "train", "fit", "bench", "benchmark", "go")
TO_ASK = {"help": "--help", "version": "--version"}
NO_BATCHES = ("batch", "batch_size", "batchsize", "minibatch")
NUMBER = re.compile(r"[-+]?\d*\.?\d+(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
THOUSANDS = re.compile(r"[1-9]\d{0,2}(,\d{3})+", re.ASCII)


def refuse_mistyped(words: Sequence[str]) -> None:
    """Raise `UserError` for a word that is a known mistake, with what to type instead."""
    for number, word in enumerate(words):
        _refuse_spaces(words[number:])
        if "=" not in word:
            _refuse_bare(word)
            continue
        key, _, value = word.partition("=")
        if not re.fullmatch(r"[\w.]+", key):
            continue
        if value.startswith("="):
            raise UserError(f"{word}: one equals sign is enough; type {key}={value.lstrip('=')}")
        if not value:
            raise UserError(
                f"{word}: has no value. The shell takes out ${{...}} that stands without quotes; "
                f"type '{key}=${{...}}' in single quotes, or {key}=VALUE"
            )
        _refuse_synonym(key, value)
        _refuse_commas(key, value)


def of_flag(flag: str, value: str | None) -> str:
    """Return what to type instead of a flag that is a setting, as in `--dataset iris`; or nothing.

    value: what follows it, None for nothing.
    """
    bare = flag.lstrip("-").replace("-", "_")
    name = bare if bare in (*settings.ROWS, "experiment") else _meant(bare)
    if not name:
        return ""
    typed = f"{name}={value or 'VALUE'}"
    return f"settings are written without dashes; type {quote(typed)}"


def _refuse_spaces(words: Sequence[str]) -> None:
    """Raise `UserError` where words begin with a setting that has spaces beside its equals sign."""
    word, *after = words[:3]
    if not after:
        return
    if "=" not in word and after[0].startswith("="):
        pieces = [word, *(after if after[0] == "=" else after[:1])]
    elif word.endswith("=") and word.strip("=") and "=" not in after[0]:
        pieces = [word, after[0]]
    else:
        return
    raise UserError(
        f"{' '.join(pieces)}: no space stands beside an equals sign; type {quote(''.join(pieces))}"
    )


def _refuse_bare(word: str) -> None:
    """Raise `UserError` for a word without a value that is a command elsewhere."""
    if word in OF_RESULTS:
        raise UserError(f"{word}: is about what is recorded; type normbench results {word}")
    if word in TO_RUN:
        raise UserError(
            f"{word}: needs no word; type normbench alone for the default comparison, or with "
            "settings, such as normbench dataset=wine cost=multiclass_softmax"
        )
    if word in TO_ASK:
        raise UserError(f"{word}: is no setting; type normbench {TO_ASK[word]}")


def _refuse_synonym(key: str, value: str) -> None:
    """Raise `UserError` for a setting that is called otherwise here."""
    if settings.find(key) or key == "experiment" or key.startswith("hydra"):
        return
    if key in NO_BATCHES:
        raise UserError(
            f"{key}={value}: there are no batches, every step takes all points; leave it out, or "
            "take fewer points with dataset.points=200"
        )
    meant = _meant(key)
    if meant:
        typed = quote(f"{meant}={value}")
        raise UserError(f"{key}={value}: the setting is called {meant} here; type {typed}")
    groups = [group for group in CHOICES if key in names(group)]
    if groups:
        raise UserError(f"{key}={value}: {key} is an option; type {groups[0]}={key}")


def _meant(key: str) -> str:
    """Return the setting that a name stands for, by a synonym or without its group; or nothing."""
    alone = (name for name in setting_names() if name.endswith(f".{key}"))
    return setting_of(key) or next(alone, "")


def _refuse_commas(key: str, value: str) -> None:
    """Raise `UserError` where a comma seems to stand for a point, or groups a number's digits."""
    if key == "step_sizes":
        _refuse_step_sizes(value)
    groups = value.split(",")
    if not all(group.isdecimal() for group in groups) or len(groups) < 2:
        return
    default = _default(key)
    rule = f"{key}={value}: a comma separates alternatives, and a point stands in a number"
    if isinstance(default, float) and len(groups) == 2:
        first, second = groups
        raise UserError(
            f"{rule}; type {key}={first}.{second}, or {key}={first}.0,{second} to compare {first} "
            f"and {second}"
        )
    if default is None and len(groups) == 2 and groups[0] == "0":
        raise UserError(f"{rule}; type {key}=0.{groups[1]}")
    if THOUSANDS.fullmatch(value) and any(group.startswith("0") for group in groups):
        raise UserError(f"{rule}; type {key}={''.join(groups)}")


def _refuse_step_sizes(value: str) -> None:
    """Raise `UserError` for step sizes that are no list, or whose numbers have commas."""
    if ";" in value:
        numbers = [entry.strip().replace(",", ".") for entry in value.strip("[]").split(";")]
        raise UserError(
            f"step_sizes={value}: a comma separates numbers, and a point stands in a number; type "
            f"'step_sizes=[{','.join(numbers)}]'"
        )
    numbers = value.split(",")
    if len(numbers) < 2 or not all(NUMBER.fullmatch(number) for number in numbers):
        return
    if numbers[0] == "0" and len(numbers) == 2:
        raise UserError(
            f"step_sizes={value}: a comma separates numbers, and a point stands in a number; type "
            f"step_sizes=0.{numbers[1]}"
        )
    powers = ""
    if all(number.isdecimal() for number in numbers):  # a shell's default for what is not set
        powers = f", or, for powers of ten, 'step_sizes=${{decades:-{value}}}' in single quotes"
    raise UserError(
        f"step_sizes={value}: step sizes are a list; type 'step_sizes=[{value}]'{powers}"
    )


def _default(key: str) -> object:
    """Return the default of a setting, of an option its file's; `...` where nothing is known."""
    row = settings.ROWS.get(key)
    if row is not None and row.default is not settings.OF_OPTIONS:
        return row.default
    group, _, option = key.partition(".")
    if group in CHOICES:
        for name in names(group):
            known = options(group, name)
            if option in known:
                return known[option]
    return ...
