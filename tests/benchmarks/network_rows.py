"""Networks: a step of a grid beside plain loops of JAX and PyTorch, one run after the other."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from normbench.costs import multiclass_softmax
from normbench.engine.problem import Problem
from normbench.models import Mlp
from tests import door
from tests.benchmarks.turns import Row, absent, in_turns, is_installed, judged, ratio

RUNS, HIDDEN, STEP_SIZE, EPSILON = 10, (100, 10), 0.1, 1e-5
TOLERANCE = 1e-9  # of the weights after a step, relative


def network_rows(turns: int, only: str) -> Iterator[Row]:
    """Seconds of plain loops over ours: a step of 10 runs of [64, 100, 10] on the digits."""
    others = {"jax": _loop_jax, "torch": _loop_torch}
    for normalize in ("none", "batch"):
        network = _network(normalize)
        weights = network.model.mlp.start(door.layout(network), RUNS, np.random.default_rng(0))
        for package, side in others.items():
            name = f"{package} over ours, network, normalize={normalize}"
            if only not in name:
                continue
            if not is_installed(package):
                yield absent(name, package)
                continue
            sides = {"ours": _step(network, weights)}
            sides["other"] = side(network, weights)
            ours, other = (run() for run in sides.values())
            if np.abs(ours - other).max() > TOLERANCE * np.abs(ours).max():
                raise SystemExit(f"{name}: the weights after a step differ")
            seconds = in_turns(sides, turns)
            yield judged(name, ratio(seconds["other"], seconds["ours"]))


def _network(normalize: str) -> Problem:
    x, targets = load_digits(return_X_y=True)
    model = Mlp(HIDDEN, normalize=normalize, epsilon=EPSILON)
    x = StandardScaler().fit_transform(x)
    return door.network(model, multiclass_softmax, x, targets, True, 10)


def _step(network: Problem, weights: Any) -> Callable[[], Any]:
    def step() -> Any:
        gradient = network.evaluate(weights).gradient
        assert gradient is not None
        return weights - STEP_SIZE * gradient

    return step


def _loop_jax(network: Problem, weights: Any) -> Callable[[], Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    jnp, layout, count = jax.numpy, door.layout(network), len(HIDDEN)
    x, targets = jax.device_put(network.points), jax.device_put(network.targets)

    def cost(groups: Any) -> Any:
        h, arrays = x, iter(groups)
        for layer in range(count + 1):
            weight, bias = next(arrays), next(arrays)
            h = h @ weight.T + bias[:, 0]
            if layer == count:
                break
            if network.model.mlp.needs_all_points:
                gain, shift = next(arrays), next(arrays)
                h = (h - h.mean(axis=0)) / jnp.sqrt(h.var(axis=0) + EPSILON)
                h = h * gain[:, 0] + shift[:, 0]
            h = jnp.tanh(h)
        logs = jax.nn.log_softmax(h)
        return -jnp.mean(jnp.take_along_axis(logs, targets[:, None], axis=1))

    @jax.jit
    def step(groups: Any) -> Any:
        slopes = jax.grad(cost)(groups)
        return [group - STEP_SIZE * slope for group, slope in zip(groups, slopes)]

    runs = [[array[0] for array in layout.split(run[None]).values()] for run in weights]

    def all_runs() -> Any:
        return np.stack(
            [np.concatenate([np.asarray(group).ravel() for group in step(run)]) for run in runs]
        )

    return all_runs


def _loop_torch(network: Problem, weights: Any) -> Callable[[], Any]:
    import torch

    layout, count = door.layout(network), len(HIDDEN)
    x, targets = torch.tensor(network.points), torch.tensor(network.targets)
    runs = [
        [torch.tensor(array[0], requires_grad=True) for array in layout.split(run[None]).values()]
        for run in weights
    ]

    def cost(groups: Any) -> Any:
        h, arrays = x, iter(groups)
        for layer in range(count + 1):
            weight, bias = next(arrays), next(arrays)
            h = h @ weight.T + bias[:, 0]
            if layer == count:
                break
            if network.model.mlp.needs_all_points:
                gain, shift = next(arrays)[:, 0], next(arrays)[:, 0]
                h = torch.nn.functional.batch_norm(
                    h, None, None, gain, shift, training=True, eps=EPSILON
                )
            h = torch.tanh(h)
        return torch.nn.functional.cross_entropy(h, targets)

    def all_runs() -> Any:
        stepped = []
        for groups in runs:
            slopes = torch.autograd.grad(cost(groups), groups)
            pairs = zip(groups, slopes)
            stepped.append(
                torch.cat([(group - STEP_SIZE * slope).detach().ravel() for group, slope in pairs])
            )
        return torch.stack(stepped).numpy()

    return all_runs
