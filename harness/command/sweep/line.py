"""The command line of a comparison: its flags and overrides, and Hydra applied to them."""

import argparse
import os
import re
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from hydra._internal.hydra import Hydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override

from normbench.choices import CONF, names
from normbench.command.config import study
from normbench.command.config.errors import HELP, unknown_setting_message, user_errors
from normbench.command.config.grid import split_option_overrides
from normbench.command.config.mistyped import refuse_mistyped, suggest_setting
from normbench.datasets import MissingFileError
from normbench.datasets.values import UserError, did_you_mean
from normbench.settings import CHOICES, ROWS

MAIN_CONFIG = "config"  # the file that every command starts from
MAX_OPTION_BYTES = 100_000  # bytes of an option's file
# Aliases (*name) of an option's file, at most: each repeats its anchor, which may hold aliases.
MAX_ALIASES, ALIAS_PATTERN = (20, re.compile(rb"(?<![\w*])\*\w"))
COMPLETION, SHELLS = ("install", "uninstall", "query"), ("bash", "fish", "zsh")
KEYS = {"hydra", "experiment", *(row.partition(".")[0] for row in ROWS)}
INFO_TOPICS = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")


def run(arguments: Sequence[str]) -> None:
    """Run a comparison, or print what a flag asks for: the help, a config, how it is composed.

    Args:
        arguments: The arguments after `normbench`: flags and overrides.

    Raises:
        UserError: A flag or a setting does not exist, or a value is mistaken.
        SystemExit: Some jobs of the comparison failed.
    """
    parser = _parser()  # registers the flags that `_refuse_flags` knows
    _refuse_flags(arguments)
    options = parser.parse_intermixed_args(list(arguments))
    if options.version:
        print(f"normbench {version('normbench')}")
        return
    options.overrides = [
        word.replace("hydra.sweep.dir=", "folder=", 1) if word.startswith("hydra.") else word
        for word in options.overrides
    ]
    refuse_mistyped(options.overrides)
    # With one of these flags nothing runs, and Hydra reads the overrides by itself.
    if not (options.help or options.cfg or options.info or options.shell_completion):
        _check(options.overrides, of_files=options.config_dir is None)
    from normbench.command.config import resolvers
    from normbench.command.sweep import hydras_own  # late: a mistake in a name is found without it

    with hydras_own.hydra_session(_folder(options.config_dir)) as hydra:
        if options.help:
            hydra.app_help(MAIN_CONFIG, parser, options)
        elif options.cfg:
            resolvers.register()  # for `--resolve`
            _refuse_swept(options.overrides)
            hydra.show_cfg(MAIN_CONFIG, options.overrides, options.cfg, None, options.resolve)
        elif options.info:
            hydra.show_info(options.info, MAIN_CONFIG, options.overrides)
        elif options.shell_completion:
            _check_completion(options.overrides)
            hydra.shell_completion(MAIN_CONFIG, options.overrides)
        else:
            _compare(hydra, arguments, options.overrides)


def _refuse_swept(overrides: Sequence[str]) -> None:
    """Raise `UserError` for a setting with several values: `--cfg` shows the config of one job."""
    for override_text in overrides:
        with user_errors(override_text):
            (override,) = OverridesParser.create().parse_overrides([override_text])
        if override.is_sweep_override():
            raise UserError(f"{override_text}: --cfg shows the config of one job; give one value")


