"""Find arguments that are no settings, or mean something else than they seem to.

They are found before Hydra reads them, so that each is answered with the argument to type.
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
RESULTS_COMMANDS = (
    *("show", "list", "studies", "table", "theory", "figure", "report", "rejudge", "delete"),
    *("export", "import", "profile", "words"),
)
RUN_WORDS = ("run", "compare", "start", "train", "fit", "bench", "benchmark", "go")
FLAG_OF_WORD = {"help": "--help", "version": "--version"}
NUMBER_PATTERN = re.compile(r"[-+]?\d*\.?\d+(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
THOUSANDS_PATTERN = re.compile(r"[1-9]\d{0,2}(,\d{3})+", re.ASCII)


def refuse_mistyped(arguments: Sequence[str]) -> None:
    """Raise `UserError` for an argument that is a known mistake, with what to type instead."""
    for number, argument in enumerate(arguments):
        _refuse_spaces(arguments[number:])
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
        _refuse_commas(key, value)


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
    typed = f"{name}={value or 'VALUE'}"
    return f"settings are written without dashes; type {quote(typed)}"


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
    raise UserError(
        f"{' '.join(joined_arguments)}: no space stands beside an equals sign; type "
        f"{quote(''.join(joined_arguments))}"
    )


def _refuse_bare(argument: str) -> None:
    """Raise `UserError` for a bare word that is a command or a flag, or that needs no word."""
    if argument in RESULTS_COMMANDS:
        raise UserError(f"{argument}: is about what is recorded; type normbench results {argument}")
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
    # A study and Hydra's own settings are not in the table of settings.
    if settings.find_setting(key) or key == "experiment" or key.startswith("hydra"):
        return
    setting = _setting_meant(key)
    if setting:
        try:  # a value with a comma is a second mistake: the message has the remedy for both
            _refuse_commas(setting, value)
        except UserError as error:
            remedy = str(error).partition(": ")[2]
            raise UserError(
                f"{key}={value}: the setting is called {setting} here; {remedy}"
            ) from error
        typed = quote(f"{setting}={value}")
        raise UserError(f"{key}={value}: the setting is called {setting} here; type {typed}")
    groups = [group for group in CHOICES if key in names(group)]
    if groups:
        raise UserError(f"{key}={value}: {key} is an option; type {groups[0]}={key}")


def _setting_meant(key: str) -> str:
    """Return the setting that a name stands for, as a synonym or without its group.

    Empty where there is none; the first one where several groups have such a setting.
    """
    in_groups = (name for name in setting_names() if name.endswith(f".{key}"))
    return setting_of(key) or next(in_groups, "")


def _refuse_commas(key: str, value: str) -> None:
    """Raise `UserError` where a comma seems to be a decimal point, or groups a number's digits.

    Args:
        key: The setting.
        value: The value as typed; commas between numbers without points may be such a mistake.
    """
    if key == "step_sizes":
        _refuse_step_sizes(value)
    digit_groups = value.split(",")  # such as 0,05 or 10,000; other values are left to Hydra
    if not all(group.isdecimal() for group in digit_groups) or len(digit_groups) < 2:
        return
    default = _find_default(key)  # its type tells how the value was meant
    rule = f"{key}={value}: a comma separates alternatives, and a point stands in a number"
    if isinstance(default, float) and len(digit_groups) == 2:
        first, second = digit_groups
        point = f"{rule}; type {key}={first}.{second}"
        if second.startswith("0") and second != "0":  # such as 0,05: no number of its own
            raise UserError(point)
        raise UserError(f"{point}, or {key}={first}.0,{second} to compare {first} and {second}")
    # A default of null tells no type, but 0 is hardly the first of two alternatives.
    if default is None and len(digit_groups) == 2 and digit_groups[0] == "0":
        raise UserError(f"{rule}; type {key}=0.{digit_groups[1]}")
    # Thousands: a list of alternatives has no group with a zero in front, such as 1,000.
    if THOUSANDS_PATTERN.fullmatch(value) and any(group.startswith("0") for group in digit_groups):
        raise UserError(f"{rule}; type {key}={''.join(digit_groups)}")


def _refuse_step_sizes(value: str) -> None:
    """Raise `UserError` for step sizes that are no list, or whose numbers have commas.

    Args:
        value: The value of `step_sizes` as typed, such as `0.1,1`. A single number and a list in
            brackets are accepted.
    """
    if ";" in value:  # such as 0,1;1: a decimal comma, and so a semicolon between numbers
        numbers = [entry.strip().replace(",", ".") for entry in value.strip("[]").split(";")]
        raise UserError(
            f"step_sizes={value}: a comma separates numbers, and a point stands in a number; type "
            f"'step_sizes=[{','.join(numbers)}]'"
        )
    numbers = value.split(",")
    if len(numbers) < 2 or not all(NUMBER_PATTERN.fullmatch(number) for number in numbers):
        return
    if numbers[0] == "0" and len(numbers) == 2:  # a decimal comma: no step size is 0
        raise UserError(
            f"step_sizes={value}: a comma separates numbers, and a point stands in a number; type "
            f"step_sizes=0.{numbers[1]}"
        )
    powers = ""  # a second remedy
    # A shell reads an unquoted ${decades:-7,2} as a variable with the default 7,2.
    if all(number.isdecimal() for number in numbers):
        powers = f", or, for powers of ten, 'step_sizes=${{decades:-{value}}}' in single quotes"
    raise UserError(
        f"step_sizes={value}: step sizes are a list; type 'step_sizes=[{value}]'{powers}"
    )


def _find_default(key: str) -> object:
    """Return the default of a setting; `...` where it is unknown.

    Args:
        key: The setting. The default of an option of a group, such as `normalizer.ridge`, is that
            of the first option with such a key.
    """
    row = settings.ROWS.get(key)
    if row is not None and row.default is not settings.OF_OPTIONS:
        return row.default
    group, _, option = key.partition(".")
    if group in CHOICES:
        for name in names(group):
            option_defaults = options(group, name)
            if option in option_defaults:
                return option_defaults[option]
    return ...
