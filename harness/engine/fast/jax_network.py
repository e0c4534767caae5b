"""Networks whose layers JAX compiles, on a processor or a GPU: the same costs to rounding."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from normbench.engine.network import Model, Network
from normbench.engine.problem import Array
from normbench.models.formulas import Formulas, Fused
from normbench.models.layout import Layout

# Of the activations of a block of points. Runs go one by one: all in one product took longer.
JAX_BLOCK_BYTES = 1 << 28


class _Compiled(NamedTuple):
    """Compiled functions of weights by group, points, targets and moments.

    scores: returns scores and collected moments. trace: returns scores, a function that pulls
    derivatives back, and collected moments. pull: applies that function.
    """

    scores: Callable[..., Any]
    trace: Callable[..., Any]
    pull: Callable[..., Any]


class JaxNetwork(Network):
    """A `Network` whose scores and their derivatives are JAX's; costs and steps are numpy's."""

    @property
    def block_bytes(self) -> int:
        """See `Network.block_bytes`."""
        return JAX_BLOCK_BYTES

    @property
    def group_bytes(self) -> int:
        """See `Network.group_bytes`: of one run."""
        return 1

    @property
    def _compiled(self) -> "_Compiled":
        """The compiled functions of the model."""
        return _compile(self.model, self.layout)

    def trace_scores(
        self,
        arrays: Sequence[Array],
        x: Array,
        moments: Any,
        collected: list[Any] | None,
        formulas: Fused,
        targets: Array,
        with_gradient: bool,
    ) -> tuple[Array, Callable[[Array], Sequence[Array]] | None]:
        """See `Network.trace_scores`."""
        arguments = tuple(arrays), x, targets, moments
        if with_gradient:
            scores, pull, batch_moments = self._compiled.trace(*arguments)
        else:
            scores, batch_moments = self._compiled.scores(*arguments)
        if collected is not None:
            collected.extend(tuple(map(np.asarray, pair)) for pair in batch_moments)
        if not with_gradient:
            return np.asarray(scores), None

        def pull_back(derivative: Array) -> Sequence[Array]:
            return tuple(map(np.asarray, self._compiled.pull(pull, derivative)))

        return np.asarray(scores), pull_back

    def collect(self, arrays: Sequence[Array]) -> Sequence[Any]:
        """See `Network.collect`."""
        _, collected = self._compiled.scores(tuple(arrays), self.x, self.targets, None)
        return [tuple(map(np.asarray, pair)) for pair in collected]


@lru_cache(maxsize=8)
def _compile(model: Model, layout: Layout) -> _Compiled:
    """Return the functions of a model, which JAX compiles anew for another number of points."""
    import jax

    jax.config.update("jax_enable_x64", True)
    formulas = Formulas(jax.numpy)

    def compute_scores(arrays: Any, x: Any, targets: Any, moments: Any) -> Any:
        collected: list[Any] = []
        wanted = None if moments else collected
        return model.scores(layout, arrays, x, moments, wanted, formulas, targets), collected

    def trace(arrays: Any, *others: Any) -> Any:
        return jax.vjp(lambda traced: compute_scores(traced, *others), arrays, has_aux=True)

    def pull_back(pull: Any, slopes: Any) -> Any:
        return pull(slopes)[0]

    return _Compiled(jax.jit(compute_scores), jax.jit(trace), jax.jit(pull_back))
