"""Where runs start: one function under every scheme or the same weights; others a split."""

from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench import costs
from normbench.choices import CONF, build, options
from normbench.datasets import UserError
from normbench.datasets.bundled import breast_cancer
from normbench.engine import start as starting
from normbench.engine.linear import Linear
from normbench.engine.scheme import Applied
from normbench.engine.settings import Settings
from normbench.job import Job, check, run, with_default_start

AFFINE = ["identity", "centre", "standard", "minmax", "maxabs", "robust", "pca", "pca_sphere"]
AFFINE += ["zca_sphere", "cholesky", "pca_cor", "zca_cor", "ledoit_wolf", "pareto"]
AFFINE += ["unit_variance"]
# Turned, this data's large features leave too few digits of the small ones for one function.
MIXED = ["random_rotation"]
BENT = ["quantile", "power", "unit_norm", "contrast"]


def job(scheme, start="same_function", **settings):
    return Job(
        breast_cancer(),
        costs.softmax,
        build("normalizer", options("normalizer", scheme) if isinstance(scheme, str) else scheme),
        build("optimizer", options("optimizer", "gradient_descent")),
        Settings((1e-6,), 1, start=start, theory="none", **settings),
    )


def first_costs(made):
    return [step.histories["train/cost"][0] for step in made.steps]


def first(made):
    return first_costs(run(made))[0]


def test_every_scheme_is_tried():
    every = {file.stem for file in (CONF / "normalizer").glob("*.yaml")}
    assert every == {*AFFINE, *BENT, *MIXED, "chain"}


@pytest.mark.parametrize(("precision", "share"), [("float64", 1e-12), ("float32", 1e-5)])
def test_the_same_function_has_the_same_cost_under_every_affine_scheme(precision, share):
    # Measured: 1e-14, and 2e-7 in float32.
    costs_there = [first(job(scheme, precision=precision)) for scheme in AFFINE]
    np.testing.assert_allclose(costs_there, costs_there[0], rtol=share)
    assert costs_there[0] != pytest.approx(np.log(2), rel=1e-3)


def test_the_same_function_has_the_same_cost_under_a_rotation_of_features_of_one_size():
    turned = {"_target_": "normbench.choices.chain", "schemes": ["standard", *MIXED]}
    assert first(job(turned)) == pytest.approx(first(job("standard")), rel=1e-12)


@pytest.mark.parametrize(
    ("cost", "scheme", "start"),
    [
        *((cost, name, "zeros") for cost in ("softmax", "squared_margin") for name in AFFINE[:3]),
        *(("perceptron", name, "same_function") for name in AFFINE),
        *(("multiclass_perceptron", name, "normal") for name in ("quantile", "unit_norm")),
    ],
)
def test_no_start_is_zeros_but_where_zero_weights_have_the_least_cost(cost, scheme, start):
    made = with_default_start(replace(job(scheme, "normal"), cost=getattr(costs, cost)))
    assert made.settings.start == start
    check(made)


@pytest.mark.parametrize("statistics", ["batch", "running", "window"])
def test_under_statistics_that_move_perceptrons_start_from_normal(statistics):
    moving = {"batch": 50, "statistics": statistics}
    moving |= {"window": 100} if statistics == "window" else {}
    made = with_default_start(replace(job("standard", "normal", **moving), cost=costs.perceptron))
    assert made.settings.start == "normal"


def test_several_starts_of_none_are_refused_where_they_are_zeros():
    several = job("standard", "normal", starts=3)
    with pytest.raises(UserError, match="starts=3: start=zeros is the same start every time"):
        with_default_start(several)
    made = with_default_start(replace(several, cost=costs.perceptron))
    assert (made.settings.start, made.settings.starts) == ("same_function", 3)


def test_perceptrons_are_compared_by_misclassified_points():
    made = with_default_start(replace(job("standard", "normal"), cost=costs.perceptron))
    sizes = (1e-7, 0.01, 1.0, 100.0)
    made = run(replace(made, settings=replace(made.settings, step_sizes=sizes, iterations=60)))
    counts = [step.histories["train/misclassifications"] for step in made.steps]
    ends = [count[-1] for count in counts]
    assert ends[made.best] == min(ends) < ends[0]
    # By the cost it would be another: the smallest weights have the lowest.
    assert made.best != np.argmin([step.histories["train/cost"][-1] for step in made.steps])
    goal = 0.1 * len(breast_cancer().y)
    assert made.findings.metrics["theory/target_1e-1"] == pytest.approx(goal)
    assert made.findings.tags["compared_by"] == "misclassifications"
    for step, count in zip(made.steps, counts):
        above = np.flatnonzero(count > goal)
        wanted = float(above[-1] + 1) if len(above) else 0.0
        reached = step.metrics["final/iterations_to_1e-1"]
        assert reached == wanted if wanted < len(count) else np.isnan(reached)


@pytest.mark.parametrize("scheme", BENT)
def test_a_scheme_that_is_no_affine_map_is_refused(scheme):
    with pytest.raises(UserError, match=r"normalizer \w+ is no affine map.*use start=zeros"):
        run(job(scheme))


class Fitted(StandardScaler):
    """Counts its fits, those of all copies together."""

    fits = 0

    def fit(self, x, y=None):
        Fitted.fits += 1
        return super().fit(x, y)


