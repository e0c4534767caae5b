"""Hydra's own settings: a comparison takes a few of them, and no config reaches beyond."""

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from normbench.datasets.values import UserError, check_integer, format_value

BASIC = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"
JOBLIB = "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher"
QUEUE = "hydra_plugins.normbench.Queue"
SWEEPER = "hydra_plugins.normbench.Sweep"
# What may be set of a queue: the largest of a number; None of a name. The rest would be programs.
MOST = {"timeout_min": 525_600, "cpus_per_task": 1024}
MOST |= {"array_parallelism": 10_000, "jobs_per_task": 100_000}
OF_QUEUES: dict[Any, dict[str, int | None]] = {
    "local": {**MOST},
    "slurm": {"partition": None, "account": None, "qos": None, **MOST, "mem_gb": 65_536},
}
OPEN = ("partition", "account", "qos", "mem_gb")  # null: the cluster's own
SIDE_BY_SIDE = 64  # jobs at most, or as many as there are cores
# What stands in `conf/config.yaml`, and has to: callbacks and logs are programs, a run in another
# mode or folder is no sweep, and another place for its files would not be found again.
FIXED: dict[str, Any] = {
    "mode": "MULTIRUN",
    "callbacks": {},
    "hydra_logging.root": None,
    "job_logging.root": None,
    "job.chdir": None,
    "job.env_set": {},
    "job.env_copy": [],
    "output_subdir": None,
    "sweep.subdir": ".",
    "sweeper._target_": SWEEPER,
}


def refuse_foreign(config: DictConfig) -> None:
    """Raise `UserError` where a composed config has Hydra do more than a sweep of ours."""
    for name, fixed in FIXED.items():
        value = OmegaConf.select(config.hydra, name, default=None)
        plain = OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
        if fixed is None and plain is False:
            continue
        if (getattr(plain, "name", plain) or None) != (fixed or None):
            raise UserError(
                f"hydra.{name}={_shown(plain)}: cannot be set; of Hydra's settings a comparison "
                "takes hydra/launcher with its settings, and hydra.sweep.dir"
            )
    launcher = OmegaConf.to_container(config.hydra.launcher)
    _check_launcher(launcher)
    folder = OmegaConf.select(config.hydra, "sweep.dir", throw_on_missing=True)
    if not isinstance(folder, str) or not folder.strip() or "\0" in folder:
        raise UserError(
            f"hydra.sweep.dir={_shown(folder)}: must be a folder, such as hydra.sweep.dir=sweep"
        )
    if not os.path.basename(os.path.abspath(folder)):
        raise UserError(
            f"hydra.sweep.dir={folder}: has no name, which is the sweep's id; name a folder in it, "
            f"such as hydra.sweep.dir={os.path.join(os.path.abspath(folder), 'sweep')}"
        )
    if isinstance(launcher, dict) and launcher.get("_target_") == QUEUE:
        _check_queue(launcher, folder)


def _check_launcher(launcher: Any) -> None:
    """Raise `UserError` unless jobs run one after the other, side by side by joblib, in a queue."""
    target = launcher.get("_target_") if isinstance(launcher, dict) else launcher
    if target not in (BASIC, JOBLIB, QUEUE):
        raise UserError(
            f"hydra.launcher._target_={target}: is no launcher of a comparison's; "
            "write hydra/launcher=basic, hydra/launcher=joblib for jobs side by side, or "
            "hydra/launcher=slurm for jobs on a cluster"
        )
    if target != JOBLIB:
        return
    from hydra_plugins.hydra_joblib_launcher.config import JobLibLauncherConf

    cores = len(os.sched_getaffinity(0))
    for key, value in launcher.items():
        if key == "n_jobs" and value != -1:
            try:
                check_integer("hydra.launcher.n_jobs", value, 1, max(SIDE_BY_SIDE, cores))
            except UserError as error:
                raise UserError(f"{error}, or -1 for a job a core") from error
        elif key != "n_jobs" and value != getattr(JobLibLauncherConf, key, value):
            raise UserError(
                f"hydra.launcher.{key}={_shown(value)}: cannot be set; "
                "of a launcher's settings a comparison takes hydra.launcher.n_jobs"
            )


def _check_queue(launcher: Mapping[Any, Any], folder: str) -> None:
    """Raise `UserError` unless the settings of a queue are numbers and plain names.

    They come to stand in a script that the cluster runs, and so does the name of the folder.
    """
    queue = launcher.get("queue")
    if queue not in OF_QUEUES:
        raise UserError(
            f"hydra.launcher.queue={_shown(queue)}: cannot be set; write hydra/launcher=slurm, or "
            "hydra/launcher=submitit_local for a rehearsal on this machine"
        )
    if find_spec("submitit") is None:
        option = "slurm" if queue == "slurm" else "submitit_local"
        raise UserError(f"hydra/launcher={option}: submitit is not installed; pip install submitit")
    takes = OF_QUEUES[queue]
    given = {key: value for key, value in launcher.items() if key not in ("_target_", "queue")}
    for key in {**takes, **given}:
        if key not in takes or key not in given:
            raise UserError(
                f"hydra.launcher.{key}: {'cannot be set' if key in given else 'is missing'}; "
                f"the settings of a queue are {', '.join(takes)}"
            )
        _check_of_queue(f"hydra.launcher.{key}", given[key], takes[key])
    path = str(Path(folder).absolute())
    if not path.isprintable() or set(path) & set("%\\"):
        raise UserError(
            f"hydra.sweep.dir={folder}: has a character that means something else to a queue "
            "(%, a backslash, a line's end); name a folder without, such as hydra.sweep.dir=sweep"
        )


def _check_of_queue(name: str, value: Any, most: int | None) -> None:
    """Raise `UserError` unless a setting is a whole number up to most, or, without, a name."""
    if value is None and name.endswith(OPEN):
        return
    if most is not None:
        check_integer(name, _shown(value) if value is None else value, 1, most)
    elif not re.fullmatch(r"[\w.+@-]+", str(value), re.ASCII) or str(value).startswith("-"):
        raise UserError(
            f"{name}={_shown(value)}: must be a name of letters, digits and . + - _ @, or null"
        )


def _shown(value: Any) -> str:
    """Return a value as a command line has it, one of several by its name."""
    return format_value(getattr(value, "name", value))
