"""Every history of a descent, and what judges them: kept, so that a job can be judged again."""

from collections.abc import Mapping

import numpy as np

from normbench import names
from normbench.measures.contract import Array, Findings, Finished, Measure, named, shadows_of
from normbench.verdicts import judging
from normbench.verdicts.convergence import Rules
from normbench.verdicts.judging import Bench, Shadows, Step

BENCH = ("minimum", "reference", "epsilon", "fit_seconds", "seconds_a_step")


def take(made: Finished) -> Findings:
    """Return the histories of S step sizes, each from A starts, of K iterations, as arrays.

    `step_sizes` (S,). By the names they log under, those histories that there are, (S, A, K + 1),
    NaN from where a run stopped being finite. `diverged_at` (S, A), the iteration at which it did,
    -1 for never. `shadows` (S, A, M), the last costs of shadows, where any run has one, and
    `shadows_reached` (S, A, M, T), their iterations to each target. `minimum`,
    `reference` (the cost at zero weights), `tie` (NaN for none), `epsilon`, `fit_seconds`,
    `seconds_a_step`, `points`, each (): see `Bench`. And a tag where the optimizer finds its own
    step sizes, so that the one recorded, 1, is none.
    """
    here = made.descended
    assert here is not None
    runs = (len(here.steps), len(here.start))
    every = {**named(here.histories), "diverged_at": here.histories.diverged_at}
    shadows = shadows_of(here.histories, here.bench)
    if shadows is not None:
        every["shadows"] = shadows.ends
        every["shadows_reached"] = np.stack([shadows.reached[name] for name in names.TARGETS], -1)
    return Findings(
        tags={names.GRIDLESS.key: "true"} if here.optimizer.gridless else {},
        arrays={
            "step_sizes": np.array([step.step_size for step in here.steps]),
            **{name: part.reshape(*runs, *part.shape[1:]) for name, part in every.items()},
            **{name: np.array(getattr(here.bench, name)) for name in BENCH},
            "tie": np.array(here.bench.tie if here.bench.tie else np.nan),
            "points": np.array(here.bench.points),
        },
    )


def judged_again(parts: Mapping[str, Array], rules: Rules) -> tuple[Step, ...]:
    """Return a `Step` for each step size of kept histories, judged by these rules."""
    tie = float(parts["tie"])
    bench = Bench(
        rules=rules,
        tie=None if np.isnan(tie) else tie,
        points=int(parts["points"]),
        **{name: float(parts[name]) for name in BENCH},
    )
    known = [metric.key for metric in names.HISTORIES if metric.key in parts]
    histories = {name: parts[name].reshape(-1, parts[name].shape[-1]) for name in known}
    sizes = [float(size) for size in parts["step_sizes"]]
    shadows = None
    if "shadows" in parts:
        ends = parts["shadows"].reshape(-1, parts["shadows"].shape[-1])
        counts = parts["shadows_reached"].reshape(*ends.shape, -1)
        shadows = Shadows(ends, dict(zip(names.TARGETS, np.moveaxis(counts, -1, 0))))
    return judging.steps(histories, parts["diverged_at"].reshape(-1), sizes, bench, shadows)


MEASURE = Measure(take)
