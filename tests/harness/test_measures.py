"""The contract of measures: found by themselves, paid from theory's budget, one road for all."""

import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench import costs, measures
from normbench.datasets import UserError, make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, Shared, run
from normbench.measures.contract import Findings, Measure
from normbench.normalizers import PCASphere
from normbench.optimizers import gradient_descent
from normbench.results import names
from normbench.theory import budget, shared
from normbench.theory.budget import Budget, Work


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

    def added(measure):
        module = ModuleType("normbench.measures.zz_new")
        module.MEASURE = measure
        monkeypatch.setitem(sys.modules, module.__name__, module)
        known = list(measures.pkgutil.iter_modules(measures.__path__))
        new = known[0]._replace(name="zz_new")
        monkeypatch.setattr(measures.pkgutil, "iter_modules", lambda path: [*known, new])
        measures.measures.cache_clear()

    yield added
    measures.measures.cache_clear()


def test_a_new_file_is_a_new_measure(another, data):
    def take(made):
        best = made.descended.best_step
        return Findings({"theory/steps": len(made.descended.steps)}, {"new": best.verdict})

    another(Measure(take))
    found = run(job(data)).findings
    assert found.metrics["theory/steps"] == 2
    assert found.tags["new"] in names.VERDICTS


def test_a_new_word_of_record_is_known_by_its_measure(another, data):
    another(Measure(lambda made: Findings(arrays={"mean": made.z.mean(axis=0)}), record="means"))
    made = run(job(data, record=("means",)))
    # Standardized: measured 3e-17.
    np.testing.assert_allclose(made.arrays["means"]["mean"], 0, atol=1e-14)
    assert made.findings.search_seconds > 0
    with pytest.raises(UserError, match=r"record=mean: must be one of .*means"):
        run(job(data, record=("mean",)))


@pytest.mark.parametrize(("passes", "memory"), [(1e9, 1), (1, 1e18)])
def test_a_measure_is_paid_from_the_budget_or_said_to_be_skipped(another, data, passes, memory):
    taken = []
    another(
        Measure(
            lambda made: taken.append(made) or Findings(),
            what="a dear thing",
            work=lambda made: Work(passes, memory),
        )
    )
    assert "a dear thing skipped: more" in run(job(data)).findings.tags["theory_note"]
    assert not taken
    run(job(data, theory="full"))
    assert taken
    run(job(data, theory="none"))
    assert len(taken) == 1


def test_a_budget_is_spent_on_work_and_holds_no_memory():
    left = Budget(Work(10, 100))
    assert left.affords("a", Work(6, 100))
    assert not left.affords("b", Work(6, 0))
    assert not left.affords("c", Work(0, 101))
    assert left.affords("d", Work(4, 100))
    assert left.note == (
        "b skipped: more work than the descent; theory=full asks for it; "
        "c skipped: more than a quarter of the memory; theory=full asks for it"
    )


def many_classes(count=300, points=600):
    rng = np.random.default_rng(0)
    labels = np.arange(points) % count
    x = rng.standard_normal((points, 5)) + labels[:, None] % 7
    words = [f"c{number}" for number in range(count)]
    return make_dataset("many", x, labels, source="drawn", class_names=words)


def test_many_classes_are_too_much_work_for_theory_and_it_says_so(monkeypatch):
    asked = []
    from normbench.engine.problem import Objective

    hessian = Objective.hessian
    monkeypatch.setattr(
        Objective, "hessian", lambda self, weights: asked.append(1) or hessian(self, weights)
    )
    made = job(many_classes(), costs.multiclass_softmax, iterations=3)
    tags = run(made).findings.tags
    assert "curvature at the start" in tags["theory_note"]
    assert "skipped: more work" in tags["theory_note"]
    assert "more work than the descent" in tags["minimum_source"]
    assert not asked


def test_second_derivatives_that_would_not_fit_are_not_made(data, monkeypatch):
    monkeypatch.setattr(budget, "machine_memory", lambda: 4e4)
    tags = run(job(data)).findings.tags
    assert "curvature at the best weights" in tags["theory_note"]
    assert "more than a quarter of the memory" in tags["theory_note"]
    assert "more than a quarter of the memory" in tags["minimum_source"]
    assert run(job(data, theory="full")).findings.tags["minimum_reached"] == "true"


def test_jobs_share_what_they_know_of_a_data_set(data, monkeypatch):
    solved = []
    once = shared.OfPoints.once
    monkeypatch.setattr(
        shared.OfPoints,
        "once",
        lambda self, key, find: once(self, key, lambda: solved.append(key[0]) or find()),
    )
    together = Shared()
    found = [
        run(job(data, scheme=scheme), shared=together).findings.metrics["theory/minimum"]
        for scheme in (FunctionTransformer(), StandardScaler(), PCASphere())
    ]
    assert len(set(found)) == 1
    assert solved == ["least", "case"]
    run(job(data))  # without it, a job knows nothing of the others
    run(replace(job(data), cost=costs.squared_margin), shared=together)
    assert solved == ["least", "case", "least", "case", "least"]


def test_what_is_shared_is_of_the_last_few_data_sets_and_few_sphered_copies():
    together = Shared()
    points = np.random.default_rng(0).standard_normal((20, 2))
    known = [together.of(str(number), points) for number in range(shared.DATA_SETS)]
    for each in known[-3:]:
        assert each.basis.shape == (20, 2)
    assert together.of("0", points) is known[0]
    assert known[-3]._basis is None
    assert known[-1]._basis is not None
    together.of("new", points)
    assert together.of("1", points) is not known[1]


@pytest.mark.parametrize("cost", [costs.softmax, costs.least_squares])
def test_a_job_is_the_same_to_rounding_without_what_makes_it_faster(data, cost, monkeypatch):
    from normbench.engine.fast import blocked

    monkeypatch.setattr(blocked, "MERGED_FROM", 0)
    twice = np.column_stack([data.x, data.x[:, 0]])
    doubled = make_dataset("twice", twice, data.y, source="arrays", class_names=["a", "b"])
    fast = run(job(doubled, cost, record=("path",)))
    folded = blocked.Columns.fold
    monkeypatch.setattr(blocked.Columns, "fold", None)
    plain = run(replace(job(doubled, cost, record=("path",)), engine="plain"))
    assert folded
    for one, other in zip(fast.steps, plain.steps, strict=True):
        assert one.verdict == other.verdict
        for name, history in one.histories.items():
            # Measured: 4e-16.
            np.testing.assert_allclose(other.histories[name], history, rtol=1e-13)
    for name in ("theory/minimum", "theory/lipschitz_start", "theory/condition_number"):
        assert plain.findings.metrics[name] == pytest.approx(fast.findings.metrics[name], rel=1e-9)
