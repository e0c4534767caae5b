"""Find arguments that are no settings, or mean something else than they seem to.

They are found before Hydra reads them, so that each is answered with the argument to type.
"""

import os
import re
from collections.abc import Sequence
from itertools import takewhile
from shlex import quote

from normbench import settings
from normbench.choices import names
from normbench.command.config.errors import setting_names
from normbench.datasets.values import UserError
from normbench.settings import CHOICES
from normbench.synonyms import command_of, file_remedy, option_of, setting_of, spell_text

# The words that may follow `normbench results`, and those that seem to start a comparison.
RESULTS_COMMANDS = (
    *("show", "list", "studies", "table", "theory", "figure", "report", "rejudge", "delete"),
    *("export", "import", "profile", "words"),
)
RUN_WORDS = ("run", "compare", "start", "train", "fit", "bench", "benchmark", "go")
FLAG_OF_WORD = {"help": "--help", "version": "--version"}
NUMBER_PATTERN = re.compile(r"[-+]?\d*\.?\d+(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)


def refuse_mistyped(arguments: Sequence[str]) -> None:
    """Raise `UserError` for an argument that is a known mistake, with what to type instead."""
    for number, argument in enumerate(arguments):
        _refuse_spaces(arguments[number:])
        _refuse_split_text(arguments[number:])
        _refuse_split_list(arguments[number:])
        if "=" not in argument:
            _refuse_bare(argument)
            continue
        key, _, value = argument.partition("=")
        # Anything but a name is Hydra's grammar, such as `hydra/launcher` or `+name`.
        if not re.fullmatch(r"[\w.]+", key):
            continue
        if value.startswith("="):
            raise UserError(
                f"{argument}: one equals sign is enough; type {key}={value.lstrip('=')}"
            )
        if not value:
            raise UserError(
                f"{argument}: has no value. The shell takes out ${{...}} that stands without "
                f"quotes; type '{key}=${{...}}' in single quotes, or {key}=VALUE"
            )
        _refuse_synonym(key, value)
        if key == "step_sizes":
            _refuse_step_sizes(value)


def suggest_setting(flag: str, value: str | None) -> str:
    """Return a hint at the setting to type instead of a flag, as for `--dataset iris`.

    Args:
        flag: The flag, with its dashes.
        value: The word after the flag; None for nothing.

    Returns:
        A clause for an error's message; empty where no setting has a similar name.
    """
    bare = flag.lstrip("-").replace("-", "_")
    name = bare if bare in (*settings.ROWS, "experiment") else _setting_meant(bare)
    if not name:
        return ""
    if name == "dataset" and (remedy := file_remedy(value or "")):
        return remedy
    return f"settings are written without dashes; type {_spell(name, value or 'VALUE')}"


def _refuse_spaces(arguments: Sequence[str]) -> None:
    """Raise `UserError` where arguments begin with a setting with spaces beside its equals sign.

    Args:
        arguments: The arguments of the command line from the one in question on, at least one.
    """
    argument, *following = arguments[:3]
    if not following:
        return
    if "=" not in argument and following[0].startswith("="):  # `seed = 1`, or `seed =1`
        joined_arguments = [argument, *(following if following[0] == "=" else following[:1])]
    # `seed= 1`; a word that follows with an equals sign of its own is the next setting.
    elif argument.endswith("=") and argument.strip("=") and "=" not in following[0]:
        joined_arguments = [argument, following[0]]
    else:
        return
    key, _, value = "".join(joined_arguments).partition("=")
    raise UserError(
        f"{' '.join(joined_arguments)}: no space stands beside an equals sign; type "
        f"{_spell(key, value)}"
    )


def _refuse_split_text(arguments: Sequence[str]) -> None:
    """Raise `UserError` for a file whose name the shell splits at blanks, or Hydra at commas.

    The name of the target's column is split at blanks, too.

    Args:
        arguments: The arguments of the command line from the one in question on, at least one.
    """
    argument, *following = arguments
    words = [argument, *takewhile(lambda word: "=" not in word, following)]
    key, equals, _ = argument.partition("=")
    for count in range(len(words), 0, -1):
        typed = " ".join(words[:count])
        text = typed.removeprefix(key + equals if equals else "")
        is_column = key == "dataset.target" and count > 1
        if not (is_column or ((count > 1 or "," in text) and os.path.isfile(text))):
            continue
        if equals and key != "dataset":
            raise UserError(f"{typed}: such a text is quoted; type {spell_text(key, text)}")
        if remedy := file_remedy(text):
            raise UserError(f"{typed}: {remedy}")


def _refuse_split_list(arguments: Sequence[str]) -> None:
    """Raise `UserError` for several values with blanks between them, such as `seed=1, 2`.

    Args:
        arguments: The arguments of the command line from the one in question on, at least one.
    """
    argument, *following = arguments
    typed_key, equals, value = argument.partition("=")
    key = _meant(typed_key)
    values = [value]
    for word in following if equals else ():
        is_next = values[-1].endswith(",") or word.startswith(",") or _is_open(" ".join(values))
        if "=" not in word and (is_next or _is_alternative(key, value, word)):
            values.append(word)
        elif key not in CHOICES:  # an option tells its group wherever it stands
            break
    text = " ".join(values)
    typed = f"{typed_key}={text}"
    if len(values) < 2 or _is_open(text):
        return
    if key in CHOICES:
        text = text.strip("[], ")
    if key in CHOICES or not value.startswith(("[", "{")):
        listed = re.sub(r"[\s,]+", ",", text).strip(",")
        text = f"[{listed}]" if key == "step_sizes" else listed
    raise UserError(f"{typed}: a blank ends a value; type {_spell(key, text)}")


def _is_open(text: str) -> bool:
    """Return whether a bracket of a text is not closed."""
    return text.count("[") > text.count("]") or text.count("{") > text.count("}")


def _is_alternative(key: str, value: str, word: str) -> bool:
    """Return whether a word is another value of a setting: an option of its group, or a number."""
    if key in CHOICES:
        return all(option_of(key, entry, names(key)) for entry in word.strip(",").split(","))
    return all(NUMBER_PATTERN.fullmatch(entry) for entry in (value.split(",")[-1], word))


def _refuse_bare(argument: str) -> None:
    """Raise `UserError` for a bare word that is a command or a flag, or that needs no word."""
    is_command = argument in RESULTS_COMMANDS
    command = f"normbench results {argument}" if is_command else command_of(argument)
    if command:
        raise UserError(f"{argument}: is about what is recorded; type {command}")
    if argument in RUN_WORDS:
        raise UserError(
            f"{argument}: needs no word; type normbench alone for the default comparison, or with "
            "settings, such as normbench dataset=wine cost=multiclass_softmax"
        )
    if argument in FLAG_OF_WORD:
        raise UserError(f"{argument}: is no setting; type normbench {FLAG_OF_WORD[argument]}")


def _refuse_synonym(key: str, value: str) -> None:
    """Raise `UserError` for a key that is a synonym of a setting, or the name of an option.

    Args:
        key: What stands before the equals sign; a setting of this project is accepted.
        value: What stands after it.
    """
    setting = _meant(key)
    if setting != key:
        if setting == "dataset" and (remedy := file_remedy(value)):
            raise UserError(f"{key}={value}: {remedy}")
        called = f"{key}={value}: the setting is called {setting} here"
        if setting == "step_sizes":
            try:  # several numbers are a second mistake: the message has the remedy for both
                _refuse_step_sizes(value)
            except UserError as error:
                raise UserError(f"{called}; {str(error).partition(': ')[2]}") from error
        raise UserError(f"{called}; type {_spell(setting, value)}")
    groups = [group for group in CHOICES if key in names(group)]
    if groups:
        raise UserError(f"{key}={value}: {key} is an option; type {groups[0]}={key}")


def _meant(key: str) -> str:
    """Return the setting that a key stands for; the key itself where that is one, or unknown."""
    # A study and Hydra's own settings are not in the table of settings.
    if settings.find_setting(key) or key == "experiment" or key.startswith("hydra"):
        return key
    return _setting_meant(key) or _setting_meant(key.rpartition(".")[2]) or key


def _spell(key: str, value: str) -> str:
    """Return a setting with its value, both as they are called here, quoted for a shell."""
    setting = _meant(key)
    if setting in CHOICES:
        entries = value.split(",")
        value = ",".join(option_of(setting, entry, names(setting)) or entry for entry in entries)
    return quote(f"{setting}={value}")


def _setting_meant(key: str) -> str:
    """Return the setting that a name stands for, as a synonym or without its group.

    Empty where there is none; the first one where several groups have such a setting.
    """
    in_groups = (name for name in setting_names() if name.endswith(f".{key}"))
    return setting_of(key) or next(in_groups, "")


def _refuse_step_sizes(value: str) -> None:
    """Raise `UserError` for several step sizes without brackets.

    Args:
        value: The value of `step_sizes` as typed, such as `0.1,1`. A single number and a list in
            brackets are accepted.
    """
    numbers = value.split(",")
    if len(numbers) < 2 or not all(NUMBER_PATTERN.fullmatch(number) for number in numbers):
        return
    remedies = []
    if all(float(number) > 0 for number in numbers):
        remedies.append(f"type 'step_sizes=[{value}]'")
    # A shell reads an unquoted ${decades:-7,2} as a variable with the default 7,2.
    if len(numbers) == 2 and all(number.lstrip("-").isdecimal() for number in numbers):
        powers = f"'step_sizes=${{decades:-{value.lstrip('-')}}}'"
        remedies.append(f"for powers of ten, {powers} in single quotes")
    if remedies:
        raise UserError(f"step_sizes={value}: step sizes are a list; {', or, '.join(remedies)}")
