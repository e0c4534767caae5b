"""Slurm by its commands: check resources, query the state of tasks, cancel them.

squeue is used and not the accounting, which many clusters lack: it knows a task as long as it is
pending or running, and some minutes longer.
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

SLURM_COMMANDS = ("sbatch", "srun", "squeue", "scancel")
NAME_SETTINGS = ("partition", "account", "qos")  # settings that are names, by the options of sbatch
SBATCH_OPTIONS = {**{name: name for name in NAME_SETTINGS}, "timeout_min": "time", "mem_gb": "mem"}
SBATCH_OPTIONS |= {"cpus_per_task": "cpus-per-task"}
ENDED_STATES = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
}
ENDED_STATES |= {"PREEMPTED", "REVOKED", "TIMEOUT"}
ASK_SECONDS = 5.0  # between two queries
RESULT_SECONDS = 15.0  # until a result is visible here: a shared folder may be late


def check(resources: Mapping[str, Any]) -> None:
    """Raise `UserError` where Slurm is missing, or would never run such a task.

    Args:
        resources: The settings of the launcher that are resources of a task; None leaves one to
            the cluster.
    """
    missing = [name for name in SLURM_COMMANDS if not shutil.which(name)]
    if missing:
        raise UserError(
            f"hydra/launcher=slurm: there is no {missing[0]} on this machine; type the command "
            "where Slurm's own are, or rehearse it with hydra/launcher=submitit_local"
        )
    options = {key: value for key, value in resources.items() if value is not None}
    flags = [
        f"--{SBATCH_OPTIONS[key]}={value}{'G' if key == 'mem_gb' else ''}"
        for key, value in options.items()
    ]
    # Slurm checks the options, and runs nothing.
    answer = _run_slurm("sbatch", "--test-only", *flags, "--wrap=true")
    if answer.returncode:
        options_text = " ".join(f"hydra.launcher.{key}={value}" for key, value in options.items())
        reason = "; ".join(line.strip() for line in answer.stderr.splitlines() if line.strip())
        raise UserError(
            f"{options_text}: Slurm takes no such task ({reason}); sinfo shows what it has"
        )


class Tasks:
    """The states of this user's tasks in Slurm, queried at intervals."""

    def __init__(self) -> None:
        self._states: dict[str, tuple[str, str]] = {}  # by task: its state, and why it waits
        self._asked_at = self._answered_at = float("-inf")  # equal if squeue answered last time
        self._ended_at: dict[str, float] = {}  # when a task was first seen to have ended
        self._silence_reported = False

    def ended(self, task: str) -> str:
        """Return how a task ended, in a word; empty while it runs, or its result may still appear.

        squeue forgets a task some time after its end: one that it does not list has ended.

        Args:
            task: Slurm's id of the task.
        """
        time_now = time.monotonic()
        if time_now - self._asked_at > ASK_SECONDS:
            self._ask()
        if self._answered_at != self._asked_at:  # squeue did not answer: nothing is known
            return ""
        state = self._states.get(task, ("ENDED", ""))[0]
        if state not in ENDED_STATES | {"ENDED"}:
            self._ended_at.pop(task, None)  # Slurm has begun it again
            return ""
        since = self._ended_at.setdefault(task, time_now)
        # Its result may take some time to appear in a shared folder.
        return state.lower() if time_now - since > RESULT_SECONDS else ""

    def describe_states(self, tasks: Iterable[str]) -> str:
        """Return how many tasks are in which state, and why pending ones wait.

        Args:
            tasks: Slurm's ids of the tasks; those of unknown state are left out.
        """
        states = (self._states.get(task, ("", "")) for task in tasks)
        state_texts = (
            f"{state.lower()} ({reason})" if reason else state.lower() for state, reason in states
        )
        return ", ".join(
            f"{number} {state_text}"
            for state_text, number in Counter(state_texts).items()
            if state_text
        )

    def _ask(self) -> None:
        """Query squeue; where it does not answer, that is reported once, and the tasks continue."""
        self._asked_at = time.monotonic()
        # A line for each task: its id, its state, and the reason of that state.
        answer = _run_slurm(
            *("squeue", "--noheader", "--array", "--states=all", f"--user={os.getuid()}"),
            "--format=%i %T %r",
        )
        if answer.returncode:
            if not self._silence_reported:
                reason = " ".join(answer.stderr.split())
                print(f"squeue does not answer ({reason}); its tasks go on", file=sys.stderr)
            self._silence_reported = True
            return
        self._silence_reported, self._answered_at = False, self._asked_at
        rows = (line.split(maxsplit=2) for line in answer.stdout.splitlines())
        self._states = {row[0]: (row[1], row[2] if row[1] == "PENDING" else "") for row in rows}


def cancel(tasks: Iterable[str]) -> None:
    """Cancel tasks, pending ones too: each array as a whole."""
    arrays = sorted({task.partition("_")[0] for task in tasks})  # an id is ARRAY_NUMBER
    if arrays:
        _run_slurm("scancel", *arrays)


def _run_slurm(*command: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of Slurm's; return its outcome, a failure if it takes too long."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", "no answer within 60 s")
