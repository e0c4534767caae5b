"""The command line: its flags, its words, and Hydra at work on them."""

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

from normbench.choices import names
from normbench.command.config import study
from normbench.command.config.errors import HELP, no_setting, reading
from normbench.command.config.grid import hold_back
from normbench.command.config.mistyped import of_flag, refuse_mistyped
from normbench.datasets import MissingFileError
from normbench.datasets.values import UserError, did_you_mean
from normbench.settings import CHOICES, ROWS

CONFIG = "config"  # the file that every command starts from
LONGEST_OPTIONS = 100_000  # bytes of an option's file
MOST_ALIASES, ALIAS = 20, re.compile(rb"(?<![\w*])\*\w")  # of such a file; three may triple it
COMPLETION, SHELLS = ("install", "uninstall", "query"), ("bash", "fish", "zsh")
KEYS = {"hydra", "experiment", *(row.partition(".")[0] for row in ROWS)}
INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")


def run(words: Sequence[str]) -> None:
    """Do what the words ask for: a comparison, or to show help, a config, how it is composed.

    Raises `UserError` on a flag or a setting that there is not.
    """
    parser = _parser()
    _refuse_flags(words)
    asked = parser.parse_intermixed_args(list(words))
    if asked.version:
        print(f"normbench {version('normbench')}")
        return
    refuse_mistyped(asked.overrides)
    if not (asked.help or asked.cfg or asked.info or asked.shell_completion):
        _check(asked.overrides, of_files=asked.config_dir is None)
    from normbench.command.sweep import hydras_own  # late: a mistake in a name is told before

    with hydras_own.started(_folder(asked.config_dir)) as hydra:
        if asked.help:
            hydra.app_help(CONFIG, parser, asked)
        elif asked.cfg:
            hydra.show_cfg(CONFIG, asked.overrides, asked.cfg, None, asked.resolve)
        elif asked.info:
            hydra.show_info(asked.info, CONFIG, asked.overrides)
        elif asked.shell_completion:
            _check_completion(asked.overrides)
            hydra.shell_completion(CONFIG, asked.overrides)
        else:
            _compare(hydra, words, asked.overrides)


def _compare(hydra: Hydra, words: Sequence[str], overrides: Sequence[str]) -> None:
    """Run a comparison; a study whose data are not to be had runs on others, and says so.

    words: the command line as it was typed; overrides: the settings among them.
    """
    from normbench.command.sweep import sweeper as sweep
    from normbench.command.sweep.sweep_job import run_job

    left, held = hold_back(overrides)
    sweep.register(words, held)
    try:
        hydra.multirun(CONFIG, run_job, left)
    except MissingFileError as missing:
        instead = study.stand_in(overrides)
        if not instead:
            raise
        print(
            f"{missing}\nThe study runs on other data meanwhile, and its numbers are not those of "
            f"its source: {shlex.join(instead)}",
            file=sys.stderr,
        )
        _compare(hydra, [*words, *instead], [*overrides, *instead])


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as every other mistake's."""

    flags: ClassVar[set[str]] = set()

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        """Add an argument, and remember how it is written."""
        self.flags.update(name for name in names if name.startswith("-"))
        return super().add_argument(*names, **options)

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; {HELP}")


def _refuse_flags(words: Sequence[str]) -> None:
    """Raise `UserError` for a flag that there is not; argparse would take `-cn` for `-c n`."""
    for word, after in zip(words, [*words[1:], None]):
        flag, _, value = word.partition("=")
        if flag.startswith("-") and flag.strip("-") and flag not in _Parser.flags:
            meant = of_flag(flag, value or after)
            if meant:
                raise UserError(f"{word}: {meant}")
            near = did_you_mean(flag, [known for known in _Parser.flags if known.startswith("--")])
            raise UserError(f"{word}: there is no such flag; {HELP}{near}")


