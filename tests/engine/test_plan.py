"""The plan of a descent: minibatches, statistics that move with them, and schedules."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    QuantileTransformer,
    StandardScaler,
)

from normbench import costs, optimizers
from normbench.choices import build, options
from normbench.datasets import UserError, make_dataset
from normbench.engine.descent import SavedDescents
from normbench.engine.settings import Settings
from normbench.job import Job, check, run
from normbench.models import Mlp
from normbench.normalizers import PCASphere, ZCASphere
from normbench.settings import DESCENT_PART, identity_params
from tests import door
from tests.cases import names
from tests.door import Batches, DescentFile, descend

P, N, PASSES = 23, 4, 3
STEP_SIZES = (0.01, 0.1)


def points(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((P, N))
    return x, x @ np.arange(1.0, N + 1) + rng.standard_normal(P)


def job(x, y, cost=costs.least_squares, optimizer=None, scheme=None, **settings):
    labels = None if cost is costs.least_squares else ["a", "b"]
    data = make_dataset("drawn", x, y if labels is None else y > 0, class_names=labels, source="-")
    chosen = Settings(STEP_SIZES, **{"iterations": PASSES, "batch": 5, **settings})
    rule = optimizer or optimizers.gradient_descent()
    return Job(data, cost, scheme or FunctionTransformer(), rule, chosen)


def history(outcome, number=1):
    return outcome.steps[number].histories["train/cost"]


def slopes(w, x, y, logistic):
    """Return the gradient of the sum of the cost over points `[1 x]`."""
    s = x @ w
    return -x.T @ (y / (1 + np.exp(y * s))) if logistic else 2 * x.T @ (s - y)


def costs_of(w, x, y, logistic):
    s = x @ w
    return np.mean(np.logaddexp(0, -y * s) if logistic else (s - y) ** 2)


def loop(x, y, a, m, order, seed=0, logistic=False, passes=PASSES, l2=0.0, momentum=0.0):
    """Return the costs at the ends of the passes: the ten lines that the descent is compared to."""
    x, w, history = np.column_stack([np.ones(len(x)), x]), np.zeros(x.shape[1] + 1), []
    before = w
    for n in range(passes + 1):
        history.append(costs_of(w, x, y, logistic) + l2 * w[1:] @ w[1:])
        rng = np.random.default_rng([seed, 0 if order == "once" else n])
        rows = np.arange(len(x)) if order == "cyclic" else rng.permutation(len(x))
        if order == "replacement":
            rows = np.random.default_rng([seed, n]).integers(0, len(x), len(x))
        for batch in np.split(rows, range(m, len(rows), m)):
            g = slopes(w, x[batch], y[batch], logistic) / m
            g[1:] += 2 * l2 * len(batch) / m * w[1:]
            w, before = w - a * g + momentum * (w - before), w
    return np.array(history)


TEN = [
    ("shuffled", 5, {}),
    ("shuffled", 1, {}),
    ("shuffled", 23, {}),
    ("once", 5, {}),
    ("cyclic", 4, {}),
    ("replacement", 6, {}),
    ("shuffled", 7, {"seed": 3}),
    ("shuffled", 5, {"logistic": True}),
    ("cyclic", 3, {"l2": 0.05}),
    ("once", 2, {"momentum": 0.5}),
]


@pytest.mark.parametrize(("order", "m", "more"), TEN)
def test_histories_are_those_of_a_loop(order, m, more):
    x, y = points()
    y = np.where(y > 0, 1.0, -1.0) if more.get("logistic") else y
    rule = optimizers.momentum(more["momentum"]) if "momentum" in more else None
    cost = costs.softmax if more.get("logistic") else costs.least_squares
    chosen = {"batch": m, "batch_order": order, "batch_seed": more.get("seed", 0)}
    outcome = run(replace(job(x, y, cost, rule, **chosen), l2=more.get("l2", 0.0)))
    for number, a in enumerate(STEP_SIZES):
        # Measured: 2e-15.
        theirs = loop(x, y, a, m, order, **more)
        np.testing.assert_allclose(history(outcome, number), theirs, rtol=1e-12)


@pytest.mark.parametrize("logistic", [True, False])
def test_a_batch_of_one_in_the_points_own_order_is_scikit_learns(logistic):
    """Its squared error has a factor 1/2: half of our step size is the same step."""
    x, y = points()
    y = np.where(y > 0, 1.0, -1.0) if logistic else y
    common = {"alpha": 0.0, "penalty": None, "shuffle": False, "max_iter": PASSES, "tol": None}
    common |= {"learning_rate": "constant", "eta0": 0.1 if logistic else 0.2}
    theirs = SGDClassifier(loss="log_loss", **common) if logistic else SGDRegressor(**common)
    theirs.fit(x, y)
    weights = np.r_[theirs.intercept_, theirs.coef_.ravel()]
    cost = costs.softmax if logistic else costs.least_squares
    mine = history(run(job(x, y, cost, batch=1, batch_order="cyclic")))
    extended = np.column_stack([np.ones(P), x])
    assert mine[-1] == pytest.approx(costs_of(weights, extended, y, logistic), rel=1e-12)


def test_the_batch_of_all_points_is_the_full_batch():
    x, y = points()
    full = run(job(x, y, batch=None))
    np.testing.assert_allclose(history(run(job(x, y, batch=P))), history(full), rtol=1e-12)


def test_no_batch_leaves_a_job_as_it_is():
    """The settings of its descent know nothing of batches."""

    def descent(**changes):
        return identity_params(DESCENT_PART, {**params, **changes})

    params = {"cost": "softmax", "iterations": 5, "refine": "auto", "shadows": True, "seed": 0}
    unset = {"batch": None, "batch_order": "shuffled", "batch_seed": 0, "records_per_pass": 1}
    assert descent(**unset) == descent()
    batched = {**unset, "batch": 5}
    others = ({"batch": 6}, {"batch_order": "once"}, {"batch_seed": 1}, {"records_per_pass": 2})
    every = [descent(), descent(**batched)]
    every += [descent(**{**batched, **other}) for other in others]
    assert len({str(each) for each in every}) == 6
    cyclic = {**batched, "batch_order": "cyclic"}
    assert descent(**cyclic) == descent(**{**cyclic, "batch_seed": 9})
    assert descent(**batched) == descent(**{**batched, "refine": False})


def test_no_smaller_problem_stands_in_for_a_batch():
    """Data for which the rows of R, or the span of the points, would take less work."""
    x, y = points()
    many = np.tile(x, (20, 1)), np.tile(y, 20)
    few = np.random.default_rng(1).standard_normal((P, 300)) / 20, y
    for wide in (many, few):
        mine = history(run(job(*wide, iterations=30)))
        np.testing.assert_allclose(mine, loop(*wide, 0.1, 5, "shuffled", passes=30), rtol=1e-9)
        assert not np.allclose(mine[1:], history(run(job(*wide, iterations=30, batch=None)))[1:])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"batch": 0}, "batch=0: .*1 or more, of points, or null for all"),
        ({"batch": 2.5}, "batch=2.5: "),
        ({"batch_order": "random"}, "batch_order=random: .*shuffled, once, cyclic, replacement"),
        ({"records_per_pass": 0}, "records_per_pass=0: "),
    ],
)
def test_mistakes_are_told_in_a_line(settings, said):
    with pytest.raises(UserError, match=said) as error:
        check(job(*points(), **settings))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("order", ["shuffled", "once", "cyclic", "replacement"])
def test_a_pass_sees_every_point_as_its_order_says(order):
    batches = Batches(P, 3, order, seed=7)
    passes = []
    for n in range(3):
        updates = range(n * batches.updates_per_pass, (n + 1) * batches.updates_per_pass)
        rows = [batches.points_of(update) for update in updates]
        assert sorted(map(len, rows)) == [2, *[3] * 7]
        passes.append(np.concatenate(rows))
    repeats = order == "replacement"
    for rows in passes:
        assert len(rows) == P
        assert (len(set(rows)) < P) == repeats
    assert np.array_equal(passes[0], passes[1]) == (order in ("once", "cyclic"))
    assert np.array_equal(passes[0], np.arange(P)) == (order == "cyclic")


def test_a_pass_may_be_recorded_several_times():
    x, y = points()
    assert len(history(run(job(x, y, batch=None, records_per_pass=5)))) == PASSES + 1
    coarse, fine = (run(job(x, y, records_per_pass=k, iterations=12)) for k in (1, 5))
    assert len(history(fine)) == 61
    np.testing.assert_allclose(history(fine)[::5], history(coarse), rtol=1e-12)
    few = Batches(P, 5, records=2)
    assert [few.updates_before(record) for record in range(5)] == [0, 2, 5, 7, 10]
    for key in ("final/iterations_to_1e-1", "final/iterations_to_1e-2"):
        mine, theirs = (outcome.steps[1].metrics[key] for outcome in (fine, coarse))
        assert mine <= theirs
        assert mine * 5 == round(mine * 5)
    assert fine.seconds_a_step > 0


class StoppedError(Exception):
    """What ends a descent at once, as a kill does."""


class Updates(DescentFile):
    """Keeps the state at every look, and stops the descent after some."""

    def __init__(self, *arguments, looks):
        super().__init__(*arguments)
        self.left = looks

    def due(self):
        return True

    def save(self, arrays):
        super().save(arrays)
        self.left -= 1
        if not self.left:
            raise StoppedError


def descended(sizes, plan, checkpoint=None):
    """Return the histories of a descent with momentum from small weights."""
    start, rule = np.full((len(sizes), 1, N + 1), 0.1), optimizers.momentum()
    train = door.problem(costs.least_squares, *points(), False)
    saved = checkpoint and SavedDescents(checkpoint)
    return descend(train, None, rule, start, np.array(sizes), plan, saved=saved)


@pytest.mark.parametrize("order", ["shuffled", "replacement"])
def test_a_descent_that_is_cut_off_goes_on_to_the_bit(tmp_path, order, monkeypatch):
    monkeypatch.setattr("normbench.results.store.job_records.os.fsync", lambda _: None)
    asked = [1e-3, 0.1, 1e30], door.plan(8, Batches(P, 4, order, records=2))
    wanted = descended(*asked)
    assert wanted.diverged_at[2] > 0
    for looks, record in ((2, 2), (4, 5), (3, 7)):
        with pytest.raises(StoppedError):
            descended(*asked, Updates(tmp_path, "ab" * 32, 60, looks=looks))
        arrays = DescentFile(tmp_path, "ab" * 32, 60).resume(dict)
        assert [int(v) for name, v in arrays.items() if name.endswith("/iteration")] == [record]
    found = descended(*asked, DescentFile(tmp_path, "ab" * 32, 60))
    np.testing.assert_array_equal(found.cost, wanted.cost)
    np.testing.assert_array_equal(found.weights, wanted.weights)


@pytest.mark.parametrize("is_own", [False, True])
def test_threads_share_a_batch(monkeypatch, is_own):
    """Also of a cost of one's own, which stays on one thread."""
    x, y = points()
    y = np.where(y > 0, 1.0, -1.0)
    cost = (lambda scores, targets: costs.softmax(scores, targets)) if is_own else costs.softmax
    door.share_work(monkeypatch, 2, 8 * (N + 2), 3)
    mine = history(run(job(x, y, cost)))
    np.testing.assert_allclose(mine, loop(x, y, 0.1, 5, "shuffled", logistic=True), rtol=1e-12)


