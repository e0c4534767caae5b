"""Measures of networks, against direct computation on weights of a descent that is made here."""

import numpy as np
import pytest

from normbench import names
from normbench.costs import multiclass_softmax
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.measures.descents import NO_NETWORK, measure_curvature, participation_ratio
from normbench.models import Mlp
from normbench.normalizers import PCASphere
from normbench.optimizers import gradient_descent
from tests import door

POINTS, ITERATIONS, STEP_SIZE = 40, 6, 0.5
VARIANTS = [
    Mlp([5, 4]),
    Mlp([5, 4], normalize="batch", epsilon=0.0),
    Mlp([5, 4], "relu", normalize="layer", affine=False),
]


def drawn():
    x = np.random.default_rng(3).standard_normal((POINTS, 3))
    y = (x[:, 0] > 0) + (x[:, 1] > 0)
    return make_dataset("drawn", x, y, class_names=[*"abc"], source="-")


def outcome(model, *record, cost=multiclass_softmax, **settings):
    chosen = {"iterations": ITERATIONS, "start": "normal", "record": record, **settings}
    descent = Settings((STEP_SIZE,), theory="none", shadows=False, **chosen)
    return run(Job(drawn(), cost, PCASphere(), gradient_descent(), descent, model=model))


def path_of(model):
    """Return the problem, and the weights of every iteration of plain descent."""
    data = drawn()
    z = PCASphere().fit(data.x).transform(data.x)
    network = door.network(model, multiclass_softmax, z, data.y, True, 3)
    weights = [model.start(door.layout(network), 1, np.random.default_rng([0]))]
    for _ in range(ITERATIONS):
        weights.append(weights[-1] - STEP_SIZE * network.evaluate(weights[-1]).gradient)
    return network, np.concatenate(weights)


def layer_indices(network):
    """Return the indices of each layer's weights in the flat array."""
    layout = door.layout(network)
    positions = layout.split(np.arange(layout.size)[None])
    layers = {layer for layer, _ in positions}
    return [
        np.concatenate([part.ravel() for (of, _), part in positions.items() if of == layer])
        for layer in sorted(layers)
    ]


@pytest.mark.parametrize("model", VARIANTS, ids=lambda model: model.normalize)
def test_gradients_of_layers_and_their_cosines_are_those_of_direct_computation(model):
    arrays = outcome(model, "by_layer").arrays["by_layer"]
    network, path = path_of(model)
    assert arrays["iteration"].tolist() == list(range(ITERATIONS + 1))
    for k in (0, 3, ITERATIONS):
        gradient = network.evaluate(path[k : k + 1]).gradient[0]
        for number, layer in enumerate(layer_indices(network)):
            norm = np.linalg.norm(gradient[layer])
            assert arrays[names.LAYER_GRADIENT.key][k, number] == pytest.approx(norm, rel=1e-9)
            cosine = arrays[names.LAYER_COSINE.key][k, number]
            if k == ITERATIONS:
                assert np.isnan(cosine)
                continue
            moved = path[k + 1].copy()
            moved[layer] = path[k, layer]
            other = network.evaluate(moved[None]).gradient[0, layer]
            expected = gradient[layer] @ other / norm / np.linalg.norm(other)
            assert cosine == pytest.approx(expected, abs=1e-9)
            assert abs(cosine) < 1 - 1e-6


def test_values_of_layers_have_the_rank_and_the_norm_of_a_plain_forward_pass():
    arrays = outcome(Mlp([5, 4]), "by_layer").arrays["by_layer"]
    network, path = path_of(Mlp([5, 4]))
    for k in (0, ITERATIONS):
        parts = door.layout(network).split(path[k : k + 1])
        h = network.points.T
        for layer in range(3):
            h = parts[layer, "weight"][0] @ h + parts[layer, "bias"][0]
            h = np.tanh(h) if layer < 2 else h
            squares = np.linalg.svd(h, compute_uv=False) ** 2
            ratio = squares.sum() ** 2 / (squares**2).sum()
            assert arrays[names.LAYER_RANK.key][k, layer] == pytest.approx(ratio, rel=1e-9)
            size = np.sqrt(np.mean(h**2))
            assert arrays[names.LAYER_NORM.key][k, layer] == pytest.approx(size, rel=1e-9)