def _compare(hydra: Hydra, arguments: Sequence[str], overrides: Sequence[str]) -> None:
    """Run a comparison; a study whose data are unavailable runs on other data, and says so.

    Args:
        hydra: Hydra, started.
        arguments: The command line as typed, for the record.
        overrides: The overrides among the arguments.
    """
    from normbench.command.sweep import sweeper as sweep
    from normbench.command.sweep.sweep_job import run_job

    composed_overrides, option_overrides = split_option_overrides(overrides)
    sweep.register(arguments, option_overrides)
    try:
        hydra.multirun(MAIN_CONFIG, run_job, composed_overrides)
    except MissingFileError as missing:
        stand_in = study.stand_in_overrides(overrides)
        if not stand_in:
            raise
        print(
            f"{missing}\nThe study runs on other data meanwhile, and its numbers are not those of "
            f"its source: {shlex.join(stand_in)}",
            file=sys.stderr,
        )
        # Its overrides choose a data set, for which nothing stands in: this is done once.
        stand_in = (*stand_in, *study.WITHOUT_SOURCE)
        _compare(hydra, [*arguments, *stand_in], [*overrides, *stand_in])


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as every other mistake's."""

    flags: ClassVar[set[str]] = set()  # all that were added, such as `--help` and `-h`

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        """Add an argument, and remember how it is written."""
        self.flags.update(name for name in names if name.startswith("-"))
        return super().add_argument(*names, **options)

    def error(self, message: str) -> NoReturn:
        """Raise `UserError` with argparse's message, in place of its usage text and exit."""
        raise UserError(f"{message}; {HELP}")


def _refuse_flags(arguments: Sequence[str]) -> None:
    """Raise `UserError` for an unknown flag, with a similar one or the setting that is meant.

    argparse would take `-cn` for `-c n`. The known flags are those that `_parser` has added.
    """
    for argument, following in zip(arguments, [*arguments[1:], None]):
        flag, _, value = argument.partition("=")
        # Dashes alone are left to argparse.
        if flag.startswith("-") and flag.strip("-") and flag not in _Parser.flags:
            suggestion = suggest_setting(flag, value or following)
            if suggestion:
                raise UserError(f"{argument}: {suggestion}")
            similar = did_you_mean(
                flag, [known_flag for known_flag in _Parser.flags if known_flag.startswith("--")]
            )
            raise UserError(f"{argument}: there is no such flag; {HELP}{similar}")


def _parser() -> _Parser:
    """Return the parser of the flags."""
    parser = _Parser(prog="normbench", add_help=False, allow_abbrev=False)
    parser.add_argument("overrides", nargs="*", help="NAME=VALUE")
    for flag, letters, help_text in (
        ("--help", "-h", "the choices and settings"),
        ("--version", "-V", "the version of normbench"),
        ("--multirun", "-m", "allowed anywhere, and never needed"),
        ("--resolve", "-R", "with --cfg: the values of what is derived"),
        ("--shell-completion", "-sc", "Hydra's, to install or remove"),
    ):
        parser.add_argument(flag, letters, action="store_true", help=help_text)
    parser.add_argument("--cfg", "-c", choices=("job", "hydra", "all"), help="show the config")
    parser.add_argument("--config-dir", "-cd", help="a folder of options of one's own")
    parser.add_argument(
        "--info",
        "-i",
        nargs="?",
        const="all",
        choices=INFO_TOPICS,
        help="how the config is composed",
    )
    return parser


def _check_completion(overrides: Sequence[str]) -> None:
    """Raise `UserError` unless a shell's completion is to be installed, removed or queried.

    Args:
        overrides: What stands beside `--shell-completion`: one word, such as `install=bash`. A
            query is for an installed completion, whose shell sets COMP_LINE.
    """
    requests = [override.partition("=")[::2] for override in overrides]
    valid_requests = [(action, shell) for action in COMPLETION for shell in SHELLS]
    if len(requests) != 1 or requests[0] not in valid_requests:
        raise UserError(
            f"--shell-completion {' '.join(overrides)}: takes one word, install=SHELL or "
            f"uninstall=SHELL, where SHELL is {', '.join(SHELLS)}, such as --shell-completion "
            "install=bash"
        )
    # A user who types a query has no line to complete.
    if requests[0][0] == "query" and "COMP_LINE" not in os.environ:
        raise UserError(
            f"--shell-completion {overrides[0]}: is what a shell asks once it is installed; write "
            f"install={requests[0][1]}"
        )


