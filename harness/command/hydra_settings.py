"""Hydra's own settings: a comparison takes a few of them, and no config reaches beyond."""

import os
from typing import Any

from omegaconf import DictConfig, OmegaConf

from normbench.datasets.values import UserError, whole

BASIC = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"
JOBLIB = "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher"
SWEEPER = "hydra_plugins.normbench.Sweep"
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
                "takes hydra/launcher, hydra.launcher.n_jobs and hydra.sweep.dir"
            )
    _check_launcher(OmegaConf.to_container(config.hydra.launcher))
    folder = OmegaConf.select(config.hydra, "sweep.dir", throw_on_missing=True)
    if not isinstance(folder, str) or not folder.strip() or "\0" in folder:
        raise UserError(
            f"hydra.sweep.dir={_shown(folder)}: must be a folder, such as hydra.sweep.dir=sweep"
        )


def _check_launcher(launcher: Any) -> None:
    """Raise `UserError` unless jobs run here one after the other, or side by side by joblib."""
    target = launcher.get("_target_") if isinstance(launcher, dict) else launcher
    if target not in (BASIC, JOBLIB):
        raise UserError(
            f"hydra.launcher._target_={target}: is no launcher of a comparison's; "
            "write hydra/launcher=basic, or hydra/launcher=joblib for jobs side by side"
        )
    if target == BASIC:
        return
    from hydra_plugins.hydra_joblib_launcher.config import JobLibLauncherConf

    for key, value in launcher.items():
        if key == "n_jobs":
            _check_side_by_side(value)
        elif value != getattr(JobLibLauncherConf, key, value):
            raise UserError(
                f"hydra.launcher.{key}={_shown(value)}: cannot be set; "
                "of a launcher's settings a comparison takes hydra.launcher.n_jobs"
            )


def _check_side_by_side(value: Any) -> None:
    most = max(SIDE_BY_SIDE, len(os.sched_getaffinity(0)))
    if value != -1:
        name = "hydra.launcher.n_jobs"
        try:
            whole(name, value, 1, most)
        except UserError as error:
            raise UserError(f"{error}, or -1 for a job a core") from error


def _shown(value: Any) -> str:
    """Return a value as a command line has it."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(getattr(value, "name", value))
