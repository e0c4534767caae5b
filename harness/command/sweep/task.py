"""A task of a queue: the jobs that it runs, and how its Python begins, maybe on another machine.

`python -m normbench.command.sweep.task -m MODULE WORDS` runs a module as `python -m` does, after
the kernels of the machine are chosen: that has to be before numpy is loaded, so little is loaded
here.
"""

import os
import runpy
import signal
import sys
from typing import TYPE_CHECKING, Any

from normbench import names
from normbench.command.startup import kernels

if TYPE_CHECKING:
    from hydra.types import HydraContext, TaskFunction
    from omegaconf import DictConfig

Batch = list[tuple[int, list[str]]]  # numbers and words of the jobs of a task


def run(
    context: "HydraContext", function: "TaskFunction", config: "DictConfig", batch: Batch
) -> list[dict[str, Any]]:
    """Run the jobs of a task one after the other; return what became of each.

    A task that is stopped ends as on Ctrl-C, with its descent kept; submitit's own answer would be
    to go on until it is killed. The jobs that it has done are recorded.
    """
    from hydra.core.utils import run_job, setup_globals
    from omegaconf import open_dict

    from normbench.command.sweep import hydras_own

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    hydras_own.begin()
    setup_globals()
    outcomes = []
    for number, words in batch:
        mine = context.config_loader.load_sweep_config(config, words)
        with open_dict(mine):
            mine.hydra.job.num, mine.hydra.job.id = number, str(number)
        done = run_job(function, mine, "hydra.sweep.dir", "hydra.sweep.subdir", context)
        outcomes.append(done.return_value)
    return outcomes


def place() -> dict[str, str]:
    """Return the tags by which the log of a job is found from its run; none outside a queue."""
    if not {"SUBMITIT_EXECUTOR", "SUBMITIT_FOLDER"} <= set(os.environ):
        return {}
    from submitit import JobEnvironment

    here = JobEnvironment()
    tags = {names.LOG.key: str(here.paths.stdout)}
    return tags if here.cluster == "local" else {**tags, names.SLURM_JOB.key: here.job_id}


def main() -> None:
    """Run the module that follows `-m`."""
    kernels.choose()
    sys.argv[:] = sys.argv[sys.argv.index("-m") + 1 :]
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except KeyboardInterrupt:
        sys.exit("stopped; the same command runs what is not recorded")


if __name__ == "__main__":
    main()
