"""A study's jobs in this process, with nothing written: its sweep, as the reader has it."""

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.utils import setup_globals
from hydra.types import RunMode

from normbench import names
from normbench.choices import CONF
from normbench.command.config import compose as configs
from normbench.command.config import resolvers, study
from normbench.command.config.grid import Grid, split_option_overrides
from normbench.job import PointsCache, run
from normbench.recording.store import records
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
    for number, job in enumerate(grid.jobs):
        spec = configs.JobSpec.from_config(grid.config(job))
        made = spec.job()
        tags = spec.tags | {
            names.SWEEP_ID.key: memory.MEMORY_SWEEP,
            names.membership(memory.MEMORY_SWEEP).key: str(number),
        }
        place = records.RecordHeader(
            memory.MEMORY_STORE, spec.experiment, "", spec.parameters(), tags
        )
        spec.add_identity(place.params, place.tags, made)
        shared = caches.setdefault(made.dataset, PointsCache(made.dataset.x))
        found.append(records.of_outcome(place, made.dataset, run(made, points_cache=shared)))
    return memory.sweep(found, study.expected_tag(master))
