"""Points that stand for a plane, and a point as a sum of components."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench.costs import least_squares
from normbench.datasets import UserError, make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.normalizers import PCARotation, RandomRotation, ZCASphere
from normbench.optimizers import gradient_descent
from normbench.record.identity import covers, job_digest

X = np.random.default_rng(4).standard_normal((200, 5)) * [1, 3, 0.5, 2, 1] + 1


def arrays(word, scheme=None, x=X, **more):
    data = make_dataset("made", x, source="-")
    settings = Settings((1.0,), iterations=0, record=(word,), **more)
    done = run(Job(data, least_squares, scheme or StandardScaler(), gradient_descent(), settings))
    return done.arrays[word]


def test_exemplars_are_different_points_near_the_quantiles_in_reading_order():
    parts = arrays("exemplars", PCARotation())
    z = PCARotation().fit_transform(X)
    assert len(set(parts["place"].tolist())) == 25
    assert parts["at"] == pytest.approx(z[parts["place"], :2])
    assert parts["images"] == pytest.approx(X[parts["place"]], rel=1e-6)
    first, second = parts["wanted"][:, 0].reshape(5, 5), parts["wanted"][:, 1].reshape(5, 5)
    assert (np.diff(first, axis=1) > 0).all()
    assert (np.diff(second, axis=0) < 0).all()
    quantiles = np.quantile(z[:, :2], [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
    assert first[0] == pytest.approx(quantiles[:, 0])
    assert second[::-1, 0] == pytest.approx(quantiles[:, 1])
    away = (parts["at"] - parts["wanted"]) / z[:, :2].std(axis=0)
    assert np.linalg.norm(away, axis=1).max() < 1  # of 200 points


def test_exemplars_are_along_the_coordinates_of_the_largest_variance():
    parts = arrays("exemplars", FunctionTransformer())
    assert parts["at"] == pytest.approx(X[parts["place"]][:, [1, 3]])


@pytest.mark.parametrize("x", [X[:24], X[:, :1]])
def test_too_few_points_or_features_are_refused(x):
    with pytest.raises(
        UserError,
        match=r"record=exemplars: needs (at least 25 points|2 to 4096 features); made has",
    ):
        arrays("exemplars", x=x)


@pytest.mark.parametrize("scheme", [PCARotation(components=3), ZCASphere(), StandardScaler()])
def test_the_mean_and_weighted_components_are_the_point_built_up(scheme):
    parts = arrays("components", scheme, shown_point=7)
    built = parts["origin"] + parts["weights"] @ parts["components"]
    assert built == pytest.approx(parts["built"][-1], rel=1e-5, abs=1e-5)  # float32
    assert parts["original"] == pytest.approx(X[7], rel=1e-6)
    back = scheme.inverse_transform(scheme.fit_transform(X))[7]
    assert built == pytest.approx(back, rel=1e-5, abs=1e-5)


def test_the_share_is_what_so_many_coordinates_explain_of_the_inputs():
    parts = arrays("components", PCARotation(components=3))
    ratio = PCA(3).fit(X).explained_variance_ratio_
    assert parts["share"] == pytest.approx([0, *np.cumsum(ratio)], abs=1e-12)
    assert parts["count"].tolist() == [0, 1, 2, 3]


def test_no_share_of_a_chain_that_mixes_correlated_coordinates_is_above_all_of_the_inputs():
    """The shifts of its coordinates are not orthogonal; added up, they were 110 percent."""
    x = X @ np.random.default_rng(7).standard_normal((5, 5))
    scheme = make_pipeline(StandardScaler(), RandomRotation(seed=4))
    parts = arrays("components", scheme, x=x)
    z = scheme.fit_transform(x)
    alone = [scheme.inverse_transform(np.where(np.arange(5) == n, z, 0.0)) for n in range(5)]
    order = np.argsort([-points.var(axis=0).sum() for points in alone])
    for count, share in enumerate(parts["share"]):
        built = scheme.inverse_transform(np.where(np.isin(np.arange(5), order[:count]), z, 0.0))
        missing = (x - built).var(axis=0).sum() / x.var(axis=0).sum()
        assert share == pytest.approx(1 - missing, abs=1e-9)
    assert parts["share"][-1] == pytest.approx(1)


def test_a_shown_point_that_is_not_there_is_refused():
    with pytest.raises(UserError, match="shown_point=200: made has 200 training points"):
        arrays("components", shown_point=200)
    with pytest.raises(UserError, match="shown_point=-1: must be 0 or more"):
        arrays("components", shown_point=-1)


def test_a_job_with_another_shown_point_is_another_job():
    shown, other = ({"record": "[components]", "shown_point": n} for n in (0, 7))
    assert job_digest("a", shown) != job_digest("a", other)
    assert not covers(shown, other)
    assert covers(shown, {"record": "[]", "shown_point": 0})
