"""Statistics of a scheme that move with the batches, against a plain numpy loop."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.preprocessing import (
    MinMaxScaler,
    QuantileTransformer,
    StandardScaler,
)

from normbench import costs, optimizers
from normbench.datasets import UserError, make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, check, run
from normbench.normalizers import PCASphere, ZCASphere
from normbench.recording.resume.checkpoints import DescentFile
from tests.engine.test_batches import StoppedError, Updates

P, N, M, PASSES, STEP = 22, 3, 4, 3, 0.05


def points(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((P + 6, N)) * [1.0, 3.0, 10.0] + [0.0, 2.0, 5.0]
    return x, x @ [1.0, -2.0, 0.5] + rng.standard_normal(P + 6)


def job(scheme=None, l2=0.0, **settings):
    x, y = points()
    data = make_dataset("drawn", x[:P], y[:P], x_test=x[P:], y_test=y[P:], source="-")
    chosen = Settings((STEP,), **{"iterations": PASSES, "batch": M, **settings})
    rule = optimizers.gradient_descent()
    return Job(data, costs.least_squares, scheme or StandardScaler(), rule, chosen, l2=l2)


def standard(rows):
    """Return the map to z-scores by the statistics of rows."""
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    return lambda x: (x - mean) / np.where(deviation > 0, deviation, 1)


def zca(rows):
    """Return ZCA sphering by the statistics of rows."""
    mean = rows.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov((rows - mean).T, bias=True))
    return lambda x: (x - mean) @ (vectors / np.sqrt(values)) @ vectors.T


def minmax(rows):
    """Return the map to 0 to 1 by the extremes of rows."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    return lambda x: (x - low) / np.where(high > low, high - low, 1)


def loop(learn, kind, window, records=1):
    """Return the costs of training and test points: what the descent is compared to."""
    x, y = points()
    stream, w, train, test = [], np.zeros(N + 1), [], []
    updates = -(-P // M)

    def scheme(batch):
        rows = {"batch": batch, "window": stream[-window:], "running": sorted(set(stream))}[kind]
        return learn(x[rows])

    def record(apply):
        for costs_of, chosen in ((train, slice(P)), (test, slice(P, None))):
            scores = apply(x[chosen]) @ w[1:] + w[0]
            costs_of.append(np.mean((scores - y[chosen]) ** 2))

    ends = {k * updates // records for k in range(records)}
    first = np.random.default_rng([0, 0]).permutation(P)[:M]
    record(learn(x[:P]) if kind == "batch" else learn(x[first]))
    for n in range(PASSES):
        order = np.random.default_rng([0, n]).permutation(P)
        for k, batch in enumerate(np.split(order, range(M, P, M)), 1):
            stream += list(batch)
            apply = scheme(list(batch))
            z = np.column_stack([np.ones(len(batch)), apply(x[batch])])
            w = w - STEP * 2 * z.T @ (z @ w - y[batch]) / M
            if k % updates in ends:
                record(learn(x[:P]) if kind == "batch" else apply)
    return np.array([train, test])


CASES = [
    (StandardScaler(), standard, "batch", None),
    (StandardScaler(), standard, "running", None),
    (StandardScaler(), standard, "window", 7),
    (MinMaxScaler(), minmax, "running", None),
    (ZCASphere(ridge=0), zca, "running", None),
    (ZCASphere(ridge=0), zca, "window", 9),
]


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize(("scheme", "learn", "kind", "window"), CASES)
@pytest.mark.parametrize("records", [1, 3])
def test_moving_statistics_are_those_of_a_loop(scheme, learn, kind, window, records):
    outcome = run(job(scheme, statistics=kind, window=window, records_per_pass=records))
    histories = outcome.steps[0].histories
    expected = loop(learn, kind, window or 0, records)
    # Measured: 2e-13 of ZCA, else 4e-15.
    np.testing.assert_allclose(histories["train/cost"], expected[0], rtol=1e-11)
    np.testing.assert_allclose(histories["test/cost"], expected[1], rtol=1e-11)


def test_the_statistics_of_a_batch_of_all_points_are_the_fitted_ones():
    full = run(job(batch=P)).steps[0].histories["train/cost"]
    moving = run(job(batch=P, statistics="batch")).steps[0].histories["train/cost"]
    np.testing.assert_allclose(moving, full, rtol=1e-12)


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize(("kind", "window"), [("running", None), ("window", 6), ("batch", None)])
@pytest.mark.parametrize("order", ["shuffled", "replacement"])
def test_a_descent_that_is_cut_off_goes_on_to_the_bit(tmp_path, monkeypatch, kind, window, order):
    monkeypatch.setattr("normbench.recording.resume.checkpoints.os.fsync", lambda _: None)
    scheme = QuantileTransformer(n_quantiles=2) if kind == "batch" else StandardScaler()
    settings = {"statistics": kind, "window": window, "batch_order": order, "records_per_pass": 3}
    whole = run(job(scheme, **settings)).steps[0].histories["train/cost"]
    for looks in (2, 5):
        stopped = Updates(tmp_path, "ab" * 32, 60, looks=looks)
        with pytest.raises(StoppedError):
            run(job(scheme, **settings), checkpoint=stopped)
    resumed = run(job(scheme, **settings), checkpoint=DescentFile(tmp_path, "ab" * 32, 60))
    np.testing.assert_array_equal(resumed.steps[0].histories["train/cost"], whole)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"batch": None, "statistics": "batch"}, "statistics=batch: is of steps that see a batch"),
        (
            {"statistics": "moving"},
            "normalizer.statistics=moving: .*fitted, batch, running, window",
        ),
        ({"statistics": "window"}, "normalizer.window=null: .*normalizer.window=1000"),
        ({"window": 5}, "normalizer.window=5: .* for no other"),
        ({"statistics": "window", "window": 0}, "normalizer.window=0: "),
        ({"statistics": "running", "start": "same_function"}, "move with the statistics"),
    ],
)
def test_mistakes_are_told_in_a_line(settings, said):
    with pytest.raises(UserError, match=said) as error:
        check(job(**settings))
    assert "\n" not in str(error.value)


def test_a_scheme_that_refuses_a_batch_says_so():
    with pytest.raises(UserError, match=r"statistics=batch: PCASphere refuses .* a larger batch"):
        run(job(PCASphere(), statistics="batch", batch=1))
    with pytest.raises(UserError, match=r"cost.l2_in=transformed; use these"):
        check(replace(job(l2=0.1, statistics="batch"), l2_in="features"))