def _parser() -> _Parser:
    parser = _Parser(prog="normbench", add_help=False, allow_abbrev=False)
    parser.add_argument("overrides", nargs="*", help="NAME=VALUE")
    for flag, letters, words in (
        ("--help", "-h", "the choices and settings"),
        ("--version", "-V", "the version of normbench"),
        ("--multirun", "-m", "allowed anywhere, and never needed"),
        ("--resolve", "-R", "with --cfg: the values of what is derived"),
        ("--shell-completion", "-sc", "Hydra's, to install or remove"),
    ):
        parser.add_argument(flag, letters, action="store_true", help=words)
    parser.add_argument("--cfg", "-c", choices=("job", "hydra", "all"), help="show the config")
    parser.add_argument("--config-dir", "-cd", help="a folder of options of one's own")
    parser.add_argument(
        "--info", "-i", nargs="?", const="all", choices=INFO, help="how the config is composed"
    )
    return parser


def _check_completion(words: Sequence[str]) -> None:
    """Raise `UserError` unless a shell's completion is to be installed, removed or asked for."""
    asked = [word.partition("=")[::2] for word in words]
    known = [(what, shell) for what in COMPLETION for shell in SHELLS]
    if len(asked) != 1 or asked[0] not in known:
        raise UserError(
            f"--shell-completion {' '.join(words)}: takes one word, install=SHELL or "
            f"uninstall=SHELL, where SHELL is {', '.join(SHELLS)}, such as --shell-completion "
            "install=bash"
        )
    if asked[0][0] == "query" and "COMP_LINE" not in os.environ:
        raise UserError(
            f"--shell-completion {words[0]}: is what a shell asks once it is installed; write "
            f"install={asked[0][1]}"
        )


def _folder(config_dir: str | None) -> Path | None:
    """Return the folder of the user's own options."""
    if config_dir is None:
        return None
    folder = Path(config_dir).absolute()
    if not folder.is_dir():
        raise UserError(f"--config-dir {config_dir}: is no folder; name one that holds options")
    for group in (*CHOICES, "tracking", "experiment", "hydra"):
        for file in (folder / group).rglob("*.yaml"):
            if file.is_file():
                _refuse_bomb(file)
    return folder


def _refuse_bomb(file: Path) -> None:
    """Raise `UserError` for options that would take minutes to read: long, or of many aliases."""
    size = os.stat(file).st_size
    if size > LONGEST_OPTIONS:
        raise UserError(
            f"{file}: has {size} bytes, and the file of an option at most {LONGEST_OPTIONS}; write "
            "data into a file of its own, and name that"
        )
    with file.open("rb") as stream:
        content = stream.read(LONGEST_OPTIONS)
    aliases = len(ALIAS.findall(content)) if b"&" in content else 0
    if aliases > MOST_ALIASES:
        raise UserError(
            f"{file}: has {aliases} aliases (*name), and {MOST_ALIASES} at most may be; write out "
            "what they stand for"
        )


def _check(words: Sequence[str], of_files: bool) -> None:
    """Raise `UserError` for words that mean nothing to a comparison.

    of_files: all settings are ours, so that Hydra need not compose them to refuse another.
    """
    for word in words:
        with reading(word):
            (override,) = OverridesParser.create().parse_overrides([word])
        if override.is_delete():
            raise UserError(f"{word}: takes away what a job needs; write NAME=VALUE instead")
        if word.startswith("+") and not word.startswith("+hydra"):
            bare = word.lstrip("+")
            raise UserError(
                f"{word}: adds a setting that nothing reads; write {bare} for a setting that "
                "exists (normbench --cfg job lists them)"
            )
        known = override.key_or_group.split("/")[0].split(".")[0] in KEYS
        if of_files and not known and not override.package:
            raise UserError(no_setting(override.key_or_group))
        if override.key_or_group == "experiment" and override.is_sweep_override():
            raise UserError(
                f"{word}: each study is a comparison of its own, so that several cannot be run at "
                "once; run them one after the other (make textbook runs those of the textbook)"
            )
        if override.key_or_group in (*CHOICES, "tracking"):
            _check_choice(word, override)


def _check_choice(word: str, override: Override) -> None:
    """Raise `UserError` where a group is given anything but names of its options."""
    value = override.value()
    chosen = value.list if isinstance(value, ChoiceSweep) else [value]
    if any(choice is None or isinstance(choice, (list, dict, bool)) for choice in chosen):
        raise UserError(
            f"{word}: names no option; choose one of {', '.join(names(override.key_or_group))}, "
            "or several with commas between them"
        )
