"""A study's jobs in this process, with nothing written: its sweep, as the reader has it."""

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.utils import setup_globals
from hydra.types import RunMode

from normbench.choices import CONF
from normbench.command.config import compose as configs
from normbench.command.config import resolvers, study
from normbench.command.config.grid import Grid, split_option_overrides
from normbench.command.sweep.sweep_job import with_start
from normbench.job import PointsCache, run
from normbench.record import outcome
from normbench.results.store import memory


def sweep(name, *words):
    """Return the sweep of `experiment=NAME` and words, which count where the study has them too."""
    setup_globals()
    resolvers.register()
    experiment = f"experiment={name}"
    loader = ConfigLoaderImpl(config_search_path=create_config_search_path(str(CONF)))
    plain, _ = split_option_overrides([word for word in words if "," not in word])
    master = loader.load_configuration("config", [experiment, *plain], RunMode.MULTIRUN)
    configs.figure_names(
        configs.JobSpec.from_config(master).plain_settings
    )  # a name that there is no figure of is refused
    params = [f"{key}={value}" for key, value in master.hydra.sweeper.params.items()]
    (params, options), (others, held) = (
        split_option_overrides(params),
        split_option_overrides(words),
    )
    grid = Grid(loader, master, [*params, experiment, *others], [*options, *held])
    caches, found = {}, []  # by data set, which the loader keeps
    for job in grid.jobs:
        spec = configs.JobSpec.from_config(grid.config(job))
        made = spec.job()
        header = outcome.RecordHeader(spec.experiment, spec.recorded_parameters(), spec.tags)
        header = with_start(header, spec, made)
        shared = caches.setdefault(made.dataset, PointsCache(made.dataset.x))
        found.append(outcome.of_outcome(header, made.dataset, run(made, points_cache=shared)))
    return memory.sweep(found, "", study.expected_tag(master))
