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
    Normalizer,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from normbench import costs, names, optimizers
from normbench.choices import preconditioned
from normbench.datasets import make_dataset
from normbench.job import run
from normbench.measures.contract import FinishedJob, JudgedDescent
from normbench.measures.curvature import thresholds
from normbench.normalizers import Contrast, FeatureSelection, OnColumns, PCACorSphere, PCASphere
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
    ("spectrum", "told", "words"),
    [
        (Spectrum(np.array([4.0, 1.0])), {names.CONDITION: 4.0, names.RANK: 2}, ""),
        (Spectrum(np.array([4.0, 1.0]), lost=True), {names.CONDITION_LIMIT: LIMIT}, "is"),
        (Spectrum(np.array([4.0]), is_complete=False), {}, ""),
        (Spectrum(np.array([4.0]), is_complete=False, lost=True), {}, ""),
    ],
)
def test_only_what_is_known_of_a_spectrum_is_told(data, spectrum, told, words):
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
    assert words in "".join(found.notes)
    assert bool(words) == bool(found.notes)


def test_a_ridge_is_told_by_the_directions_that_it_touches(data, monkeypatch):
    x = data.x * [1.0, 0.1, 0.01]  # variances around 1, 0.01 and 0.0001
    small = make_dataset("x", x, data.y, source="arrays", class_names=["a", "b"])
    found = run(job(small, scheme=PCASphere(ridge=1e-3))).findings
    variances = np.linalg.eigvalsh(np.cov(x.T, bias=True))[::-1]
    left = variances / (variances + 1e-3)
    assert found.metrics[names.LIVE_DIRECTIONS.key] == 3
    assert found.metrics[names.RIDGE_TOUCHED.key] == 2
    assert found.metrics[names.RIDGE_SMALLEST.key] == pytest.approx(left[-1], rel=1e-9)
    assert found.metrics[names.RIDGE_SHARE.key] == pytest.approx(1e-3 / variances[0], rel=1e-9)
    directions, told = found.series[names.RIDGE_VARIANCE.key]
    assert list(directions) == [0, 1, 2]
    np.testing.assert_allclose(told, left, rtol=1e-9)  # measured: 2e-13
    for most, there in ((3, True), (2, False)):
        monkeypatch.setattr("normbench.measures.data.MAX_SERIES_DIRECTIONS", most)
        few = run(job(small, scheme=PCASphere(ridge=1e-3))).findings
        assert (names.RIDGE_VARIANCE.key in few.series) == there


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
        (PowerTransformer(), LARGE[:, :2], "a, b", ""),
        (on_first(PowerTransformer()), LARGE, "a", ""),
        (make_pipeline(StandardScaler(), PowerTransformer()), LARGE, "", ""),
        (FunctionTransformer(lambda x: x * [1, 1e-9, 1]), LARGE, "", ""),  # names no features
        (
            FunctionTransformer(lambda x: x * [1, 1e-9, 1], feature_names_out="one-to-one"),
            LARGE,
            "b",
            "",
        ),
        (MaxAbsScaler(), LARGE + np.array([0, 1.7e9, 0]), "b", ""),
        (Normalizer(), np.c_[LARGE[:, :1] * 1e10, LARGE[:, 1:]], "a, b, c", ""),
        (Contrast(), LARGE[:, :1], "a", ""),
        (QuantileTransformer(output_distribution="normal", n_quantiles=60), TINY, "a, b", ""),
        (MinMaxScaler(), TINY, "", "a, b"),
        (RobustScaler(), TINY, "", "a, b"),
        (MaxAbsScaler(), TINY, "", "a, b"),
        (MinMaxScaler(), TINY * [100, 1000, 1], "", ""),
        (StandardScaler(), TINY, "", ""),
        (StandardScaler(with_std=False), TINY, "", ""),
        (QuantileTransformer(n_quantiles=60), TINY, "", ""),
        (FunctionTransformer(), TINY, "", ""),
        (PCA(1), LARGE, "", ""),
        (PCASphere(), TINY, "", ""),
        (MinMaxScaler(), NORMAL * 1e12, "", ""),
    ],
)
@pytest.mark.parametrize("is_mapped", [False, True])
def test_features_that_a_scheme_loses_or_cannot_scale_are_named(
    scheme, x, lost, unscaled, is_mapped
):
    columns = {"feature_names": [*"abc"][: x.shape[1]], "class_names": ["no", "yes"]}
    made = make_dataset("x", x, np.arange(60) % 2, source="-", **columns)
    made = replace(made, x=door.mapped(x)) if is_mapped else made
    found = run(job(made, scheme=scheme, iterations=2, theory="none")).findings
    assert found.tags.get(names.LOST_NAMES.key, "") == lost
    assert found.tags.get(names.UNSCALED_NAMES.key, "") == unscaled
    for metric, told in ((names.FEATURES_LOST, lost), (names.FEATURES_UNSCALED, unscaled)):
        assert found.metrics.get(metric.key, 0) == len(told.split(", ")) * bool(told)
    if lost or unscaled:
        varying = np.count_nonzero(np.ptp(x, axis=0))
        assert found.metrics[names.FEATURES_VARYING.key] == varying


def test_faults_are_found_without_a_descent():
    made = make_dataset("x", TINY, np.arange(60) % 2, source="-", class_names=["no", "yes"])
    found = run(job(made, scheme=MinMaxScaler(), iterations=0, record=("points",))).findings
    assert found.metrics[names.FEATURES_UNSCALED.key] == 2


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


def test_what_a_scheme_drops_is_dead_whatever_its_variance(data):
    wide = make_dataset("wide", data.x * [10, 10, 1], data.y, source="-", class_names=["a", "b"])
    found = run(job(wide, scheme=PCASphere(rtol=0.1))).findings
    variances = np.linalg.eigvalsh(np.cov(wide.x.T, bias=True))
    assert found.metrics[names.DEAD_DIRECTIONS.key] == 1
    share = pytest.approx(variances[0] / variances.sum(), rel=1e-9)
    assert found.metrics[names.DEAD_VARIANCE.key] == share


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


def test_of_sphered_points_every_curvature_is_one(data):
    sphered = replace(data, x=PCASphere(ridge=0.0).fit_transform(data.x))
    metrics = run(job(sphered)).findings.metrics
    for metric in (names.LARGEST_RAW, names.LARGEST_CENTRED, names.LARGEST_STANDARD):
        assert metrics[metric.key] == pytest.approx(1.0, rel=1e-9)


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
    tried, again = [], JudgedDescent.descend_finer
    monkeypatch.setattr(
        JudgedDescent, "descend_finer", lambda *of: tried.append(of[1]) or again(*of)
    )
    made = job(data, costs.least_squares, theory=theory, refine=False)
    asked = replace(made, search=Search(critical=True))
    found = run(asked).findings.metrics
    known = found[names.THRESHOLD.key]
    assert np.isnan(known) == (theory == "none")
    assert tried[0][0] == pytest.approx((0.1 if theory == "none" else known) / 2)  # or of a step
    assert found[names.CRITICAL_DESCENTS.key] == len(tried)
    low, high = found[names.CRITICAL.key], found[names.CRITICAL_UPPER.key]
    assert low < high <= low * (1 + asked.search.width)
