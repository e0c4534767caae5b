"""A task of a queue: the jobs that it runs, and how its Python starts, maybe on another machine.

`python -m normbench.command.sweep.task -m MODULE ARGUMENTS` runs a module as `python -m` does;
a signal that stops it ends it with one line.
"""

import os
import runpy
import signal
import sys
from typing import TYPE_CHECKING, Any

from normbench import interrupts, names

if TYPE_CHECKING:
    from hydra.types import HydraContext, TaskFunction
    from omegaconf import DictConfig

Batch = list[tuple[int, list[str]]]  # the jobs of a task: the number and the overrides of each


def run(
    context: "HydraContext", function: "TaskFunction", config: "DictConfig", batch: Batch
) -> list[dict[str, Any]]:
    """Run the jobs of a task in sequence; return the outcome of each, as `function` does.

    A task that is stopped ends as on Ctrl-C, with its descent saved; submitit would let it continue
    until it is killed. Its finished jobs are recorded.

    Args:
        context: Hydra's context, with the loader of configs.
        function: Runs a job from its composed config.
        config: The config of the sweep, without the overrides of a job.
        batch: The jobs.
    """
    from hydra.core.utils import run_job, setup_globals
    from omegaconf import open_dict

    from normbench.command.sweep import hydras_own

    interrupts.install_handlers(signal.SIGTERM)
    hydras_own.load_plugins()
    setup_globals()
    outcomes = []
    for number, overrides in batch:
        try:
            job_config = context.config_loader.load_sweep_config(config, overrides)
            with open_dict(job_config):
                job_config.hydra.job.num, job_config.hydra.job.id = number, str(number)
                job_config.hydra.sweep.dir = config.hydra.sweep.dir
            job_return = run_job(
                function, job_config, "hydra.sweep.dir", "hydra.sweep.subdir", context
            )
            outcomes.append(job_return.return_value)  # raises what the job has raised
        except Exception as error:
            interrupts.raise_if_interrupted(error)
            raise
    return outcomes


def find_log_tags() -> dict[str, str]:
    """Return the tags by which the log of a job is found from its run; empty outside a queue.

    Slurm's id of the job is among them; a process of this machine has none.
    """
    if not {"SUBMITIT_EXECUTOR", "SUBMITIT_FOLDER"} <= set(os.environ):
        return {}
    from submitit import JobEnvironment

    environment = JobEnvironment()
    tags = {names.LOG.key: str(environment.paths.stdout)}
    return (
        tags
        if environment.cluster == "local"
        else {**tags, names.SLURM_JOB.key: environment.job_id}
    )


def main() -> None:
    """Run the module that follows `-m` on the command line."""
    # The module and its arguments are all that it finds on its command line.
    sys.argv[:] = sys.argv[sys.argv.index("-m") + 1 :]
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except KeyboardInterrupt:
        sys.exit("stopped; the same command runs what is not recorded")


if __name__ == "__main__":
    main()
