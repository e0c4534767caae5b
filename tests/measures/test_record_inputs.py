"""Records in the space of the inputs: the curve, the features, the projection, and S S' / P = I."""

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from normbench.costs import least_squares, multiclass_softmax, softmax
from normbench.datasets import UserError, make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, check, run
from normbench.normalizers import PCARotation, PCASphere
from normbench.optimizers import gradient_descent

LINE = np.random.default_rng(7).uniform(2, 5, (40, 1))


def job(x, y=None, cost=least_squares, scheme=None, record=("fit",), classes=None, **settings):
    dataset = make_dataset("made", x, y, class_names=classes, source="-")
    settings = {"iterations": 200, "refine": False, **settings}
    chosen = Settings((0.4,), record=record, **settings)
    return Job(dataset, cost, scheme or StandardScaler(), gradient_descent(), chosen)


TWO_CLASSES = ["a", "b"]


@pytest.mark.parametrize(
    ("cost", "classes"),
    [(least_squares, None), (least_squares, TWO_CLASSES), (softmax, TWO_CLASSES)],
)
def test_a_curve_is_that_of_the_last_weights(cost, classes):
    y = (LINE[:, 0] > 3.5).astype(int)
    made = run(job(LINE, y, cost, classes=classes, iterations=2, record=("fit", "path"))).arrays
    x, (bias, slope) = made["fit"]["x"], made["path"]["weights"][-1, 0]
    scores = bias + slope * (x - LINE.mean()) / LINE.std()
    wanted = scores if cost is least_squares else 2 / (1 + np.exp(-scores)) - 1
    np.testing.assert_allclose(made["fit"]["prediction"], wanted, rtol=1e-9, atol=1e-12)
    beyond = 0.05 * np.ptp(LINE)  # to either side
    assert len(x) > 200  # so that no corner is seen
    assert x[[0, -1]] == pytest.approx([LINE.min() - beyond, LINE.max() + beyond])


def test_features_are_those_of_the_scheme_and_few():
    rng = np.random.default_rng(7)
    x = rng.standard_normal((2500, 40)) * np.arange(1, 41)
    parts = run(job(x, record=("features",), iterations=0)).arrays["features"]
    assert parts["values"].shape == (2000, 30)
    assert parts["all"] == 40
    # A sample of 2,000 of 2,500 points of variance 1: measured under 0.02 off.
    assert parts["values"].std(axis=0) == pytest.approx(np.ones(30), abs=0.1)


def test_the_projection_is_on_the_plane_of_the_first_components():
    rng = np.random.default_rng(7)
    x = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 3)) + 4
    outcome = run(job(x, record=("projection",), iterations=0, scheme=PCARotation(components=2)))
    parts = outcome.arrays["projection"]
    centred = x - x.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    expected = x.mean(axis=0) + centred @ directions[:2].T @ directions[:2]
    # Two decompositions of a matrix around 1: measured 4e-15 off.
    assert parts["back"] == pytest.approx(expected, abs=1e-12)
    values = np.linalg.eigvalsh(centred.T @ centred)
    assert parts["lost"] == pytest.approx(values[0] / values.sum(), rel=1e-9)
    assert outcome.findings.metrics["theory/variance_lost"] == parts["lost"]


def test_the_identity_gap_is_nothing_after_sphering_and_more_before():
    rng = np.random.default_rng(7)
    x = rng.standard_normal((50, 2)) @ [[2.0, 1.0], [0.0, 0.5]] + 3
    gaps = {
        scheme: run(job(x, record=("spectrum",), iterations=0, scheme=made)).findings.metrics[
            "theory/identity_gap"
        ]
        for scheme, made in (("identity", FunctionTransformer()), ("sphere", PCASphere(ridge=0)))
    }
    assert gaps["sphere"] < 1e-12  # measured 3e-15
    assert gaps["identity"] == pytest.approx(np.abs(x.T @ x / 50 - np.eye(2)).max(), rel=1e-12)


def test_the_covariances_condition_knows_no_rotation_no_scale_and_no_dead_direction():
    rng = np.random.default_rng(7)
    x = rng.standard_normal((50, 3)) @ np.diag([3.0, 1.0, 0.1]) + 5
    values = np.linalg.eigvalsh(np.cov(x.T))
    turned = x @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    dead = np.insert(x, 1, 7.0, axis=1)
    for points in (x, 100 * x, turned, dead, x - 40):
        found = run(
            job(points, record=("points",), iterations=0, scheme=FunctionTransformer())
        ).findings.metrics
        # Two decompositions, of a condition number of 1e3: measured 3e-13 off.
        expected = pytest.approx(values[-1] / values[0], rel=1e-9)
        assert found["theory/covariance_condition"] == expected
    huge = FunctionTransformer(lambda points: 1e160 * points)  # whose squares overflow
    found = run(job(x, record=("points",), iterations=0, scheme=huge)).findings.metrics
    assert found["theory/covariance_condition"] == pytest.approx(values[-1] / values[0], rel=1e-9)
    sphered = job(x, record=("points",), iterations=0, scheme=PCASphere(ridge=0))
    assert run(sphered).findings.metrics["theory/covariance_condition"] == pytest.approx(1)


def test_records_of_inputs_that_cannot_be_made_are_refused():
    rng = np.random.default_rng(7)
    y = np.arange(40) % 3
    wide = rng.standard_normal((40, 4))
    two = rng.standard_normal((40, 2))
    for wrong, words in (
        (job(two, two[:, 0]), "record=fit: needs 1 features"),
        (
            job(LINE, y, multiclass_softmax, classes=list("abc")),
            "needs real targets or two classes; .*1 features, and 3 classes",
        ),
        (job(LINE, LINE[:, 0], iterations=0), "record=fit: is of a descent"),
        (job(wide, record=("projection",), iterations=0), "needs 2 to 3 features"),
        (
            job(two, record=("projection",), iterations=0, scheme=Normalizer()),
            "an inverse_transform.* the normalizer is Normalizer",
        ),
    ):
        with pytest.raises(UserError, match=words):
            check(wrong)
