"""Slurm by its commands: whether it takes a task, what became of each, and an end to all.

squeue is asked and not the accounting, which many clusters do without: it knows a task as long as
it waits or runs, and some minutes longer.
"""

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from normbench.datasets.values import UserError

COMMANDS = ("sbatch", "srun", "squeue", "scancel")
WORDS = ("partition", "account", "qos")  # settings that are words, by the names of sbatch
OPTIONS = {**{word: word for word in WORDS}, "timeout_min": "time", "mem_gb": "mem"}
OPTIONS |= {"cpus_per_task": "cpus-per-task"}
OVER = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"}
OVER |= {"PREEMPTED", "REVOKED", "TIMEOUT"}
ASK = 5.0  # seconds between two questions
LATE = 15.0  # seconds that a result may take to be seen here: a shared folder's may


def check(resources: Mapping[str, Any]) -> None:
    """Raise `UserError` where there is no Slurm, or where it would never run such a task."""
    missing = [name for name in COMMANDS if not shutil.which(name)]
    if missing:
        raise UserError(
            f"hydra/launcher=slurm: there is no {missing[0]} on this machine; type the command "
            "where Slurm's own are, or rehearse it with hydra/launcher=submitit_local"
        )
    given = {key: value for key, value in resources.items() if value is not None}
    words = [f"--{OPTIONS[key]}={value}{'G' * (key == 'mem_gb')}" for key, value in given.items()]
    asked = _asked("sbatch", "--test-only", *words, "--wrap=true")
    if asked.returncode:
        shown = " ".join(f"hydra.launcher.{key}={value}" for key, value in given.items())
        reason = "; ".join(line.strip() for line in asked.stderr.splitlines() if line.strip())
        raise UserError(f"{shown}: Slurm takes no such task ({reason}); sinfo shows what it has")


class Tasks:
    """What Slurm says of this user's tasks, asked now and then."""

    def __init__(self) -> None:
        self._states: dict[str, tuple[str, str]] = {}  # state and reason
        self._asked = self._answered = float("-inf")
        self._over: dict[str, float] = {}  # since when
        self._told = False

    def ended(self, task: str) -> str:
        """Return how a task ended, in a word; empty as long as it has not, or may have a result."""
        now = time.monotonic()
        if now - self._asked > ASK:
            self._ask()
        if self._answered != self._asked:
            return ""
        state = self._states.get(task, ("ENDED", ""))[0]
        if state not in OVER | {"ENDED"}:
            self._over.pop(task, None)
            return ""
        since = self._over.setdefault(task, now)
        return state.lower() if now - since > LATE else ""

    def shown(self, tasks: Iterable[str]) -> str:
        """Return how many tasks are in which state, and why those that wait do."""
        found = (self._states.get(task, ("", "")) for task in tasks)
        words = (
            f"{state.lower()} ({reason})" if reason else state.lower() for state, reason in found
        )
        return ", ".join(f"{number} {word}" for word, number in Counter(words).items() if word)

    def _ask(self) -> None:
        """Ask; where Slurm does not answer, that is told once, and its tasks go on."""
        self._asked = time.monotonic()
        asked = _asked(
            *("squeue", "--noheader", "--array", "--states=all", f"--user={os.getuid()}"),
            "--format=%i %T %r",
        )
        if asked.returncode:
            if not self._told:
                reason = " ".join(asked.stderr.split())
                print(f"squeue does not answer ({reason}); its tasks go on", file=sys.stderr)
            self._told = True
            return
        self._told, self._answered = False, self._asked
        rows = (line.split(maxsplit=2) for line in asked.stdout.splitlines())
        self._states = {row[0]: (row[1], row[2] if row[1] == "PENDING" else "") for row in rows}


def cancel(tasks: Iterable[str]) -> None:
    """End tasks, those that wait too: each array as a whole."""
    arrays = sorted({task.partition("_")[0] for task in tasks})
    if arrays:
        _asked("scancel", *arrays)


def _asked(*words: str) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 1, "", "no answer within 60 s")
