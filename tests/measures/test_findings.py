"""What single measures find: predictions, curvatures, dead directions, and what schemes lose."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

from normbench import costs, names, optimizers
from normbench.choices import preconditioned
from normbench.datasets import make_dataset
from normbench.job import run
from normbench.measures import judged
from normbench.measures.contract import FinishedJob
from normbench.measures.descents import thresholds
from normbench.normalizers import FeatureSelection, OnColumns, PCACorSphere, PCASphere
from normbench.optimizers import gradient_descent
from normbench.results.words import reasons
from normbench.theory.analysis import Theory
from normbench.theory.spectra import LIMIT, Spectrum
from normbench.verdicts.search import Search
from tests import door
from tests.measures.test_measures import Bowl, data, job

__all__ = ["data"]  # a fixture


def test_the_median_of_several_starts_is_predicted(data):
    own = {"start": "normal", "start_scale": 3.0, "starts": 3}
    made = run(job(data, costs.least_squares, **own)).steps[0]
    history = made.histories[names.TRAIN_COST.key]
    np.testing.assert_allclose(
        made.series[names.PREDICTED_COST.key], history, rtol=1e-12
    )  # measured: 1e-14
    assert made.metrics[names.PREDICTION_ERROR.key] < 1e-12
    for target in names.TARGETS:
        counts = [made.metrics[name(target).key] for name in (names.predicted, names.reached)]
        assert counts[0] == counts[1] or counts[0] > 20


@pytest.mark.parametrize(
    ("spectrum", "told"),
    [
        (Spectrum(np.array([4.0, 1.0])), {names.CONDITION: 4.0, names.RANK: 2}),
        (Spectrum(np.array([4.0, 1.0]), lost=True), {names.CONDITION_LIMIT: LIMIT}),
        (Spectrum(np.array([4.0]), is_complete=False), {}),
    ],
)
def test_only_what_is_known_of_a_spectrum_is_told(data, spectrum, told):
    of = (names.CONDITION, names.RANK, names.CONDITION_LIMIT)
    here = SimpleNamespace(
        theory=Theory(spectrum, lipschitz=4.0),
        optimizer=gradient_descent(),
        plain=True,
        plan=door.plan(1),
        train=Bowl(),
    )
    found = thresholds.take(FinishedJob(data, None, data.x, None, here))
    assert {metric: found.metrics.get(metric.key) for metric in of} == {
        metric: told.get(metric) for metric in of
    }
    assert found.metrics[names.SPECTRUM_LARGEST.key] == 4


def on_first(scheme):
    """Return a scheme on the first feature alone."""
    columns = FeatureSelection([0])
    columns.select([0], ("a", "b", "c"))
    return OnColumns(scheme, columns)


NORMAL = np.random.default_rng(5).standard_normal((60, 3))
LARGE = np.exp(NORMAL) * [0.05, 2.0, 1.0] + [47.4, 1990.0, 0.0]  # latitude, year, rooms
TINY = NORMAL * [1e-16, 1e-17, 1.0] + [3e-16, 0.0, 3.0]


@pytest.mark.parametrize(
    ("scheme", "x", "lost", "unscaled"),
    [
        (PowerTransformer(), LARGE, "a, b", ""),
        (on_first(PowerTransformer()), LARGE, "a", ""),
        (FunctionTransformer(lambda x: x * [1, 1e-9, 1]), LARGE, "", ""),  # names no features
        (MaxAbsScaler(), LARGE + np.array([0, 1.7e9, 0]), "b", ""),
        (QuantileTransformer(output_distribution="normal", n_quantiles=60), TINY, "a, b", ""),
        (MinMaxScaler(), TINY, "", "a, b"),
        (StandardScaler(), TINY, "", ""),
        (PCA(1), LARGE, "", ""),
        (PCASphere(), TINY, "", ""),
    ],
)
def test_features_that_a_scheme_loses_or_cannot_scale_are_named(scheme, x, lost, unscaled):
    columns = {"feature_names": [*"abc"][: x.shape[1]], "class_names": ["no", "yes"]}
    made = make_dataset("x", x, np.arange(60) % 2, source="-", **columns)
    found = run(job(made, scheme=scheme, iterations=2, theory="none")).findings
    assert found.tags.get(names.LOST_NAMES.key, "") == lost
    assert found.tags.get(names.UNSCALED_NAMES.key, "") == unscaled
    for metric, told in ((names.FEATURES_LOST, lost), (names.FEATURES_UNSCALED, unscaled)):
        assert found.metrics.get(metric.key, 0) == len(told.split(", ")) * bool(told)
    if lost or unscaled:
        varying = np.count_nonzero(np.ptp(x, axis=0))
        assert found.metrics[names.FEATURES_VARYING.key] == varying


def test_of_many_lost_features_the_first_are_named(data):
    x = np.random.default_rng(0).standard_normal((80, 7)) + 100
    flat = FunctionTransformer(lambda x: 0 * x, feature_names_out="one-to-one")
    tall = make_dataset("x", x, data.y, source="-", class_names=["a", "b"])
    found = run(job(tall, scheme=flat)).findings
    first = ", ".join(tall.feature_names[:5])
    assert found.tags[names.LOST_NAMES.key] == f"{first} and 2 more"


def test_a_ridge_inside_a_chain_or_on_some_features_is_told(data):
    x = data.x * [1.0, 0.1, 0.01]
    small = make_dataset("x", x, data.y, source="arrays", class_names=["a", "b"])
    sphere = PCASphere(ridge=1e-3)
    chained = make_pipeline(StandardScaler(with_std=False), sphere)
    columns = FeatureSelection([0, 1, 2])
    columns.select([0, 1, 2], small.feature_names)
    for scheme in (chained, OnColumns(sphere, columns), OnColumns(chained, columns)):
        found = run(job(small, scheme=scheme)).findings
        assert found.metrics[names.RIDGE_TOUCHED.key] == 2


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
def test_directions_that_are_copies_are_dead(data, unit):
    twice = unit * np.column_stack([data.x, data.x[:, 0], np.full(80, 3.0)])
    found = run(job(make_dataset("x", twice, data.y, source="-", class_names=["a", "b"]))).findings
    assert found.metrics[names.DEAD_DIRECTIONS.key] == 2
    assert found.metrics[names.DEAD_VARIANCE.key] < 1e-12
    assert found.metrics[names.LOST_DIRECTIONS.key] == 0
    variances = np.linalg.eigvalsh(np.cov(twice.T, bias=True))[::-1]
    told = found.series[names.VARIANCE.key][1]
    np.testing.assert_allclose(told, variances, atol=1e-12 * variances[0])
    wanted = np.linalg.eigvalsh(np.corrcoef(twice[:, :-1].T))[-1]  # without the constant
    assert found.metrics[names.LARGEST_STANDARD.key] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(("scale", "lost"), [(1e9, 2), (1e4, 0)])
def test_directions_that_a_large_feature_hides_are_lost(data, scale, lost):
    """The covariance has 16 digits, the large feature's square has 18 more than the others'."""
    wide = make_dataset("x", data.x * [scale, 1, 1], data.y, source="-", class_names=["a", "b"])
    found = run(job(wide, scheme=PCASphere())).findings
    assert found.metrics[names.LOST_DIRECTIONS.key] == lost
    assert found.metrics[names.DEAD_DIRECTIONS.key] == lost
    kept = run(job(wide, scheme=PCACorSphere())).findings
    assert kept.metrics[names.LOST_DIRECTIONS.key] == 0
    told = [
        said.name
        for said in reasons.explain_scheme(reasons.SchemeRecord(found.metrics, found.tags))
    ]
    assert ("lost" in told) == (lost > 0)
    assert "dropped" not in told


def test_the_effective_rank_is_of_the_points_descended_on(data):
    found = run(job(data, scheme=PCASphere(ridge=0.0))).findings
    assert found.metrics[names.EFFECTIVE_RANK.key] == pytest.approx(3, rel=1e-9)
    unknown = run(job(data, scheme=PCASphere(ridge=0.0), theory="none")).findings
    assert names.EFFECTIVE_RANK.key not in unknown.metrics


def test_a_threshold_that_speaks_of_the_optimizer_has_no_note(data):
    words = "2/L speaks of plain gradient descent"
    for rule, said in ((gradient_descent(), False), (optimizers.momentum(), True)):
        found = run(replace(job(data), optimizer=rule)).findings
        assert (words in found.tags.get("theory_note", "")) == said


def test_the_sharpness_of_another_rule_has_a_note(data):
    for rule, said in ((gradient_descent(), False), (preconditioned("pca_sphere"), True)):
        found = run(replace(job(data, record=("sharpness",)), optimizer=rule)).findings
        assert names.SHARPNESS.key in found.series
        note = found.tags.get(names.NOTE.key, "")
        assert ("1 is no limit of this optimizer's steps" in note) == said


@pytest.mark.parametrize("theory", ["auto", "none"])
def test_the_critical_step_is_looked_for_from_half_of_the_threshold(data, theory, monkeypatch):
    tried, again = [], judged.judge_runs
    monkeypatch.setattr(judged, "judge_runs", lambda *of: tried.append(of[1]) or again(*of))
    made = job(data, costs.least_squares, theory=theory, refine=False)
    asked = replace(made, search=Search(critical=True))
    found = run(asked).findings.metrics
    known = found[names.THRESHOLD.key]
    assert np.isnan(known) == (theory == "none")
    _, *tried = tried  # but for the grid
    assert tried[0][0] == pytest.approx((0.1 if theory == "none" else known) / 2)  # or of a step
    assert found[names.CRITICAL_DESCENTS.key] == len(tried)
    low, high = found[names.CRITICAL.key], found[names.CRITICAL_UPPER.key]
    assert low < high <= low * (1 + asked.search.width)
