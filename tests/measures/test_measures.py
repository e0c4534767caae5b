"""The contract of measures: found by themselves, left out by size alone, one road for all."""

import sys
import time
from dataclasses import replace
from types import ModuleType

import autograd.numpy as anp
import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench import costs, measures, names, optimizers
from normbench.costs.declaration import Traits, declare
from normbench.datasets import UserError, make_dataset
from normbench.engine.descent import Histories
from normbench.engine.hessian import Hessian
from normbench.engine.problem import Evaluation
from normbench.engine.rounds import Rounds
from normbench.engine.settings import Settings
from normbench.job import Job, PointsCache, run
from normbench.measures.contract import Findings, FinishedJob, Measure
from normbench.measures.judged import find_separating_weights as separating_weights
from normbench.measures.judged import judge_descent, rejudge_histories
from normbench.normalizers import PCASphere
from normbench.optimizers import gradient_descent
from normbench.theory import sizes
from normbench.verdicts.convergence import Rules
from normbench.verdicts.search import Search
from tests import door


@pytest.fixture
def data():
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 2, 80)
    x = rng.standard_normal((80, 3)) + labels[:, None]
    return make_dataset("x", x, labels, source="arrays", class_names=["a", "b"])


def job(data, cost=costs.softmax, scheme=None, **settings):
    chosen = Settings(**{"step_sizes": (0.1, 1.0), "iterations": 20, **settings})
    return Job(data, cost, scheme or StandardScaler(), gradient_descent(), chosen)


@pytest.fixture
def another(monkeypatch):
    """A measure in a new file of the room; nothing else is touched."""

    def added(measure, name="zz_new"):
        module = ModuleType(f"normbench.measures.{name}")
        module.MEASURE = measure
        monkeypatch.setitem(sys.modules, module.__name__, module)
        known = list(measures.pkgutil.iter_modules(measures.__path__))
        new = known[0]._replace(name=name)
        monkeypatch.setattr(measures.pkgutil, "iter_modules", lambda path: [*known, new])
        measures.measures.cache_clear()

    yield added
    measures.measures.cache_clear()


def test_a_new_word_of_record_is_known_by_its_measure(another, data):
    another(Measure(lambda made: Findings(arrays={"mean": made.z.mean(axis=0)}), record="means"))
    made = run(job(data, record=("means",)))
    # Standardized: measured 3e-17.
    np.testing.assert_allclose(made.arrays["means"]["mean"], 0, atol=1e-14)
    assert made.findings.search_seconds > 0
    with pytest.raises(UserError, match=r"record=mean: must be one of .*means"):
        run(job(data, record=("mean",)))


@pytest.mark.parametrize(
    ("limit", "left_out"),
    [
        ({"MAX_ROWS": 80}, ""),
        ({"MAX_ROWS": 3}, "curvatures at the best weights"),  # of 3 features and a bias
        (
            {"MAX_ROWS": 2},
            "rank and condition number, spectrum, curvatures at the best weights, least cost",
        ),
        (
            {"MAX_NUMBERS": 79},  # of 80 points of one score
            "curvature at the start, curvature at the best weights, curvatures at the best "
            "weights, least cost",
        ),
    ],
)
def test_what_is_left_out_by_size_is_said_in_one_note(data, monkeypatch, limit, left_out):
    for name, value in limit.items():
        monkeypatch.setattr(sizes, name, value)
    record = ("contours", "sharpness")
    made = run(job(data, record=record))
    note = made.findings.tags.get("theory_note", "")
    assert note == (left_out and f"{left_out} left out by size (theory=full computes it)")
    assert {*made.arrays} >= {"contours"}  # what is asked for is there
    assert made.findings.metrics["theory/lipschitz"] > 0
    separated = replace(data, x=data.x + 9.0 * data.y[:, None])  # which the descent proves
    note = run(job(separated)).findings.tags.get("theory_note", "")
    assert note == (left_out and f"{left_out} left out by size (theory=full computes it)").replace(
        ", least cost", ""
    )
    whole = run(job(data, theory="full")).findings
    assert "left out" not in whole.tags.get("theory_note", "")
    assert whole.tags["minimum_reached"] == "true"
    assert {"theory/condition_number", "theory/dead_directions"} <= {*whole.metrics}


def many_classes(count=300, points=600):
    rng = np.random.default_rng(0)
    labels = np.arange(points) % count
    x = rng.standard_normal((points, 5)) + labels[:, None] % 7
    words = [f"c{number}" for number in range(count)]
    return make_dataset("many", x, labels, source="drawn", class_names=words)


