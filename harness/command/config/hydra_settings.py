"""Check Hydra's own settings: a comparison accepts a few of them, and refuses all others."""

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from normbench.datasets.values import UserError, available_cores, check_integer, format_value

BASIC = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"
JOBLIB = "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher"
QUEUE = "hydra_plugins.normbench.Queue"
SWEEPER = "hydra_plugins.normbench.Sweep"
# The settings of a queue with their maximum, None for a name. The others would be programs.
MAX_QUEUE_VALUES = {"timeout_min": 525_600, "cpus_per_task": 1024}
MAX_QUEUE_VALUES |= {"array_parallelism": 10_000, "jobs_per_task": 100_000}
QUEUE_SETTINGS: dict[Any, dict[str, int | None]] = {
    "local": {**MAX_QUEUE_VALUES},
    "slurm": {
        "partition": None,
        "account": None,
        "qos": None,
        **MAX_QUEUE_VALUES,
        "mem_gb": 65_536,
    },
}
NULLABLE = ("partition", "account", "qos", "mem_gb")  # null: the cluster's own
MAX_PARALLEL_JOBS = 64  # jobs at most, or as many as there are cores
# What stands in `conf/config.yaml`, and has to: callbacks and logs are programs, a run in another
# mode or folder is no sweep, and another place for its files would not be found again.
FIXED_SETTINGS: dict[str, Any] = {
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
    """Raise `UserError` where the section `hydra` of a composed config does more than a sweep.

    Args:
        config: The config. Accepted are the values of `FIXED_SETTINGS`, a launcher of this
            project's with its settings, and the folder of results.
    """
    for name, fixed in FIXED_SETTINGS.items():
        value = OmegaConf.select(config.hydra, name, default=None)
        plain = OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
        if fixed is None and plain is False:  # false switches a log off, as null does
            continue
        # An enumerated value is compared by its name; null, an empty list and an empty mapping are
        # equal.
        if (getattr(plain, "name", plain) or None) != (fixed or None):
            raise UserError(
                f"hydra.{name}={_format(plain)}: cannot be set; of Hydra's settings a comparison "
                "takes hydra/launcher with its settings"
            )
    launcher = OmegaConf.to_container(config.hydra.launcher)
    _check_launcher(launcher)
    folder = OmegaConf.select(config, "folder", throw_on_missing=True)
    # No path can hold a NUL character.
    if not isinstance(folder, str) or not folder.strip() or "\0" in folder:
        raise UserError(f"folder={_format(folder)}: must be a folder, such as folder=results")
    home_folder = os.path.expanduser(folder)
    if home_folder != folder:  # Hydra takes `~` for a folder of that name
        raise UserError(f"folder={folder}: write the home folder in full, as folder={home_folder}")
    if isinstance(launcher, dict) and launcher.get("_target_") == QUEUE:
        _check_queue(launcher, folder)


def _check_launcher(launcher: Any) -> None:
    """Raise `UserError` unless jobs run in sequence, in parallel by joblib, or in a queue.

    Of joblib's settings, `n_jobs` can be set and the others must keep their defaults. The settings
    of a queue are left to `_check_queue`.

    Args:
        launcher: The section `hydra.launcher` as plain values; anything but a mapping is refused.
    """
    target = launcher.get("_target_") if isinstance(launcher, dict) else launcher
    if target not in (BASIC, JOBLIB, QUEUE):
        raise UserError(
            f"hydra.launcher._target_={target}: is no launcher of a comparison's; "
            "write hydra/launcher=basic, hydra/launcher=joblib for jobs side by side, or "
            "hydra/launcher=slurm for jobs on a cluster"
        )
    if target == QUEUE:
        return
    from hydra_plugins.hydra_joblib_launcher.config import JobLibLauncherConf

    # unknown: equal to no value, so that a setting which joblib's launcher lacks is refused.
    cores, unknown = available_cores(), object()
    for key, value in launcher.items():
        if target == BASIC:
            if key != "_target_":
                raise UserError(
                    f"hydra.launcher.{key}={_format(value)}: jobs run one after the other; add "
                    "hydra/launcher=joblib for jobs side by side, hydra.launcher.n_jobs of them"
                )
        elif key == "n_jobs" and value != -1:
            try:
                check_integer("hydra.launcher.n_jobs", value, 1, max(MAX_PARALLEL_JOBS, cores))
            except UserError as error:
                raise UserError(f"{error}, or -1 for a job a core") from error
        elif key != "n_jobs" and value != getattr(JobLibLauncherConf, key, unknown):
            raise UserError(
                f"hydra.launcher.{key}={_format(value)}: cannot be set; "
                "of a launcher's settings a comparison takes hydra.launcher.n_jobs"
            )


def _check_queue(launcher: Mapping[Any, Any], folder: str) -> None:
    """Raise `UserError` unless the settings of a queue are numbers and plain names.

    They are written into a script that the cluster runs, and so is the name of the folder.

    Args:
        launcher: The settings of the launcher. Each setting of the queue has to be there, and no
            other.
        folder: The folder of the sweep.
    """
    queue = launcher.get("queue")
    if queue not in QUEUE_SETTINGS:
        raise UserError(
            f"hydra.launcher.queue={_format(queue)}: cannot be set; write hydra/launcher=slurm, or "
            "hydra/launcher=submitit_local for a rehearsal on this machine"
        )
    if find_spec("submitit") is None:
        option = "slurm" if queue == "slurm" else "submitit_local"
        raise UserError(f"hydra/launcher={option}: submitit is not installed; pip install submitit")
    allowed = QUEUE_SETTINGS[queue]
    queue_settings = {
        key: value for key, value in launcher.items() if key not in ("_target_", "queue")
    }
    for key in {**allowed, **queue_settings}:  # each once, in order
        if key not in allowed or key not in queue_settings:
            raise UserError(
                f"hydra.launcher.{key}: "
                f"{'cannot be set' if key in queue_settings else 'is missing'}; the settings of a "
                f"queue are {', '.join(allowed)}"
            )
        _check_queue_setting(f"hydra.launcher.{key}", queue_settings[key], allowed[key])
    path = str(Path(folder).absolute())
    if not path.isprintable() or set(path) & set("%\\"):
        raise UserError(
            f"folder={folder}: has a character that means something else to a queue "
            "(%, a backslash, a line's end); name a folder without, such as folder=results"
        )


def _check_queue_setting(name: str, value: Any, maximum: int | None) -> None:
    """Raise `UserError` unless a setting is an integer up to a maximum or, without one, a name.

    Args:
        name: The full name of the setting.
        value: The value; None is accepted for `NULLABLE` settings.
        maximum: The largest integer; None for a setting that is a name.
    """
    if value is None and name.endswith(NULLABLE):
        return
    if maximum is not None:
        # None is refused as `null`, which is how it was typed.
        check_integer(name, _format(value) if value is None else value, 1, maximum)
    elif not re.fullmatch(r"[\w.+@-]+", str(value), re.ASCII) or str(value).startswith("-"):
        raise UserError(
            f"{name}={_format(value)}: must be a name of letters, digits and . + - _ @, or null"
        )


def _format(value: Any) -> str:
    """Return a value as a command line has it, an enumerated value by its name."""
    return format_value(getattr(value, "name", value))
