"""Where runs start: one function under every scheme or the same weights; others a split."""

import numpy as np
import pytest

from normbench import costs
from normbench.choices import CONF, build, options
from normbench.datasets import UserError
from normbench.datasets.bundled import breast_cancer
from normbench.engine.settings import Settings
from normbench.engine.start import starts
from normbench.job import Job, check, run

AFFINE = ["identity", "centre", "standard", "minmax", "maxabs", "robust", "pca", "pca_sphere"]
AFFINE += ["zca_sphere", "cholesky", "pca_cor", "zca_cor", "ledoit_wolf"]
BENT = ["quantile", "power", "unit_norm"]


def job(scheme, start="same_function", **settings):
    return Job(
        breast_cancer(),
        costs.softmax,
        build("normalizer", options("normalizer", scheme) if isinstance(scheme, str) else scheme),
        build("optimizer", options("optimizer", "gradient_descent")),
        Settings((1e-6,), 1, start=start, theory="none", **settings),
    )


def first(made):
    return run(made).steps[0].histories["train/cost"][0]


def test_every_scheme_is_tried():
    every = {file.stem for file in (CONF / "normalizer").glob("*.yaml")}
    assert every == {*AFFINE, *BENT, "chain"}


@pytest.mark.parametrize(("precision", "share"), [("float64", 1e-12), ("float32", 1e-5)])
def test_the_same_function_has_the_same_cost_under_every_affine_scheme(precision, share):
    # Measured: 1e-14, and 2e-7 in float32.
    costs_there = [first(job(scheme, precision=precision)) for scheme in AFFINE]
    np.testing.assert_allclose(costs_there, costs_there[0], rtol=share)
    assert costs_there[0] != pytest.approx(np.log(2), rel=1e-3)


def test_the_same_weights_are_another_function_under_each_scheme():
    assert first(job("identity", "normal")) > 2 * first(job("standard", "normal"))
    notes = run(job("standard", "normal")).findings.tags["theory_note"]
    assert "another function under each" in notes
    assert "dropped" in run(job("standard")).findings.tags["theory_note"]


@pytest.mark.parametrize("scheme", BENT)
def test_a_scheme_that_is_no_affine_map_is_refused_before_the_job(scheme):
    with pytest.raises(UserError, match=r"normalizer \w+ is no affine map.*use start=zeros"):
        check(job(scheme))


def test_a_scheme_that_gives_points_up_is_refused_before_the_job():
    with pytest.raises(UserError, match="PCARotation does not keep all training points apart"):
        check(job(options("normalizer", "pca") | {"components": 3}))


def test_several_starts_are_several_functions():
    made = run(job("standard", starts=3))
    again = run(job("pca_sphere", starts=3))
    ends = [one.steps[0].starts["start/final_cost"] for one in (made, again)]
    assert len(set(ends[0])) == 3
    np.testing.assert_allclose(*ends, rtol=1e-2)


def drawn(*draws, seed=3):
    settings = Settings((1.0,), start="normal", starts=2, seed=seed, draws=draws)
    return starts(settings, (1, 4))


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