def test_a_participation_ratio_is_1_along_one_direction_and_all_of_equal_ones():
    assert participation_ratio(np.outer([1.0, 2.0, 3.0], np.arange(1.0, 8.0))) == pytest.approx(1)
    assert participation_ratio(np.eye(4)) == pytest.approx(4)
    assert participation_ratio(np.eye(4)[:3]) == pytest.approx(3)
    assert np.isnan(participation_ratio(np.zeros((2, 3))))


@pytest.mark.parametrize("options", [{"batch": 7}, {"iterations": 200}])
def test_layers_of_batches_and_of_long_runs_are_measured_at_some_records(options):
    model = Mlp([5, 4], normalize="batch", statistics="running" if "batch" in options else "all")
    arrays = outcome(model, "by_layer", **options).arrays["by_layer"]
    cosines = arrays[names.LAYER_COSINE.key]
    assert len(arrays["iteration"]) <= 60
    assert arrays["iteration"][-1] == options.get("iterations", ITERATIONS)
    assert np.isfinite(cosines[:-1]).all()
    assert cosines.shape == (len(arrays["iteration"]), 3)


@pytest.mark.parametrize("model", [VARIANTS[0], None], ids=["network", "linear"])
def test_extreme_eigenvalues_are_those_of_differences_of_gradients(model):
    settings = {} if model else {"start": "zeros"}
    made = outcome(model, "curvature", "path", **settings)
    found, path = made.findings.series, made.arrays["path"]["weights"]
    keys = (names.CURVATURE_LARGEST, names.CURVATURE_SMALLEST, names.CURVATURE_CONDITION)
    (iteration, largest), (_, smallest), (_, condition) = (found[metric.key] for metric in keys)
    data = drawn()
    z = PCASphere().fit(data.x).transform(data.x)
    assert iteration.tolist() == list(range(ITERATIONS + 1))

    def gradient(weights):
        if model:
            network = door.network(model, multiclass_softmax, z, data.y, True, 3)
            return network.evaluate(weights).gradient
        scores = np.einsum("rcn,pn->rcp", weights[:, :, 1:], z) + weights[:, :, :1]
        shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        shares[:, data.y, np.arange(POINTS)] -= 1
        rows = np.insert(z, 0, 1, axis=1)
        return np.einsum("rcp,pn->rcn", shares, rows) / POINTS

    for k in (0, ITERATIONS):
        units, width = np.eye(path[k].size).reshape(-1, *path[k].shape), 1e-5
        difference = gradient(path[k] + width * units) - gradient(path[k] - width * units)
        matrix = difference.reshape(len(units), -1) / (2 * width)
        values = np.linalg.eigvalsh((matrix + matrix.T) / 2)
        assert largest[k] == pytest.approx(values[-1], rel=1e-6)
        assert smallest[k] == pytest.approx(values[0], abs=1e-7 * values[-1])
        assert condition[k] > 1
    if model and model.normalize == "none":
        assert smallest[0] < -1e-3


def test_extreme_eigenvalues_by_lanczos_are_those_of_the_matrix(monkeypatch):
    network, path = path_of(Mlp([5, 4]))
    hessian = network.hessian(path[-1])
    largest, smallest, condition = measure_curvature(hessian)
    values = np.linalg.eigvalsh(hessian.matrix())
    live = values[values > len(values) * np.finfo(float).eps * values[-1]]
    assert condition == pytest.approx(live[-1] / live[0])
    monkeypatch.setattr("normbench.measures.descents.MAX_DENSE_CURVATURE", 10)
    by_products = measure_curvature(hessian)
    assert by_products[:2] == pytest.approx((largest, smallest), rel=1e-4)
    assert np.isnan(by_products[2])


