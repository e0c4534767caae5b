"""Errors of the command line in one line: the setting, its value, the rule, the remedy."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from shlex import quote

from hydra.errors import HydraException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from normbench.choices import entries, names, unknown_option_message
from normbench.contracts import GROUP_CONTRACTS
from normbench.datasets.values import UserError, did_you_mean
from normbench.settings import CHOICES, OF_OPTIONS, TABLE
from normbench.synonyms import OPTIONS, file_remedy, remedy, setting_of, spell_text

HELP = "normbench --help shows what there is"
# Characters of a single word; of one that is more than twice as long, the rest is cut.
MAX_WORD_LENGTH = 200


class SweepError(RuntimeError):
    """An error that ends a sweep and is not the user's mistake: one line, exit code 1."""


@contextmanager
def user_errors(override: str = "the command") -> Iterator[None]:
    """Turn whatever Hydra and OmegaConf raise on the command line into a `UserError`.

    Both have errors of their own for most mistakes, and raise any kind of error for the rest.

    Args:
        override: The override that is read, with which a message begins.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        # Hydra ends some messages by a link to its documentation.
        reason = str(error).partition("See https://hydra.cc")[0].strip()
        mark = getattr(error, "problem_mark", None)  # of a YAML file
        if mark:
            yaml_error = f"is no YAML ({getattr(error, 'problem', '')}); correct the file"
            raise UserError(f"{mark.name}, line {mark.line + 1}: {yaml_error}") from error
        if isinstance(error, OverrideParseException):
            raise UserError(_plain(f"{override}: {_explain_unread(override, reason)}")) from error
        message = user_message(error) or _plain(f"{override}: cannot be read ({reason}); {HELP}")
        raise UserError(message) from error


def _explain_unread(override: str, reason: str) -> str:
    """Return why an override cannot be parsed, and how to write it.

    Args:
        override: The override as typed.
        reason: The message of Hydra's parser, for a mistake that is not recognized here.

    Returns:
        The end of a message that begins with the override.
    """
    if "=" not in override:
        return _explain_bare(override)
    name, _, value = override.partition("=")
    if name in CHOICES and (option_remedy := remedy(name, value, names(name))):
        return option_remedy
    if override.count("[") != override.count("]") or override.count("{") != override.count("}"):
        text = spell_text(name, value)
        return f"its brackets do not close; close them, or, for a text with a bracket, type {text}"
    with_dollars = re.sub(r"(?<!\$)\{decades:", "${decades:", override)
    if with_dollars != override:
        return f"powers of ten are written with a dollar, in single quotes: '{with_dollars}'"
    if override.strip(",") != override:
        return f"begins or ends with a comma; type {quote(override.strip(','))}"
    # A value that has quotes already, a list and a sweep have another mistake.
    is_list = value[:1] in "[{" and value[-1:] in "]}"
    if is_list and ";" in value and "," not in value:
        return f"a list has commas; type {quote(override.replace(';', ','))}"
    if not (is_list or value[:1] in "'\"" or "," in value or "${" in value):
        return f"a value with such a character is quoted twice: {spell_text(name, value)}"
    return f"cannot be read ({reason}); a value with brackets or a dollar is quoted: 'NAME=VALUE'"


def _explain_bare(word: str) -> str:
    """Return why a word without an equals sign cannot be parsed, in the form of `_explain_unread`.

    Args:
        word: The word as typed, such as `iris`, `dataset:iris` or `my.csv`.
    """
    if typed_file := file_remedy(word):
        return typed_file
    groups = (*GROUP_CONTRACTS, "experiment")
    name, _, option = word.rpartition(":")
    group = next((g for g in groups if option in names(g) and name in ("", g)), "")
    if group:
        return f"is no setting; write {group}={option}"
    remedies = (remedy(group, word, names(group)) for group in (*OPTIONS, "experiment"))
    synonym_remedy = next(filter(None, remedies), "")
    if setting := setting_of(word):  # a synonym of a setting goes before one of an option
        synonym_remedy = f"is called {setting} here; type {setting}=VALUE"
    if synonym_remedy:
        return f"is no setting, which is written NAME=VALUE, and {synonym_remedy}"
    suggestion = did_you_mean(word, ("results", "dashboard", *setting_names()))
    return f"is no setting, which is written NAME=VALUE; {HELP}{suggestion}"


@cache
def setting_names() -> list[str]:
    """Return the names of all settings and groups, including the options of groups."""
    groups = (*CHOICES, "tracking")
    option_keys = [
        f"{group}.{key}"
        for group in groups
        for name in names(group)
        for key in entries(group, name)
    ]
    # The rows of options have no default of their own: their keys are those of the options' files.
    rows = [row.name for row in TABLE if row.default is not OF_OPTIONS]
    return [
        name
        for name in dict.fromkeys([*rows, "experiment", *option_keys])
        if "_target_" not in name
    ]


def unknown_setting_message(name: str) -> str:
    """Return the message that no setting has a name, with a similar setting where there is one."""
    return (
        f"{name}: no such setting; normbench --cfg job lists them, "
        f"normbench --help the choices{did_you_mean(name, setting_names())}"
    )


def user_message(error: BaseException) -> str | None:
    """Return the user's mistake in one line; None for an error that is a bug.

    Args:
        error: Any error. A `UserError` that it was raised from counts as the mistake. Errors of
            Hydra and OmegaConf are mistakes, too; their known messages are put into words here.
    """
    link: BaseException | None = error  # of the chain of errors
    while link is not None:
        if isinstance(link, UserError):
            return _plain(str(link))
        link = link.__cause__ or link.__context__  # raised from another error, or while handling it
    if not isinstance(error, (HydraException, OmegaConfBaseException)):
        return None
    text = str(error)
    missing = re.search(r"Could not (?:find|load) '(.+?)/([^']*)'", text)
    if missing:
        group, option = missing.groups()
        if group == "hydra":  # the group has two parts, such as hydra/launcher
            group, _, option = f"{group}/{option}".rpartition("/")
        listed = [line.strip() for line in text.splitlines() if re.match(r"^\t\S+$", line)]
        # Hydra lists only the options in the group's own folder.
        return _plain(unknown_option_message(group, option, listed or names(group)))
    unknown = re.search(r"Could not override '([^']+)'", text)
    if unknown:
        return _plain(unknown_setting_message(unknown[1]))
    refused = re.match(r"Error merging override (.+)", text)
    if refused:
        return _plain(
            f"{refused[1]}: is another kind of value than the setting; normbench --cfg job shows it"
        )
    # OmegaConf adds lines with the setting that an error is in.
    within = re.match(r"(.*?)\s+full_key: (\S+)", text, re.DOTALL)
    if within:
        return _plain(f"{within[2]}: {within[1]}; normbench --cfg job shows the settings")
    return _plain(text.replace("You may", "you may"))


def _plain(text: str) -> str:
    """Return a text as one line, with very long words cut to `MAX_WORD_LENGTH` characters."""
    return re.sub(
        rf"(\S{{{MAX_WORD_LENGTH}}})\S{{{MAX_WORD_LENGTH},}}", r"\1...", " ".join(text.split())
    )