# Step sizes that shrink on a schedule.

COUNT, STEPS, SIZE = 20, 7, 0.05
OPTIMIZERS = [name for name in names("optimizer") if name not in ("lbfgs", "preconditioned")]


def scheduled_job(optimizer=None, model=None, step_size=SIZE, **settings):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((COUNT, 2))
    data = make_dataset("drawn", x, x @ [1.0, -2.0] + rng.standard_normal(COUNT), source="-")
    chosen = Settings((step_size,), **{"iterations": STEPS, "theory": "none", **settings})
    rule = optimizer or optimizers.gradient_descent()
    return Job(data, costs.least_squares, FunctionTransformer(), rule, chosen, model=model)


def first_history(outcome):
    return outcome.steps[0].histories["train/cost"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_takes_the_steps_of_its_schedule(name):
    """Up to the first change it is the rule itself; a factor near 1 changes nothing visible."""
    rule = build("optimizer", options("optimizer", name))
    plain = first_history(run(scheduled_job(rule)))
    scheduled = first_history(run(scheduled_job(rule, step_schedule=(3, 0.1))))
    np.testing.assert_array_equal(scheduled[:4], plain[:4])
    assert not np.allclose(scheduled[4:], plain[4:], rtol=1e-9, atol=0)
    hardly = first_history(run(scheduled_job(rule, step_schedule=(3, 1 - 1e-13))))
    np.testing.assert_allclose(hardly, plain, rtol=1e-9)


@pytest.mark.parametrize("batch", [None, 6])
def test_the_step_size_is_multiplied_after_so_many_passes(batch):
    settings = {"batch": batch, "batch_order": "cyclic"}
    small = scheduled_job(step_schedule=(2, 0.5), iterations=5, **settings)
    x, y = np.insert(small.dataset.x, 0, 1, axis=1), small.dataset.y
    weights, size, expected = np.zeros(3), batch or COUNT, []
    for number in range(6):
        expected.append(np.mean((x @ weights - y) ** 2))
        for first in range(0, COUNT, size):
            rows, targets = x[first : first + size], y[first : first + size]
            gradient = 2 * rows.T @ (rows @ weights - targets) / size
            weights = weights - SIZE * 0.5 ** (number // 2) * gradient
    np.testing.assert_allclose(first_history(run(small)), expected, rtol=1e-10)


def test_gains_step_by_the_schedule_or_by_their_own_size():
    model = Mlp([3], normalize="batch", affine_step=0.01)
    outcome = run(scheduled_job(model=model, start="normal", step_schedule=(2, 0.5)))
    plain = run(scheduled_job(model=model, start="normal"))
    np.testing.assert_array_equal(first_history(outcome)[:3], first_history(plain)[:3])
    assert not np.allclose(first_history(outcome)[3:], first_history(plain)[3:], rtol=1e-9, atol=0)


@pytest.mark.parametrize("wrong", [3, [3], [0, 0.5], [3, 1], [3, 0], [2.5, 0.5], "3,0.5"])
def test_a_schedule_is_passes_and_a_factor(wrong):
    with pytest.raises(UserError, match="step_schedule="):
        scheduled_job(step_schedule=wrong)


# Statistics of a scheme that move with the batches, against a plain numpy loop.

MOVED, FEATURES, BATCH, STEP = 22, 3, 4, 0.05


def moving_points(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((MOVED + 6, FEATURES)) * [1.0, 3.0, 10.0] + [0.0, 2.0, 5.0]
    return x, x @ [1.0, -2.0, 0.5] + rng.standard_normal(MOVED + 6)


def moving_job(scheme=None, l2=0.0, **settings):
    x, y = moving_points()
    data = make_dataset(
        "drawn", x[:MOVED], y[:MOVED], x_test=x[MOVED:], y_test=y[MOVED:], source="-"
    )
    chosen = Settings((STEP,), **{"iterations": PASSES, "batch": BATCH, **settings})
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


def moving_loop(learn, kind, window, records=1):
    """Return the costs of training and test moving_points: what the descent is compared to."""
    x, y = moving_points()
    stream, w, train, test = [], np.zeros(FEATURES + 1), [], []
    updates = -(-MOVED // BATCH)

    def scheme(batch):
        rows = {"batch": batch, "window": stream[-window:], "running": sorted(set(stream))}[kind]
        return learn(x[rows])

    def record(apply):
        for costs_of, chosen in ((train, slice(MOVED)), (test, slice(MOVED, None))):
            scores = apply(x[chosen]) @ w[1:] + w[0]
            costs_of.append(np.mean((scores - y[chosen]) ** 2))

    ends = {k * updates // records for k in range(records)}
    first = np.random.default_rng([0, 0]).permutation(MOVED)[:BATCH]
    record(learn(x[:MOVED]) if kind == "batch" else learn(x[first]))
    for n in range(PASSES):
        order = np.random.default_rng([0, n]).permutation(MOVED)
        for k, batch in enumerate(np.split(order, range(BATCH, MOVED, BATCH)), 1):
            stream += list(batch)
            apply = scheme(list(batch))
            z = np.column_stack([np.ones(len(batch)), apply(x[batch])])
            w = w - STEP * 2 * z.T @ (z @ w - y[batch]) / BATCH
            if k % updates in ends:
                record(learn(x[:MOVED]) if kind == "batch" else apply)
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
    outcome = run(moving_job(scheme, statistics=kind, window=window, records_per_pass=records))
    histories = outcome.steps[0].histories
    expected = moving_loop(learn, kind, window or 0, records)
    # Measured: 2e-13 of ZCA, else 4e-15.
    np.testing.assert_allclose(histories["train/cost"], expected[0], rtol=1e-11)
    np.testing.assert_allclose(histories["test/cost"], expected[1], rtol=1e-11)


def test_the_statistics_of_a_batch_of_all_points_are_the_fitted_ones():
    full = run(moving_job(batch=MOVED)).steps[0].histories["train/cost"]
    moving = run(moving_job(batch=MOVED, statistics="batch")).steps[0].histories["train/cost"]
    np.testing.assert_allclose(moving, full, rtol=1e-12)


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize(("kind", "window"), [("running", None), ("window", 6), ("batch", None)])
@pytest.mark.parametrize("order", ["shuffled", "replacement"])
def test_moving_statistics_go_on_to_the_bit(tmp_path, monkeypatch, kind, window, order):
    monkeypatch.setattr("normbench.results.store.job_records.os.fsync", lambda _: None)
    scheme = QuantileTransformer(n_quantiles=2) if kind == "batch" else StandardScaler()
    settings = {"statistics": kind, "window": window, "batch_order": order, "records_per_pass": 3}
    whole = run(moving_job(scheme, **settings)).steps[0].histories["train/cost"]
    for looks in (2, 5):
        stopped = Updates(tmp_path, "ab" * 32, 60, looks=looks)
        with pytest.raises(StoppedError):
            run(moving_job(scheme, **settings), checkpoint=stopped)
    resumed = run(moving_job(scheme, **settings), checkpoint=DescentFile(tmp_path, "ab" * 32, 60))
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
def test_mistakes_of_statistics_are_told_in_a_line(settings, said):
    with pytest.raises(UserError, match=said) as error:
        check(moving_job(**settings))
    assert "\n" not in str(error.value)


def test_a_scheme_that_refuses_a_batch_says_so():
    with pytest.raises(UserError, match=r"statistics=batch: PCASphere refuses .* a larger batch"):
        run(moving_job(PCASphere(), statistics="batch", batch=1))
    with pytest.raises(UserError, match=r"use cost.l2_in=transformed$"):
        check(replace(moving_job(l2=0.1, statistics="batch"), l2_in="features"))
