"""Which weights a network has, how they start, and which of their multiples are one function."""

import numpy as np
import pytest

from normbench.datasets.values import UserError
from normbench.models import Mlp, formulas
from normbench.models.formulas import ACTIVATIONS

FEATURES, SCORES = 5, 3


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def shapes(**fields):
    """Return the groups of a network of two hidden layers as (layer, kind, shape)."""
    model = Mlp((4, 6), **fields)
    return [(*key, shape) for key, shape in model.layout(FEATURES, SCORES).shapes.items()]


LINEAR = [
    *((0, "weight", (4, 5)), (0, "bias", (4, 1)), (1, "weight", (6, 4)), (1, "bias", (6, 1))),
    *((2, "weight", (3, 6)), (2, "bias", (3, 1))),
]


def test_a_network_has_a_weight_and_a_bias_a_layer():
    assert shapes() == LINEAR


@pytest.mark.parametrize("normalize", ["batch", "layer", "zca"])
def test_normalized_layers_have_gains_and_shifts_behind_their_biases(normalize):
    groups = shapes(normalize=normalize)
    assert [group for group in groups if group[1] in ("weight", "bias")] == LINEAR
    assert groups[2:4] == [(0, "gain", (4, 1)), (0, "shift", (4, 1))]
    assert [kind for _, kind, _ in groups] == [
        *(2 * ["weight", "bias", "gain", "shift"]),
        *("weight", "bias"),
    ]
    assert shapes(normalize=normalize, affine=False) == LINEAR


def test_running_statistics_stand_last_and_are_variances_or_covariances():
    batch = shapes(normalize="batch", affine=False, statistics="running")
    assert batch == [
        *LINEAR,
        *((0, "running_mean", (4, 1)), (0, "running_spread", (4, 1))),
        *((1, "running_mean", (6, 1)), (1, "running_spread", (6, 1))),
    ]
    groups = shapes(normalize="zca", affine=False, statistics="running")
    assert [shape for _, kind, shape in groups if kind == "running_spread"] == [(4, 4), (6, 6)]
    for others in ({"normalize": "layer"}, {"normalize": "batch", "statistics": "all"}):
        assert not any(
            "running" in kind for _, kind, _ in shapes(**{"statistics": "running"} | others)
        )


@pytest.mark.parametrize("normalize", ["batch", "pca"])
def test_a_start_has_gains_of_one_and_running_statistics_of_white_values(rng, normalize):
    model = Mlp((4, 6), normalize=normalize, statistics="running", start_scale=0.5)
    layout = model.layout(FEATURES, SCORES)
    weights = model.start(layout, 3, rng)
    assert weights.shape == (3, layout.size)
    for (_, kind), array in layout.split(weights).items():
        if kind == "weight":
            assert len(np.unique(array)) == array.size
            continue
        expected = {"gain": 1.0, "running_spread": 1.0}.get(kind, 0.0)
        if kind == "running_spread" and normalize == "pca":
            expected = np.eye(array.shape[-1])
        np.testing.assert_array_equal(array, np.broadcast_to(expected, array.shape))


INVARIANT = [
    # normalization, place, activation, and sets of a layer of four units
    *(("batch", "before", "tanh", 4), ("layer", "before", "tanh", 1)),
    *(("weight", "before", "tanh", 4), ("pca", "before", "tanh", 1)),
    *(("zca", "before", "tanh", 1), ("newton", "before", "sigmoid", 1)),
    *(("batch", "after", "relu", 4), ("layer", "after", "identity", 1)),
    ("zca", "after", "identity", 1),
]


@pytest.mark.parametrize(("normalize", "place", "activation", "count"), INVARIANT)
def test_a_multiple_of_scale_invariant_weights_is_the_same_function(
    rng, normalize, place, activation, count
):
    """Each set is multiplied by itself; every normalized weight is in one of them."""
    model = Mlp((4,), normalize=normalize, place=place, activation=activation, epsilon=0.0)
    layout = model.layout(FEATURES, SCORES)
    x = rng.standard_normal((20, FEATURES))
    weights = model.start(layout, 1, rng) + 0.1 * rng.standard_normal((1, layout.size))
    scores = model.forward(layout.split(weights), x).scores
    sets = model.scale_invariant_weights(layout)
    assert [layer for layer, _ in sets] == [0] * count
    positions = np.sort(np.concatenate([indices for _, indices in sets]))
    has_bias = normalize == "layer" or place == "after"
    expected = layout.mark("weight", *(["bias"] if has_bias else []))
    expected[-SCORES * (4 + 1) :] = False  # of the layer of scores
    np.testing.assert_array_equal(positions, np.flatnonzero(expected))
    for _, indices in sets:
        larger = weights.copy()
        larger[:, indices] *= 3.0
        again = model.forward(layout.split(larger), x).scores
        np.testing.assert_allclose(again, scores, rtol=1e-6, atol=1e-8)


def test_without_such_weights_there_are_no_sets():
    for fields in ({}, {"normalize": "batch", "place": "after", "activation": "tanh"}):
        model = Mlp((4,), **fields)
        assert model.scale_invariant_weights(model.layout(FEATURES, SCORES)) == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"hidden": (0,)}, "model.hidden"),
        ({"newton_iterations": 0}, "model.newton_iterations"),
        ({"affine_step": 0.0}, "model.affine_step"),
        ({"epsilon": -1e-9}, "model.epsilon"),
        ({"start_scale": -1.0}, "model.start_scale"),
    ],
)
def test_values_that_a_network_cannot_have_are_refused(fields, words):
    with pytest.raises(UserError, match=words):
        Mlp(**{"hidden": (4, 6)} | fields)


H = np.array([-3.0, -1.0, -0.25, 0.0, 0.5, 2.0]).reshape(1, 6, 1)
ACTIVATED = {
    "tanh": np.tanh(H),
    "relu": np.array([0, 0, 0, 0, 0.5, 2.0]).reshape(1, 6, 1),
    "sigmoid": 1 / (1 + np.exp(-H)),
    "identity": H,
    "lecun_tanh": 1.7159 * np.tanh(2 * H / 3),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_is_the_function_of_its_name(name):
    np.testing.assert_allclose(formulas.activate(name, H), ACTIVATED[name], rtol=1e-14)