@pytest.mark.parametrize("start", ["same_function", None])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_scheme_is_fitted_once_whatever_the_start(start, precision, monkeypatch):
    monkeypatch.setattr(Fitted, "fits", 0)
    made = job("standard", start or "zeros", precision=precision)
    made = replace(made, normalizer=Fitted(), cost=costs.perceptron)
    made = with_default_start(made) if start is None else made
    assert made.settings.start == "same_function"
    check(made)
    run(made)
    assert Fitted.fits == 1


def test_a_job_on_other_points_is_fitted_to_them():
    """With the points of the first job, it would descend on these."""
    made = with_default_start(replace(job("standard", "zeros"), cost=costs.perceptron))
    data = replace(made.dataset, x=3 * made.dataset.x[:50], y=made.dataset.y[:50])
    other = run(replace(made, dataset=data))
    assert other.scheme.n_samples_seen_ == 50
    assert not replace(made, settings=made.settings).applied


@pytest.mark.parametrize(
    ("rule", "settings"), [("lbfgs", {}), ("gradient_descent", {"batch": 50}), ("momentum", {})]
)
def test_a_job_and_its_settings_stay_as_they_were_given(rule, settings):
    """Also where the optimizer or batches have no use for them."""
    given = Settings([0.1, 1.0], 2, records_per_pass=2, **settings)
    before = vars(given).copy()
    optimizer = build("optimizer", options("optimizer", rule))
    made = replace(job("standard", "zeros"), settings=given, optimizer=optimizer)
    parts = {field.name: getattr(made, field.name) for field in fields(made)}
    run(made)
    assert vars(given) == before
    assert all(getattr(made, name) is part for name, part in parts.items())
    assert not hasattr(made.normalizer, "mean_")


def weights_of(settings, model=None, scheme=None, x=None, z=None):
    """Return the starting weights of one score."""
    z = np.empty((1, 3)) if z is None else z
    data = SimpleNamespace(name="t", x=x)
    return starting.starting_weights(
        settings, model or Linear(), 1, Applied(scheme, z, z[:0], 0.0), data
    )


def test_a_constant_feature_has_no_weight_in_the_same_function():
    x = np.random.default_rng(3).standard_normal((30, 3)) * [1.0, 20.0, 0.0] + 7
    settings, functions = Settings((1.0,), start="same_function", starts=2), []
    for scheme in (FunctionTransformer(), StandardScaler()):
        z = scheme.fit_transform(x)
        weights = weights_of(settings, None, scheme, x, z)
        np.testing.assert_allclose(weights[..., 3], 0, atol=1e-12)
        functions.append(weights[..., 1:] @ z.T + weights[..., :1])
    np.testing.assert_allclose(*functions, rtol=1e-9)


def test_a_scheme_that_gives_up_what_two_points_alone_have_is_refused():
    x = np.random.default_rng(3).standard_normal((30, 3))
    x[:, 2] = 0
    x[:2, 2] = [1, -1]
    scheme = FunctionTransformer(lambda points: points[:, :2])
    settings = Settings((1.0,), start="same_function")
    with pytest.raises(UserError, match="does not keep all training points apart"):
        weights_of(settings, None, scheme, x, x[:, :2])


@pytest.mark.parametrize(
    ("start", "shape", "words"),
    [
        (((1, 2, 3),) * 4, (3, 4), r"has 4 x 3 weights; it takes 3 x 4 \(a bias and 3 features"),
        (tuple(range(12)), (3, 4), "has 12 weights; it takes 3 x 4"),
        ((1, 2), (1, 4), "has 2 weights; it takes 1 x 4"),
        ((1, 2), (401,), "has 2 weights; it takes 401$"),
    ],
)
def test_given_weights_have_the_shape_of_the_model(start, shape, words):
    with pytest.raises(UserError, match=words):
        weights_of(Settings((1.0,), start=start), SimpleNamespace(shape=lambda *_: shape))


@pytest.mark.parametrize(
    ("start", "shape"),
    [(((1, 2), (3, 4), (5, 6)), (3, 2)), ((1, 2), (1, 2)), (((1, 2),), (1, 2)), ((1, 2), (2,))],
)
def test_given_weights_of_one_score_need_no_row(start, shape):
    model = SimpleNamespace(shape=lambda *_: shape)
    weights = weights_of(Settings((1.0,), start=start), model)
    assert np.array_equal(weights, np.reshape(start, (1, *shape)))


def drawn(*draws, seed=3):
    settings = Settings((1.0,), start="normal", starts=2, seed=seed, draws=draws)
    return weights_of(settings)


def test_splits_and_draws_of_the_data_start_elsewhere():
    assert np.array_equal(drawn(1, 0), drawn(1, 0))
    different = [drawn(1, 0), drawn(2, 0), drawn(0, 1), drawn(0, 0), drawn(0, 0, seed=4)]
    for number, one in enumerate(different):
        for other in different[:number]:
            assert not np.any(one == other)


def test_the_first_draw_starts_where_the_seed_alone_does():
    plain = 0.1 * np.random.default_rng(3).standard_normal((2, 1, 4))
    assert np.array_equal(drawn(0, 0), plain)
    assert np.array_equal(drawn(), plain)
