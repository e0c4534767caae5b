"""Networks whose steps JAX compiles, on a processor or a GPU: the same costs to rounding."""

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from types import FunctionType
from typing import Any, NamedTuple

import autograd.numpy as anp
import numpy as np

from normbench.costs.misclassifications import mark_correct
from normbench.datasets.values import UserError
from normbench.engine.fast.threaded_network import ThreadedNetwork
from normbench.engine.network import Model, Sums
from normbench.engine.problem import Array, Cost
from normbench.models.formulas import Formulas, Fused
from normbench.models.layout import Layout

# Of the activations of a block of points. Runs go one by one: all in one product took longer.
JAX_BLOCK_BYTES = 1 << 28


class _Compiled(NamedTuple):
    """Compiled functions of weights `(R, D)`, points, targets and moments.

    sums: returns `total, (sums, collected)`: the cost of all runs together, which JAX
    differentiates; `Sums` without a gradient; and the moments of the points, none where moments are
    given. gradient: returns the result of `sums` and the gradient `(R, D)`.
    """

    sums: Callable[..., Any]
    gradient: Callable[..., Any]


class JaxNetwork(ThreadedNetwork):
    """A `Network` whose cost, counts and gradient are one program of JAX's; steps are numpy's."""

    @property
    def block_bytes(self) -> int:
        """See `Network.block_bytes`."""
        return JAX_BLOCK_BYTES

    @property
    def group_bytes(self) -> int:
        """See `Network.group_bytes`; 1 byte, so that each group is one run."""
        return 1

    @property
    def is_thread_safe(self) -> bool:
        """See `ThreadedNetwork.is_thread_safe`; a GPU takes one run after the other."""
        return bool(_import_jax().default_backend() == "cpu")

    @cached_property
    def _stored_blocks(self) -> dict[tuple[int, int], tuple[Any, Any]]:
        """Points and targets of slices, in the memory of the device."""
        return {}

    def take_points(self, block: slice | Array) -> tuple[Any, Any]:
        """See `Network.take_points`; those of a slice are moved to the device once."""
        points = super().take_points(block)
        if not isinstance(block, slice):  # a batch: its points differ at each update
            return points
        key = block.start, block.stop
        if key not in self._stored_blocks:
            self._stored_blocks[key] = _import_jax().device_put(points)
        return self._stored_blocks[key]

    def sum_up(
        self,
        weights: Array,
        x: Any,
        targets: Any,
        formulas: Fused,
        moments: Any,
        with_gradient: bool,
        collected: list[Any] | None = None,
    ) -> Sums:
        """See `Network.sum_up`; `formulas` are not used, since the compiled program has its own."""
        # Cached by its arguments: compiled once for equal models.
        compiled = _compile(self.model, self.layout, self.cost, self.classify)
        gradient, arguments = None, (weights, x, targets, moments)
        if with_gradient:
            (_, (sums, batch_moments)), slopes = compiled.gradient(*arguments)
            if collected is not None:
                collected.extend(tuple(map(np.asarray, pair)) for pair in batch_moments)
            gradient = self.with_running_differences(weights, np.asarray(slopes), collected)
        else:
            _, (sums, _) = compiled.sums(*arguments)
        return Sums(np.asarray(sums.costs), np.asarray(sums.counts), gradient)

    def collect(self, arrays: Sequence[Array]) -> Sequence[Any]:
        """See `Network.collect`."""
        compiled = _compile(self.model, self.layout, self.cost, self.classify)
        points = self.take_points(slice(0, len(self.x)))
        # Without given moments the program returns those of the points.
        _, (_, collected) = compiled.sums(self.layout.join(arrays), *points, None)
        return [tuple(map(np.asarray, pair)) for pair in collected]


def check_traceable(cost: Cost, scores: int) -> None:
    """Check that JAX can compile a cost.

    Args:
        cost: The cost, a function of scores and targets.
        scores: The number of scores of a point C.

    Raises:
        UserError: JAX cannot trace the cost.
    """
    jax = _import_jax()
    # One run and two points: JAX traces shapes and types alone. See `encode_targets`.
    of_targets = int if scores > 1 else float
    shapes = jax.ShapeDtypeStruct((1, scores, 2), float), jax.ShapeDtypeStruct((2,), of_targets)
    try:
        jax.eval_shape(translate(cost), *shapes)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        name, reason = getattr(cost, "__name__", cost), str(error).partition("\n")[0]
        raise UserError(
            f"engine=jax: cannot compile cost={name}: {reason}; write it with functions of "
            "autograd.numpy that jax.numpy has too and without branches on scores, or use "
            "engine=fast"
        ) from error


def translate(function: Any, translations: dict[Any, Any] | None = None) -> Any:
    """Return a copy of a function that uses JAX's functions in place of numpy's.

    In the copy's global variables the modules `numpy` and `autograd.numpy` are replaced by JAX's.
    Functions that it calls by a global name are translated, too. Of a cost with a fused derivative,
    the plain formula is translated.

    Args:
        function: The function; anything but a Python function is returned unchanged.
        translations: The translations so far, by function: functions may call each other.
    """
    plain = getattr(function, "formula", function)
    if not isinstance(plain, FunctionType):
        return plain
    translations = {} if translations is None else translations
    if plain in translations:
        return translations[plain]
    variables, closure = dict(plain.__globals__), plain.__closure__
    translated = FunctionType(
        plain.__code__, variables, plain.__name__, plain.__defaults__, closure
    )
    translated.__kwdefaults__ = plain.__kwdefaults__
    translations[plain] = translated
    # The global names that the code of the function uses.
    for name in set(plain.__code__.co_names) & variables.keys():
        value = variables[name]
        is_numpy = value is np or value is anp
        variables[name] = _import_jax_numpy() if is_numpy else translate(value, translations)
    return translated


def _import_jax() -> Any:
    """Return JAX, with numbers of 64 bits."""
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax


def _import_jax_numpy() -> Any:
    """Return the module `jax_numpy`, which imports JAX."""
    from normbench.engine.fast import jax_numpy

    return jax_numpy


@lru_cache(maxsize=8)
def _compile(model: Model, layout: Layout, cost: Cost, classify: bool) -> _Compiled:
    """Return the compiled functions of a model and a cost.

    The arguments are the key of the cache. JAX compiles the functions again for other shapes of
    their arrays.
    """
    jax = _import_jax()
    formulas, formula = Formulas(_import_jax_numpy()), translate(cost)
    find_correct = translate(mark_correct)

    def sum_up(weights: Any, x: Any, targets: Any, moments: Any) -> Any:
        """Return the total cost, and the sums of each run and the moments; see `_Compiled.sums`."""
        collected: list[Any] = []
        arrays, wanted = layout.split(weights), None if moments else collected
        scores = model.scores(layout, arrays, x, moments, wanted, formulas, targets)
        costs = formula(scores.astype(float), targets)  # summed in float64, whatever the scores are
        counts: Any = 0
        if classify:
            counts = jax.numpy.sum(~find_correct(scores, targets), axis=1)
        return costs.sum(), (Sums(costs, counts), collected)

    return _Compiled(jax.jit(sum_up), jax.jit(jax.value_and_grad(sum_up, has_aux=True)))
