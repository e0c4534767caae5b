"""What several formulas make of the same points: judged as plain numpy judges them."""

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from normbench.costs import least_squares
from normbench.datasets import UserError, make_dataset
from normbench.datasets.made import broken
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.measures.points import judge_formula
from normbench.normalizers.whitening import FORMULAS
from normbench.optimizers import gradient_descent


def found(data):
    settings = Settings((1.0,), iterations=0, record=("formulas",))
    job = Job(data, least_squares, FunctionTransformer(), gradient_descent(), settings)
    parts = run(job).arrays["formulas"]
    names = list(parts.pop("formula"))
    return {name: {key: parts[key][n] for key in parts} for n, name in enumerate(names)}


def test_a_constant_feature_is_0_over_0_in_the_textbook_s_formula_alone():
    parts = found(broken("constant"))
    assert [np.isnan(parts[name]["off"]) for name in FORMULAS] == [True] + [False] * 4
    assert parts["standard_scikit"]["off"] < 1e-12
    assert parts["sphere_ours"]["off"] < 1e-5


def test_sound_points_are_off_by_the_ridge_and_by_what_is_divided_by():
    parts = found(broken("sound"))
    for name in ("sphere_textbook", "sphere_ours"):
        assert parts[name]["off"] == pytest.approx(1e-7 / (0.01 + 1e-7), rel=1e-6)
        assert parts[name]["iterations"] == 1
    assert parts["sphere_scikit"]["off"] == pytest.approx(1 / 200)
    assert max(parts[name]["off"] for name in ("standard_textbook", "standard_scikit")) < 1e-12


def test_ours_alone_stands_all_that_breaks_others():
    for kind in ("constant", "duplicate", "few", "offset", "float32"):
        ours = found(broken(kind, 1e6))["sphere_ours"]
        assert ours["iterations"] == 1, kind
        assert max(ours["off"], ours["mean"]) < 1e-6, kind


def test_a_decomposition_that_fails_is_not_finite_and_the_others_are_judged():
    parts = found(broken("float32", 1e30))  # whose squares float32 does not hold
    assert np.isnan(parts["sphere_textbook"]["off"])
    assert parts["sphere_ours"]["iterations"] == 1


def test_what_the_promise_leaves_out_counts_as_off():
    x, y = broken("sound").x, np.resize([-1.0, 1.0], 200)
    constant = np.c_[x[:, :3], np.ones(200)]
    given = (constant - constant.mean(0)) / np.where(constant.std(0) > 0, constant.std(0), 1)
    assert judge_formula(lambda x: given, constant, y, True)[1] == pytest.approx(0, abs=1e-12)
    given[:, 3] = 3 * y  # of variance 9, where there should be none; the mean is 0 still
    assert judge_formula(lambda x: given, constant, y, True)[1] == pytest.approx(9)
    whole = FORMULAS["sphere_ours"](constant)
    whole[:, 3] = 0.5 * y
    assert judge_formula(lambda x: whole, constant, y, False)[1] == pytest.approx(0.25, abs=0.02)
    assert judge_formula(lambda x: whole + 2, constant, y, False)[0] == pytest.approx(2, abs=1e-9)


def test_the_iterations_are_those_of_a_descent_step_by_step():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((50, 4)) * [3, 1, 0.5, 0.2] + 1
    y = x @ [1, -2, 3, 4] + rng.standard_normal(50)
    y -= y.mean()
    points = np.c_[np.ones(50), x]
    best = np.linalg.lstsq(points, y, rcond=None)[0]
    least = np.sum((points @ best - y) ** 2)
    w, step = np.zeros(5), 1 / np.linalg.norm(points, 2) ** 2
    count = 0
    while np.sum((points @ w - y) ** 2) - least > 0.01 * (np.sum(y**2) - least):
        w -= step * points.T @ (points @ w - y)
        count += 1
    assert 1 < count < 999
    assert judge_formula(lambda x: x, x, y, True)[2] == count


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (
            np.ones((9, 257)),
            np.arange(9.0),
            "needs 1 to 256 features; made has 9",
        ),
        (np.eye(9), None, "needs targets; .* and no targets"),
    ],
)
def test_what_cannot_be_judged_is_refused(x, y, words):
    with pytest.raises(UserError, match=f"record=formulas: {words}"):
        found(make_dataset("made", x, y, source="-"))


def test_a_scheme_that_does_not_centre_is_off_by_its_spread_alone():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 3)) @ np.diag([3.0, 1.0, 0.2]) + [5.0, 0.0, -2.0]
    y = x[:, 0] - x[:, 0].mean()
    centred = x - x.mean(axis=0)
    sphered = np.linalg.svd(centred, full_matrices=False)[0] * np.sqrt(len(x))
    shift = np.array([7.0, 0.0, 0.0])
    means, off, *_ = judge_formula(lambda x: sphered + shift, x, y, standard=False)
    assert means == pytest.approx(7)
    assert off < 1e-12  # covariances are of deviations
    assert judge_formula(lambda x: 2 * sphered + shift, x, y, standard=False)[1] == pytest.approx(3)
    scaled = centred / x.std(axis=0)
    assert judge_formula(lambda x: scaled + shift, x, y, standard=True)[1] < 1e-12
    assert judge_formula(lambda x: 2 * scaled, x, y, standard=True)[1] == pytest.approx(3)
