"""A job before its descent: its inputs, and the problem and the rounds that they make."""

import time
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from normbench.costs.declaration import traits
from normbench.datasets import Dataset
from normbench.engine.descent import SavedDescents
from normbench.engine.linear import Linear
from normbench.engine.network import Network, with_affine_and_running_steps
from normbench.engine.plan import plan_of, with_schedule
from normbench.engine.problem import Array, Cost, Problem
from normbench.engine.rounds import Rounds
from normbench.engine.scheme import Applied, penalty_of, with_columns, with_fitted_scheme
from normbench.engine.settings import Settings
from normbench.engine.smaller import smaller_problem
from normbench.engine.start import starting_weights
from normbench.models import Mlp
from normbench.optimizers import Optimizer
from normbench.verdicts.convergence import Rules
from normbench.verdicts.search import Search


@dataclass(frozen=True)
class Job:
    """The inputs of a job.

    Attributes:
        dataset: The data set.
        cost: The cost, a function of scores and targets.
        normalizer: The scheme, a scikit-learn transformer; the job fits a copy, its `scheme`.
        optimizer: The optimizer.
        settings: The settings of the descent.
        l2: The weight of the penalty.
        l2_in: The coordinates whose weights l2 penalizes, see `normbench.engine.scheme`.
        rules: The rules of judging.
        search: The settings of the search for the critical step size.
        model: How scores follow from the weights; None where they are linear in them.
        applied: The points under the scheme, where `with_default_start` has fitted it; None in any
            job that `replace` makes.
    """

    dataset: Dataset
    cost: Cost
    normalizer: Any
    optimizer: Optimizer
    settings: Settings
    l2: float = 0.0
    l2_in: str = "transformed"
    rules: Rules = field(default_factory=Rules)
    search: Search = field(default_factory=Search)
    model: Mlp | None = None
    applied: Applied | None = field(default=None, init=False, repr=False)

    @cached_property
    def scheme(self) -> Any:
        """The job's own copy of the scheme, on columns of its data set."""
        return with_columns(self.normalizer, self.dataset)

    @cached_property
    def step_rule(self) -> Optimizer:
        """The optimizer, with a copy of the scheme by which it preconditions, if any."""
        return self.optimizer._replace(scheme=with_columns(self.optimizer.scheme, self.dataset))

    @cached_property
    def effective_settings(self) -> Settings:
        """The settings without what the optimizer, the model or batches exclude."""
        # Such an optimizer finds its own step sizes: a grid would repeat one run.
        grid: Any = {"step_sizes": (1.0,), "shown_step": None} if self.optimizer.gridless else {}
        # Finer step sizes serve targets, which need the least cost: that of a network is unknown.
        refine: Any = {"refine": False} if self.model or self.settings.batch else {}
        whole: Any = {"records_per_pass": 1} if self.settings.batch is None else {"shadows": False}
        return replace(self.settings, **grid, **refine, **whole)

    @property
    def scores(self) -> int:
        """The number of scores of a point C: one, or one for each class.

        A cost that takes either (`score_per_class` is None) gets one for each from three classes
        on.
        """
        per_class, classes = traits(self.cost).score_per_class, self.dataset.classes
        return classes if classes and (classes > 2 if per_class is None else per_class) else 1

    @property
    def scoring(self) -> Any:
        """How scores follow from weights, a `Model` of the engine."""
        # Other optimizers may amplify the rounding of a class left out.
        leaves_out_class = self.optimizer.rotation_equivariant
        return Network(self.model) if self.model else Linear(leaves_out_class=leaves_out_class)

    def encode(self, y: Array, dtype: Any) -> Array:
        """Return targets (P,) as the cost takes them.

        They are real targets as they are; class indices where each class has a score; otherwise -1
        for class 0 and +1 for class 1.
        """
        if self.scores > 1:
            return y
        return (2 * y - 1 if self.dataset.classes else y).astype(dtype)

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on the data; one says that whole numbers are classes for a cost of numbers."""
        data = self.dataset
        if not data.has_numbered_classes or "regression" not in traits(self.cost).tasks:
            return data.notes
        return (
            f"data of {data.name}: the whole numbers of the target are taken for {data.classes} "
            "classes; dataset.task=regression takes them for numbers",
            *data.notes,
        )


def prepare(
    job: Job, applied: Applied, checkpoint: Any = None
) -> tuple[Problem, Array, Rounds, float]:
    """Return the problem of a job, its starts, and the rounds that descend its smallest equal.

    The last number is the seconds of the fit of the scheme by which steps are preconditioned.

    Args:
        job: The job.
        applied: Its scheme, and the points under it.
        checkpoint: Saves the state of the descent, and resumes it; None for no checkpoints.
    """
    data, settings, model = job.dataset, job.effective_settings, job.scoring
    scheme, z, z_test, _ = applied
    encode = partial(job.encode, dtype=z.dtype)
    l2 = penalty_of(job.l2, job.l2_in, applied, data.x, z.dtype)
    targets = encode(data.y), data.classes > 0, job.scores  # whether points are counted, and C
    train = Problem(model, job.cost, z, *targets, l2, batch=settings.batch)
    test = train.held_out(z_test, encode(data.y_test)) if len(z_test) else None
    plan = plan_of(settings, train, scheme, data)
    start = starting_weights(settings, model, job.scores, applied, data).astype(z.dtype)
    tick = time.perf_counter()
    fitted = with_fitted_scheme(job.step_rule, *([z, z_test] if data.fit_on == "all" else [z]))
    seconds = time.perf_counter() - tick
    optimizer = with_affine_and_running_steps(with_schedule(fitted, settings, plan), train)
    optimizer = optimizer._replace(note="; ".join(filter(None, (optimizer.note, plan.note))))
    runs = len(settings.step_sizes) * settings.starts
    descended = smaller_problem(train, test, start, optimizer, plan, runs)
    saved = SavedDescents(checkpoint) if checkpoint else None
    rounds = Rounds(*descended, optimizer, plan, settings.shadows, saved)
    return train, start, rounds, seconds