INVARIANT = [
    Mlp([4, 3], normalize="batch"),
    Mlp([4, 3], normalize="weight"),
    Mlp([3, 3], normalize="pca", signs="fixed"),
    Mlp([4, 3], "relu", normalize="layer", place="after"),
    Mlp([4, 4], "relu", normalize="newton", place="after"),
]


@pytest.mark.parametrize("model", INVARIANT, ids=lambda m: f"{m.normalize}-{m.activation}")
def test_multiples_of_scale_invariant_weights_are_one_function(model):
    model = Mlp(**{**vars(model), "epsilon": 1e-30})  # 0 / 0 where all units of a point are 0
    network, path = path_of(model)
    weights = path[0] + 0.1 * np.random.default_rng(1).standard_normal(path[0].shape)
    sets = model.scale_invariant_weights(door.layout(network))
    assert sets
    before = network.evaluate(weights[None])
    for _, indices in sets:
        scaled = weights.copy()
        scaled[indices] *= 3.0
        after = network.evaluate(scaled[None])
        assert after.costs[0] == pytest.approx(before.costs[0], rel=1e-9)
        # The gradient is orthogonal to the weights, and shrinks as they grow.
        assert before.gradient[0, indices] @ weights[indices] == pytest.approx(0, abs=1e-9)
        np.testing.assert_allclose(
            3.0 * after.gradient[0, indices], before.gradient[0, indices], atol=1e-9
        )


def test_sets_of_scale_invariant_weights_cover_each_normalized_layer_once():
    for model in INVARIANT:
        layout = model.layout(3, 2)
        positions = layout.split(np.arange(layout.size)[None])
        for layer in (0, 1):
            indices = np.concatenate(
                [each for of, each in model.scale_invariant_weights(layout) if of == layer]
            )
            assert len(indices) == len({*indices.tolist()})
            assert {*positions[layer, "weight"].ravel().tolist()} <= {*indices.tolist()}
    assert Mlp([3]).scale_invariant_weights(Mlp([3]).layout(2, 2)) == []
    after = Mlp([3], normalize="batch", place="after")
    assert after.scale_invariant_weights(after.layout(2, 2)) == []


@pytest.mark.parametrize("schedule", [None, (2, 0.5)])
def test_norms_of_weights_and_effective_steps_are_those_of_the_path(schedule):
    model = Mlp([5, 4], normalize="batch", epsilon=0.0)
    made = outcome(model, "weight_norms", "path", step_schedule=schedule)
    found, path = made.arrays["weight_norms"], made.arrays["path"]["weights"]
    assert found["layer"].tolist() == [0] * 5 + [1] * 4
    first = np.linalg.norm(path[:, :15].reshape(-1, 5, 3), axis=2)
    np.testing.assert_allclose(found[names.WEIGHT_NORM.key][:, :5], first, rtol=1e-12)
    assert (np.diff(found[names.WEIGHT_NORM.key], axis=0) > 0).all()
    sizes = STEP_SIZE * (0.5 ** (np.arange(ITERATIONS + 1) // 2) if schedule else np.ones(7))
    np.testing.assert_allclose(
        found[names.EFFECTIVE_STEP.key][:, :5], sizes[:, None] / first**2, rtol=1e-12
    )


def test_what_does_not_apply_is_said():
    for record in ("by_layer", "weight_norms"):
        linear = outcome(None, record, start="zeros")
        assert record not in linear.arrays
        note = f"{record}: {NO_NETWORK}"
        assert note in linear.findings.tags[names.NOTE.key]
    plain = outcome(Mlp([3]), "weight_norms")
    assert "weight_norms" not in plain.arrays
    assert "weight_norms: multiples" in plain.findings.tags[names.NOTE.key]
