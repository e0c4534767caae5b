"""Steps of networks: batches, running statistics, and step sizes of gains and shifts."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from normbench.costs.declaration import Traits
from normbench.datasets.on_disk.points import is_in_memory
from normbench.datasets.values import UserError
from normbench.engine.batches import CYCLIC, Batches, batches_of
from normbench.engine.hessian import Effort, Hessian
from normbench.engine.network import Model, Network
from normbench.engine.problem import QUIET, Array, Evaluation, PartsApart, Problem, Workspace
from normbench.engine.settings import FITTED, Settings
from normbench.models.layout import AFFINE_KINDS, Layout
from normbench.models.network import ALL, BATCH, RUNNING
from normbench.optimizers import Optimizer
from normbench.optimizers.contract import State, Update
from normbench.settings import default

# The share of a batch's statistics in the running ones after an update.
RUNNING_SHARE = 0.1
STATISTICS_NOTES = {
    RUNNING: "recorded costs are under running statistics, and steps under those of their points",
    ALL: "recorded costs are under statistics of all points, and steps under those of a batch",
}


@dataclass(frozen=True)
class NetworkSteps(PartsApart):
    """A `Network` that is stepped by batches, or whose recorded cost is not the one descended.

    The gradient of a batch is the sum of its points' gradients divided by the size of a full batch,
    plus the penalty's gradient; see `Minibatch`. Running statistics are among the weights; in place
    of derivatives by them, the gradient has their differences from the batch's statistics.

    inner: the network on all points. batches: which points each update sees.
    """

    inner: Network
    batches: Batches

    @property
    def model(self) -> Model:
        """The model."""
        return self.inner.model

    @property
    def layout(self) -> Layout:
        """The layout of the weights."""
        return self.inner.layout

    @property
    def classify(self) -> bool:
        """See `Problem.classify`."""
        return self.inner.classify

    @property
    def shape(self) -> tuple[int]:
        """See `Problem.shape`."""
        return self.inner.shape

    @property
    def convex(self) -> bool:
        """False."""
        return False

    @property
    def linear(self) -> None:
        """None: scores are not linear in the weights."""
        return

    @property
    def full_batch(self) -> bool:
        """False: a step does not follow the gradient of the recorded cost."""
        return False

    @property
    def order(self) -> str:
        """See `Problem.order`; empty where each batch is all points."""
        return self.batches.description if self.batches.size < self.batches.points else ""

    @property
    def note(self) -> str:
        """A note for the user where steps or records differ from what their names say; or empty."""
        notes = []
        # Without normalization over points nothing depends on whose statistics are used.
        if self.model.needs_all_points and self.model.statistics in STATISTICS_NOTES:
            notes.append(STATISTICS_NOTES[self.model.statistics])
        if self.batches.joins_last:
            notes.append("the last batch of a pass has one point more, which else were alone")
        return "; ".join(notes)

    @property
    def effort(self) -> Effort:
        """See `Problem.effort`."""
        return self.inner.effort

    def updates_before(self, record: int) -> int:
        """See `Problem.updates_before`."""
        return self.batches.updates_before(record)

    def at(self, updates: int) -> "NetworkSteps":
        """Return this problem, which no update changes."""
        return self

    def evaluate(
        self, weights: Array, with_gradient: bool = True, workspace: Workspace | None = None
    ) -> Evaluation:
        """Return costs, gradient and misclassifications on all points; see `Problem.evaluate`.

        Args:
            weights: `(R, D)`.
            with_gradient: Whether the gradient of all points is computed.
            workspace: Memory to work in.

        Returns:
            Costs `(R,)`, gradient `(R, D)` or None, and counts `(R,)` or None.
        """
        return self.inner.evaluate(weights, with_gradient, workspace)

    def gradient(self, weights: Array, k: int, workspace: Workspace | None = None) -> Array:
        """Return the gradient of a batch: the sum over its points divided by a full batch's size.

        Args:
            weights: `(R, D)`.
            k: The number of the update, whose batch is taken.
            workspace: Memory to work in.

        Returns:
            `(R, D)`, with the penalty's gradient, of which a last batch of m' points has the share
            m'/m. The entries of running statistics are these minus the batch's statistics.
        """
        points = self.batches.stretch_of(k).points
        is_running = self.inner.model.statistics == RUNNING
        with QUIET():
            gradient = self.inner.sum_gradients(weights, points, is_running, workspace)
            # A view. The entries of running statistics, after it, are no sums: they stay undivided.
            trained = gradient[:, : self.inner.layout.trained]
            trained /= self.batches.size
            if self.inner.l2 > 0:
                share = len(points) / self.batches.size
                gradient += 2 * share * self.inner.l2 * self.inner.penalized(weights)
        return gradient

    def hessian(self, weights: Array) -> Hessian:
        """See `Problem.hessian`."""
        return self.inner.hessian(weights)

    def scores(self, weights: Array, x: Array) -> Array:
        """See `Problem.scores`."""
        return self.inner.scores(weights, x)


def with_affine_and_running_steps(optimizer: Optimizer, train: Problem) -> Optimizer:
    """Return a step rule that steps gains, shifts and running statistics of a network separately.

    Gains and shifts have the model's `affine_step` as their step size, where it has one. Running
    statistics r become `r - share (r - s)`, with the statistics s of the batch and the share
    `RUNNING_SHARE`.

    Args:
        optimizer: The step rule of the weights.
        train: The problem, of any kind.

    Returns:
        The step rule, with the problem's note added to its own. Its steps are unchanged where
        gains and shifts have the run's step size and there are no running statistics. For a
        problem that is no network it is the given rule.
    """
    if not isinstance(train, (Network, NetworkSteps)):
        return optimizer
    layout, affine_step = train.layout, train.model.affine_step
    trained = layout.trained
    if isinstance(train, NetworkSteps) and train.note:
        optimizer = optimizer._replace(note="; ".join(filter(None, (optimizer.note, train.note))))
    if trained == layout.size and affine_step is None:
        return optimizer
    is_affine = layout.mark(*AFFINE_KINDS)[:trained]

    def init(weights: Array) -> State:
        return optimizer.init(weights[:, :trained])

    # It takes no objective: `check_model` refuses rules that use one.
    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        sizes = step_size
        if affine_step is not None:
            sizes = np.where(is_affine, np.asarray(affine_step, weights.dtype), step_size)
        stepped, state = optimizer.step(weights[:, :trained], gradient[:, :trained], state, sizes)
        running = weights[:, trained:] - RUNNING_SHARE * gradient[:, trained:]
        return np.concatenate([stepped, running.astype(weights.dtype)], axis=1), state

    # Weights have steps of several kinds, so that neither trait of the rule holds for all of them.
    return optimizer._replace(init=init, step=step, plain=False, rotation_equivariant=False)


def network_of(problem: Problem) -> Network | None:
    """Return the network on all points that a problem is or wraps; None for linear scores."""
    if isinstance(problem, NetworkSteps):
        return problem.inner
    return problem if isinstance(problem, Network) else None


def step_by_batches(whole: Network, batches: Batches | None) -> Network | NetworkSteps:
    """Return the problem that steps by batches of all points.

    Args:
        whole: The network on all points (P, N).
        batches: The batches of these points; None for steps on all of them. A last batch of one
            point joins the one before, where points are normalized together.

    Returns:
        A wrapper of the network; the network itself where each step sees all points and no running
        statistics are kept.
    """
    is_coupled = whole.model.needs_all_points
    if batches is None:
        if not (is_coupled and whole.model.statistics == RUNNING):
            return whole
        # One batch of all points: its statistics move the running ones at each step.
        batches = Batches(len(whole.x), len(whole.x), CYCLIC)
    return NetworkSteps(whole, _join_single_point(batches) if is_coupled else batches)


def _join_single_point(batches: Batches) -> Batches:
    """Return batches whose last one of a pass is joined to the one before if it is one point."""
    return replace(batches, joins_last=batches.points % batches.size == 1)


def held_out_problem(whole: Network, x: Array, targets: Array) -> Network | None:
    """Return the problem of held-out points.

    Args:
        whole: The network on the training points, whose statistics held-out points may be under.
        x: Held-out points (p, N).
        targets: The targets of these points, (p,).

    Returns:
        The problem; None where there are no such points.
    """
    return replace(whole, x=x, targets=targets, reference=whole) if len(x) else None


def draw_start(settings: Settings, train: Problem) -> Array | None:
    """Return the weights that a network's runs start from, as its model draws them.

    Args:
        settings: The engine's, with the seed and the number of starts.
        train: The problem of the training points.

    Returns:
        `(starts, D)`; None for starts that no model draws, which `start.starting_weights` makes.
    """
    if settings.start != "normal" or not isinstance(train, (Network, NetworkSteps)):
        return None
    rng = np.random.default_rng([settings.seed, *settings.draws])
    return train.model.start(train.layout, settings.starts, rng)


def check_model(
    model: Model,
    settings: Settings,
    points: tuple[Any, Any],
    optimizer: Optimizer,
    l2_in: str,
    cost_traits: Traits,
) -> None:
    """Check a model that is not linear against the settings, the points and the cost.

    Args:
        model: The model.
        settings: The engine's.
        points: The training points (P, N) and the held-out points (Q, N).
        optimizer: The step rule.
        l2_in: The weights that the penalty is on, `transformed` or `features`.
        cost_traits: The traits that the cost declares.

    Raises:
        UserError: A setting is for the linear model alone, the optimizer does not take the model,
            or a batch or part has one point, which would be normalized by itself.
    """
    scale, default_scale = settings.start_scale, default("start_scale")
    # Whether the setting has a value that networks refuse, the setting, and the remedy.
    remedies = [
        (settings.start == "same_function", "start=same_function", "start=null"),
        (
            scale != default_scale,
            f"start_scale={scale:g}",
            f"start_scale={default_scale:g} and model.start_scale={scale:g}",
        ),
        (
            settings.statistics != FITTED,
            f"normalizer.statistics={settings.statistics}",
            f"normalizer.statistics={FITTED}",
        ),
        (not is_in_memory(points[0]), "points that are not in memory", "dense points"),
        (l2_in != "transformed", f"cost.l2_in={l2_in}", "cost.l2_in=transformed"),
        (optimizer.scheme is not None, "optimizer=preconditioned", "optimizer=gradient_descent"),
    ]
    for is_wrong, setting, remedy in remedies:
        if is_wrong:
            raise UserError(f"{setting}: is for model=linear; use {remedy}, or model=linear")
    if settings.start == "zeros":
        raise UserError(
            "start=zeros: zero weights of a network are a stationary point; use start=null, which "
            "draws the weights"
        )
    # Under these two settings a step does not follow the gradient of the cost alone.
    is_running = model.statistics == RUNNING and model.needs_all_points
    for is_wrong, setting in (
        (is_running, "model.statistics=running"),
        (model.affine_step is not None, f"model.affine_step={model.affine_step}"),
    ):
        if is_wrong and (optimizer.needs_full_batch or optimizer.uses_objective):
            raise UserError(
                f"{setting}: the optimizer chooses its steps by the cost, as line_search, newton "
                "and lbfgs do; use optimizer=gradient_descent"
            )
    if model.solves_scores and not cost_traits.squares:
        raise UserError(
            "model.affine=solved: gain and shift are solved for cost=least_squares; use "
            "model.affine=true, or that cost"
        )
    if model.needs_all_points:
        _check_counts(model, settings, *map(len, points))


def _check_counts(model: Model, settings: Settings, train: int, test: int) -> None:
    """Raise `UserError` where a point would be normalized by itself alone.

    It is raised as well where joining the last point leaves fewer updates than records in a pass.

    train, test: the numbers of training and of held-out points. Held-out points are normalized by
    themselves only under the statistics of a batch.
    """
    counts = [(settings.batch, f"batch={settings.batch}", "batch=2 or more")]
    counts.append((train, "the data have 1 training point", "more points"))
    if model.statistics == BATCH:
        counts.append((test, "the data have 1 held-out point", "more of them"))
    for count, setting, remedy in counts:  # a batch of None is all points
        if count == 1:
            raise UserError(
                f"{setting}: model.normalize={model.normalize} needs two points or more, whose "
                f"values have a deviation; use {remedy}, or model.normalize=layer"
            )
    # A pass has one update fewer where a last point joins the batch before, see `check_batch`.
    batches = batches_of(settings, train)
    updates = _join_single_point(batches).updates_per_pass if batches else settings.records_per_pass
    if settings.records_per_pass > updates:
        raise UserError(
            f"records_per_pass={settings.records_per_pass}: a pass over {train} points with "
            f"batch={settings.batch} has {updates} updates, since the last point joins the batch "
            f"before under model.normalize={model.normalize}; choose at most {updates}"
        )