def test_many_classes_are_too_many_for_theory_and_it_says_so(monkeypatch):
    asked = []
    hessian = door.Problem.hessian
    monkeypatch.setattr(
        door.Problem, "hessian", lambda self, weights: asked.append(1) or hessian(self, weights)
    )
    made = job(many_classes(), costs.multiclass_softmax, iterations=3)
    tags = run(made).findings.tags
    assert "curvature at the start" in tags["theory_note"]
    assert "left out by size" in tags["theory_note"]
    assert "left out by size" in tags["minimum_source"]
    assert not asked


def test_jobs_share_what_they_know_of_a_data_set(data, monkeypatch):
    solved = []
    once = PointsCache.get_or_compute
    monkeypatch.setattr(
        PointsCache,
        "get_or_compute",
        lambda self, key, find: once(
            self, key, lambda: (key[0] in ("least", "case") and solved.append(key[0])) or find()
        ),
    )
    together = PointsCache(data.x)
    found = [
        run(job(data, scheme=scheme), points_cache=together).findings.metrics["theory/minimum"]
        for scheme in (FunctionTransformer(), StandardScaler(), PCASphere())
    ]
    assert len(set(found)) == 1
    assert solved == ["least", "case"]
    run(job(data))  # without it, a job knows nothing of the others
    run(replace(job(data), cost=costs.squared_margin), points_cache=together)
    assert solved == ["least", "case", "least", "case", "least"]


class Bowl:
    """A problem of another kind: `1/2 mean_i |A_i w|^2` of weights (2, 3), linear in no points."""

    classify, convex, linear, model, traits = False, True, None, None, Traits()
    shape = (2, 3)
    matrix = np.diag([4.0, 1.0, 0.5, 0.2, 0.1, 0.05])

    def evaluate(self, weights, rows=None, with_gradient=True, size=None):
        flat = weights.reshape(len(weights), -1)
        slopes = flat @ self.matrix
        return Evaluation(0.5 * np.sum(flat * slopes, axis=1), slopes.reshape(weights.shape), None)

    def hessian(self, weights):
        return Round(self.matrix)

    def scores(self, weights, x):
        raise NotImplementedError


class Round(Hessian):
    shape, is_zero = (2, 3), False

    def __init__(self, matrix):
        self.whole = matrix

    def matrix(self):
        return self.whole

    def times(self, direction):
        return (self.whole @ direction.ravel()).reshape(self.shape)


def judge_bowl(data, settings, train=None, rule=None, plan=None, critical=False):
    """Return the judged descent of a bowl from ones: 3 seconds of a fit, and 12 of the descent."""
    train, rule, start = train or Bowl(), rule or gradient_descent(), np.ones((1, 2, 3))
    plan = plan or door.plan(settings.records)
    rounds = Rounds(train, None, start, lambda weights: weights, rule, plan, True)
    histories = rounds.descend(settings.step_sizes)
    parts = settings, Rules(), Search(critical=critical), start, rounds, histories
    return judge_descent(train, *parts, PointsCache(data.x), (3.0, 12.0))


@pytest.mark.parametrize("optimizer", [optimizers.gradient_descent(), optimizers.newton(0.0)])
def test_nothing_beyond_the_engine_knows_that_a_model_is_linear(data, optimizer):
    record = ("path", "contours", "sharpness")
    settings = Settings(step_sizes=(0.1, 0.49, 0.6), iterations=40, record=record)
    here = judge_bowl(data, settings, rule=optimizer, critical=True)
    context = here.judging_context
    assert (context.fit_seconds, context.seconds_a_step) == (3, 12 / (3 * 40))
    made = FinishedJob(data, FunctionTransformer().fit(data.x), data.x, PointsCache(data.x), here)
    found, arrays = measures.take(made, settings)
    assert found.metrics["theory/step_threshold"] == pytest.approx(0.5, rel=1e-12)
    assert "curvature at the start" in found.tags["theory_basis"]
    assert arrays["path"]["weights"].shape == (41, 2, 3)
    # The grid's second differences are the largest curvature, and that of the direction with most
    # excess left at step 0.1, or, after Newton, at the start: measured 4e-13 off.
    grid = arrays["contours"]
    steps = [grid[name][1] - grid[name][0] for name in "ab"]
    along = [np.diff(grid["cost"], 2, axis=1 - n)[0, 0] / steps[n] ** 2 for n in (0, 1)]
    assert along == pytest.approx([4, 0.1 if optimizer.plain else 1], rel=1e-8)
    if optimizer.plain:
        critical = found.metrics["final/critical_step"]
        assert critical == pytest.approx(0.5, rel=0.03)  # told from 0.5 within 40 steps
        sharp = here.best_step.step_size * 4 / 2
        np.testing.assert_allclose(found.series["theory/sharpness"][1], sharp, rtol=1e-12)