def _folder(config_dir: str | None) -> Path | None:
    """Return the folder of the user's own options, after a check of the size of their files.

    Args:
        config_dir: The folder as typed after `--config-dir`; None without that flag.

    Returns:
        The absolute path; None without a folder.

    Raises:
        UserError: It is no folder, or a file in it would take minutes to parse.
    """
    if config_dir is None:
        return None
    folder = Path(config_dir).absolute()
    if not folder.is_dir():
        raise UserError(f"--config-dir {config_dir}: is no folder; name one that holds options")
    for group in (*CHOICES, "tracking", "experiment", "hydra"):
        for file in (folder / group).rglob("*.yaml"):
            if file.is_file():
                _refuse_bomb(file)
                _refuse_name_of_ours(file, folder)
    return folder


def _refuse_name_of_ours(file: Path, folder: Path) -> None:
    """Raise `UserError` for a user's option with the name of ours, which Hydra takes instead."""
    name = file.relative_to(folder)
    if (CONF / name).is_file():
        raise UserError(
            f"{file}: {name.with_suffix('')} is the name of an option of normbench, which would be "
            "taken instead; give yours another name"
        )


def _refuse_bomb(file: Path) -> None:
    """Raise `UserError` for a YAML file that would take minutes to parse: long, or many aliases."""
    size = os.stat(file).st_size
    if size > MAX_OPTION_BYTES:
        raise UserError(
            f"{file}: has {size} bytes, and the file of an option at most {MAX_OPTION_BYTES}; "
            "write data into a file of its own, and name that"
        )
    with file.open("rb") as stream:
        content = stream.read(MAX_OPTION_BYTES)
    # Without an anchor (&name) there are no aliases: a star is then a part of a value.
    aliases = len(ALIAS_PATTERN.findall(content)) if b"&" in content else 0
    if aliases > MAX_ALIASES:
        raise UserError(
            f"{file}: has {aliases} aliases (*name), and {MAX_ALIASES} at most may be; write out "
            "what they stand for"
        )


def _check(overrides: Sequence[str], of_files: bool) -> None:
    """Raise `UserError` for overrides that mean nothing to a comparison.

    Args:
        overrides: The overrides on the command line.
        of_files: Whether all settings are of this project's own files. An unknown one is then
            refused at once; with a folder of the user's options, Hydra has to compose them first.
    """
    for override_text in overrides:
        with user_errors(override_text):
            (override,) = OverridesParser.create().parse_overrides([override_text])
        if override.is_delete():
            raise UserError(
                f"{override_text}: takes away what a job needs; write NAME=VALUE instead"
            )
        if override_text.startswith("+") and not override_text.lstrip("+").startswith("hydra"):
            bare = override_text.lstrip("+")
            raise UserError(
                f"{override_text}: adds a setting that nothing reads; write {bare} for a setting "
                "that exists (normbench --cfg job lists them)"
            )
        # Of `hydra/launcher` and `cost.l2`, the first part tells. `group@package=option` is left to
        # Hydra.
        is_known_key = override.key_or_group.split("/")[0].split(".")[0] in KEYS
        if of_files and not is_known_key and not override.package:
            raise UserError(unknown_setting_message(override.key_or_group))
        if override.key_or_group == "experiment" and override.is_sweep_override():
            raise UserError(
                f"{override_text}: each study is a comparison of its own, so that several cannot "
                "be run at once; run them one after the other (make textbook runs those of the "
                "textbook)"
            )
        if override.key_or_group in (*CHOICES, "tracking"):
            _check_choice(override_text, override)


def _check_choice(override_text: str, override: Override) -> None:
    """Raise `UserError` where a group is set to something that cannot be the name of an option.

    Args:
        override_text: The override as typed.
        override: The same override, parsed.
    """
    value = override.value()
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        raise UserError(
            f"{override_text}: options are compared without brackets; type "
            f"{override.key_or_group}={','.join(value)}"
        )
    chosen = value.list if isinstance(value, ChoiceSweep) else [value]
    if any(choice is None or isinstance(choice, (list, dict, bool)) for choice in chosen):
        raise UserError(
            f"{override_text}: names no option; choose one of "
            f"{', '.join(names(override.key_or_group))}, or several with commas between them"
        )
