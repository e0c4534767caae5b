"""Steps of networks: running statistics, and step sizes of gains and shifts; checks of a model."""

from typing import Any

import numpy as np

from normbench.costs.declaration import Traits
from normbench.datasets.on_disk.points import is_in_memory
from normbench.datasets.values import UserError
from normbench.engine.batches import Batches, join_single_point
from normbench.engine.network import Network
from normbench.engine.problem import Array, Problem
from normbench.engine.settings import FITTED, Settings
from normbench.models import Mlp
from normbench.models.layout import AFFINE_KINDS
from normbench.models.network import BATCH, RUNNING, SOLVED
from normbench.optimizers import Optimizer
from normbench.optimizers.contract import State, Update
from normbench.settings import default

# The share of a batch's statistics in the running ones after an update.
RUNNING_SHARE = 0.1


def with_affine_and_running_steps(optimizer: Optimizer, train: Problem) -> Optimizer:
    """Return a step rule that steps gains, shifts and running statistics of a network separately.

    Gains and shifts have the model's `affine_step` as their step size, where it has one. Running
    statistics r become `r - share (r - s)`, with the statistics s of the batch and the share
    `RUNNING_SHARE`.

    Args:
        optimizer: The step rule of the weights.
        train: The problem, of any kind.

    Returns:
        The step rule; the given one for linear scores, and where gains and shifts have the run's
        step size and there are no running statistics.
    """
    if not isinstance(train.model, Network):
        return optimizer
    layout, affine_step = train.model.layout(train), train.model.mlp.affine_step
    trained = layout.trained
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


def check_model(
    model: Mlp,
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
    if model.affine == SOLVED and not cost_traits.squares:
        raise UserError(
            "model.affine=solved: gain and shift are solved for cost=least_squares; use "
            "model.affine=true, or that cost"
        )
    if not model.needs_all_points:
        return
    # A point by itself has no deviation to be normalized by. Held-out points are normalized by
    # themselves only under the statistics of a batch.
    train, test = map(len, points)
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
    batches = Batches(train, min(settings.batch or 1, train))
    updates = join_single_point(batches).updates_per_pass
    if settings.batch and settings.records_per_pass > updates:
        raise UserError(
            f"records_per_pass={settings.records_per_pass}: a pass over {train} points with "
            f"batch={settings.batch} has {updates} updates, since the last point joins the batch "
            f"before under model.normalize={model.normalize}; choose at most {updates}"
        )
