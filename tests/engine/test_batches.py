"""Minibatches: against a loop of ten lines, and scikit-learn; orders, blocks, resuming."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench import costs, optimizers
from normbench.datasets import UserError, make_dataset
from normbench.engine.descent import SavedDescents
from normbench.engine.settings import Settings
from normbench.job import Job, check, run
from normbench.recording.reuse.identity import identity
from tests import door
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
    """Neither its identity nor its settings know of batches."""
    params = {"cost": "softmax", "iterations": 5, "refine": "auto", "shadows": True, "seed": 0}
    unset = {"batch": None, "batch_order": "shuffled", "batch_seed": 0, "records_per_pass": 1}
    data = job(*points()).dataset
    parts = (costs.softmax, StandardScaler(), optimizers.gradient_descent())
    known = identity(params, data, parts)
    assert identity({**params, **unset}, data, parts) == known
    batched = {**params, **unset, "batch": 5}
    changed = [
        batched,
        {**batched, "batch": 6},
        {**batched, "batch_order": "once"},
        {**batched, "batch_seed": 1},
        {**batched, "records_per_pass": 2},
    ]
    descents = [identity(each, data, parts).descent for each in changed]
    assert len({known.descent, *descents}) == 6
    cyclic = {**batched, "batch_order": "cyclic"}
    assert identity(cyclic, data, parts) == identity({**cyclic, "batch_seed": 9}, data, parts)
    assert identity(batched, data, parts) == identity({**batched, "refine": False}, data, parts)


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
    monkeypatch.setattr("normbench.recording.resume.checkpoints.os.fsync", lambda _: None)
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
