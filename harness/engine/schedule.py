"""Step sizes that shrink by a factor after every so many passes over the points."""

from typing import Any

import numpy as np

from normbench.datasets.values import UserError, spell_setting
from normbench.engine.plan import Plan
from normbench.engine.problem import Array
from normbench.engine.settings import Settings
from normbench.optimizers import Optimizer, State, Update, zero_per_run


def with_schedule(optimizer: Optimizer, settings: Settings, plan: Plan) -> Optimizer:
    """Return a step rule whose step size at pass k = 0, 1, ... is `a factor^floor(k / n)`.

    a is the run's step size.

    In full batches an iteration is a pass. The rule's state gets one more entry, the number of
    updates.

    Args:
        optimizer: The step rule.
        settings: The engine's; its `step_schedule` is n, in passes, and the factor.
        plan: It knows the number of updates of a pass.

    Returns:
        The step rule; without a schedule the given one.
    """
    if settings.step_schedule is None:
        return optimizer
    passes, factor = settings.step_schedule
    period = plan.updates_before(int(passes) * settings.records_per_pass)  # n, in updates

    def init(weights: Array) -> State:
        return (*optimizer.init(weights), zero_per_run(weights))

    def step(weights: Array, gradient: Array, state: State, step_size: Array, *rest: Any) -> Update:
        *own_state, updates = state
        size = step_size * np.power(factor, updates // period, dtype=step_size.dtype)
        stepped, next_state = optimizer.step(weights, gradient, tuple(own_state), size, *rest)
        return stepped, (*next_state, updates + 1)

    note = f"the step size is multiplied by {factor:g} every {passes:g} passes"
    note = f"{optimizer.note}; {note}" if optimizer.note else note
    # Not plain: theory is of steps of one size.
    return optimizer._replace(init=init, step=step, plain=False, note=note)


def check_schedule(settings: Settings, optimizer: Optimizer) -> None:
    """Check that a schedule of step sizes has step sizes to change.

    Args:
        settings: The engine's.
        optimizer: The step rule.

    Raises:
        UserError: There is a schedule, and the optimizer chooses its own step sizes.
    """
    if settings.step_schedule is not None and optimizer.gridless:
        raise UserError(
            f"{spell_setting('step_schedule', settings.step_schedule)}: the optimizer chooses its "
            "own step sizes, as lbfgs does; use step_schedule=null"
        )
