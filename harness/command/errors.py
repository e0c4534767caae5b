"""Errors of the command line in one line: the setting, its value, the rule, the remedy."""

import re
from collections.abc import Iterator

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from normbench.datasets.dataset import UserError


class SweepError(RuntimeError):
    """What ends a sweep and is nobody's mistake: one line, exit code 1."""


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it came from, step by step."""
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or link.__context__


def one_line(error: BaseException) -> str | None:
    """Return what a user's mistake was, in one line; None for an error that is a bug."""
    for link in chain(error):
        if isinstance(link, UserError):
            return " ".join(str(link).split())
    text = str(error)
    if text.startswith(("Only one of --run", "The --resolve flag")):  # Hydra's own, on its flags
        return " ".join(text.split())
    if not isinstance(error, (HydraException, OmegaConfBaseException)):
        return None
    missing = re.search(r"Could not find '(.+?)/([^/']+)'", text)
    if missing:
        group, option = missing.groups()
        names = ", ".join(line.strip() for line in text.splitlines() if re.match(r"^\t\S+$", line))
        return f"{group}={option}: no such option; choose one of {names}"
    unknown = re.search(r"Could not override '([^']+)'", text)
    if unknown:
        return (
            f"{unknown[1]}: no such setting; normbench --cfg job lists them, "
            "normbench --help the choices"
        )
    return " ".join(text.replace("You may", "you may").split())