def test_the_seconds_of_a_fit_count_what_another_job_found(data, monkeypatch):
    from normbench.normalizers import decomposition

    find = decomposition._decompose
    monkeypatch.setattr(decomposition, "_decompose", lambda *of: time.sleep(0.2) or find(*of))
    together = PointsCache(data.x)
    made = [run(job(data, scheme=PCASphere()), points_cache=together) for _ in range(2)]
    assert all(outcome.fit_seconds > 0.2 for outcome in made)


def test_the_seconds_of_a_search_that_was_asked_for_are_counted_apart(data):
    tick = time.perf_counter()
    found = [
        run(replace(job(data), search=Search(critical=asked))).findings for asked in (False, True)
    ]
    assert found[0].search_seconds == 0 < found[1].search_seconds
    assert found[0].seconds > 0
    spent = sum(made.seconds + made.search_seconds for made in found)
    assert spent < time.perf_counter() - tick


def test_targets_are_above_no_cost_that_was_seen(data, monkeypatch):
    from normbench.measures import judged as room
    from normbench.theory.least_cost import Minimum

    monkeypatch.setattr(room, "find_least_cost", lambda *of: Minimum(1e9, 0.0, "too high", True))
    best = run(job(data)).steps[1]
    assert best.metrics["final/iterations_to_1e-3"] == 20  # at its own lowest cost, the last


@pytest.mark.parametrize("rule", [optimizers.gradient_descent(), optimizers.momentum(0.0)])
def test_predictions_and_ties_are_of_plain_descent_below_the_threshold(data, rule):
    settings = {"step_sizes": (0.1, 0.5, 1.0, 2.0), "iterations": 10}
    made = run(replace(job(data, costs.least_squares, PCASphere(0), **settings), optimizer=rule))
    predicted = [bool(step.series) for step in made.steps]
    tie = made.steps[2].reason.startswith("tie: at exactly 2/L")
    again = rejudge_histories(made.arrays[names.DESCENT_ARRAYS], Rules())
    assert [step.reason for step in again] == [step.reason for step in made.steps]
    # Momentum 0 makes the same steps, but it does not say that it is plain.
    assert predicted == [rule.plain, rule.plain, False, False]
    assert tie == rule.plain


def test_a_run_without_a_mistake_at_its_end_is_a_proof(data):
    shape = (2, 3)
    counts = np.array([[80.0, 0.0, 1.0], [80.0, 3.0, 0.0]])
    weights = np.arange(8.0).reshape(2, 1, 4)
    made = Histories(np.ones(shape), counts, None, None, np.full(2, -1), weights)
    assert np.array_equal(separating_weights(made), weights[1])
    assert separating_weights(replace(made, misclassifications=counts[:, :2] + 1)) is None
    assert separating_weights(replace(made, misclassifications=None)) is None
    passing = np.array([[80.0, 0.0, 1.0], [0.0, 3.0, 2.0]])  # what was right is wrong at the end
    assert separating_weights(replace(made, misclassifications=passing)) is None
    costs_of_both = np.array([[1.0, 0.9, 0.5], [1.0, 0.1, 0.7]])
    both = replace(made, cost=costs_of_both, misclassifications=np.zeros(shape))
    assert np.array_equal(separating_weights(both), weights[0])  # that of the lowest cost


def test_histories_must_fit_into_a_share_of_the_memory(monkeypatch):
    """Four histories of 100 numbers of 8 bytes a run; a quarter of the memory is for them."""
    monkeypatch.setattr("normbench.datasets.values.available_bytes", lambda: 4 * 6 * 3200)
    Settings((0.1, 1.0), iterations=99, starts=3, start="normal")
    with pytest.raises(UserError, match="iterations=100, starts=3, 2 step_sizes"):
        Settings((0.1, 1.0), iterations=100, starts=3, start="normal")


def test_a_cost_that_is_not_convex_has_no_least_cost_by_a_solver(data):
    @declare("binary", convex=False)
    def ramp(scores, targets):
        return anp.sum(1 / (1 + anp.exp(targets * scores[:, 0])), axis=-1)

    found = run(job(data, ramp)).findings
    assert "the cost is not convex" in found.tags["minimum_source"]
    assert found.tags["minimum_reached"] == "false"


def test_a_job_of_batches_has_theory_of_the_points_but_no_predicted_histories(data):
    data = make_dataset("x", data.x, data.x[:, 0] + 0.1 * data.y, source="arrays")
    full, small = (
        run(job(data, costs.least_squares, step_sizes=(0.01, 0.1), batch=batch))
        for batch in (None, 8)
    )
    for name in ("theory/lipschitz", "theory/minimum", "theory/step_threshold"):
        assert small.findings.metrics[name] == full.findings.metrics[name]
    assert full.steps[0].series
    assert not small.steps[0].series
