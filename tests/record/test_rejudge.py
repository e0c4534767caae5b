"""A recorded job judged again: the same by the same rules, and as a fresh run by others."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench import names
from normbench.costs import least_squares, perceptron, softmax
from normbench.datasets import make_dataset
from normbench.datasets.dataset import OwnTargets
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.measures.contract import BEST_STEP, RULES
from normbench.optimizers import adam, gradient_descent
from normbench.record import folder, outcome
from normbench.record.rejudge import rejudge
from normbench.results.store.job_records import JobRecord, RunRecord
from normbench.verdicts.convergence import Rules
from normbench.verdicts.search import Search

# Rules, and the step that is to be shown: the first changes verdicts, the second the step too.
FIRST = (Rules(), None)
OTHERS = (
    (Rules(tail=0.5, variation=1e-3, excess=0.1), None),
    (Rules(tail=0.01, least_tail=1, variation=0.999, excess=0.999), 0.1),
)
SIZES = (0.001, 0.1, 0.5, 2.0, 1e200)
RECORD = ("path", "contours", "points", "spectrum", "sharpness")


def scale_up(x):
    return 1e160 * x


NONE = Search()
JOBS = {
    "a bound, one start": (softmax, StandardScaler(), gradient_descent(), 1, NONE),
    "exact, two starts": (least_squares, StandardScaler(), gradient_descent(), 2, NONE),
    "no plain descent": (softmax, FunctionTransformer(), adam(), 1, NONE),
    "by misclassified points": (perceptron, StandardScaler(), gradient_descent(), 2, NONE),
    "nothing finite": (
        least_squares,
        FunctionTransformer(scale_up),
        gradient_descent(),
        1,
        Search(),
    ),
    "a search": (least_squares, StandardScaler(), gradient_descent(), 1, Search(critical=True)),
}


class Bed:
    """A job that is recorded, fresh or judged again."""

    def __init__(self, folder, job):
        rng = np.random.default_rng(3)
        y = rng.integers(0, 2, 60)
        x = (rng.standard_normal((60, 3)) + y[:, None]) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
        data = make_dataset(
            *("two", x[:40], y[:40]),
            **{"x_test": x[40:], "y_test": y[40:], "class_names": ["no", "yes"], "source": "-"},
        )
        folds = tuple(rng.permutation(40) % 2 for _ in range(3))
        own_targets = OwnTargets(y[:40] + 0.0, y[40:] + 0.0, StandardScaler().fit(y[:40, None]))
        # Folds beside test points, and classes in own units: a bed has every finding.
        self.data = replace(data, folds=folds, own_targets=own_targets)
        self.job = job
        self.file = folder / "job.npz"
        self.first = self.fresh(*FIRST)

    def place(self, rules, shown):
        told = {f"rules.{key}": value for key, value in vars(rules).items()}
        params = {"shown_step": shown, "normalizer": "own", "iterations": 20, **told}
        params["start"] = "normal"
        return outcome.RecordHeader("two-cost", params, {"normalizer": "own"})

    def fresh(self, rules, shown):
        """Return the record of a job that is run with rules."""
        cost, scheme, optimizer, starts, search = self.job
        start = {"start": "normal", "starts": starts}
        asked = {"record": RECORD, "theory": "full", **start}
        settings = Settings(SIZES, iterations=20, shown_step=shown, **asked)
        job = Job(self.data, cost, scheme, optimizer, settings, 0.0, rules=rules, search=search)
        return outcome.of_outcome(self.place(rules, shown), self.data, run(job))

    def again(self, record, rules, shown):
        """Return the record of a job that is written, and judged again by rules."""
        record.save(self.file)
        return rejudge(JobRecord.load(self.file), self.place(rules, shown))


@pytest.fixture(scope="module", params=JOBS)
def bed(request, tmp_path_factory):
    return Bed(tmp_path_factory.mktemp("bed"), JOBS[request.param])


def numbers(run, without=()):
    return sorted(entry for entry in run.metrics if entry[0] not in without)


def same(first, second, but=()):
    """Assert that two records are equal to the last digit, but for some names."""
    assert first.params | {"dataset.encoding": ""} == second.params | {"dataset.encoding": ""}
    assert first.dataset == second.dataset
    for one, other in zip(
        [first.scheme, *first.steps], [second.scheme, *second.steps], strict=True
    ):
        assert one.name == other.name
        assert numbers(one, but) == numbers(other, but)
        assert {k: v for k, v in one.tags.items() if k not in but} == {
            k: v for k, v in other.tags.items() if k not in but
        }
    words = (first.arrays.keys() | second.arrays.keys()) - set(but)
    for word in words:
        keys = first.arrays[word].keys() - {*but}
        assert keys == second.arrays[word].keys() - {*but}
        for key in keys - {"follows"}:
            np.testing.assert_array_equal(first.arrays[word][key], second.arrays[word][key])


def test_the_same_rules_give_back_the_same_numbers(bed):
    first = bed.first
    again = bed.again(first, *FIRST)
    same(first, again)
    assert dict(first.arrays["descent"]["follows"]) == dict(again.arrays["descent"]["follows"])


def times(record):
    """Return the names whose numbers are seconds, or follow from them."""
    every = [key for run in (record.scheme, *record.steps) for key, _, _ in run.metrics]
    return {key for key in every if "seconds" in key}


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("other", OTHERS, ids=["other rules", "another step"])
def test_other_rules_give_what_a_fresh_run_gives(bed, other):
    first, fresh = bed.first, bed.fresh(*other)
    again = bed.again(first, *other)
    follows = dict(first.arrays["descent"]["follows"])
    size = [record.scheme.tags.get("step_size") for record in (first, again)]
    lost = {name for name, what in follows.items() if what == RULES}
    lost |= {name for name, what in follows.items() if what == BEST_STEP and size[0] != size[1]}
    assert set(filter(None, again.scheme.tags.get("descend_again", "").split(","))) == lost
    kept = {"fit_seconds", "seconds_a_step", "recorded", "explanation", "descend_again"}
    kept |= {"layer_path", "layer_at", "layer_step"}  # which say of which step they are
    same(again, fresh, times(first) | times(fresh) | lost | kept)
    if not lost:
        assert again.scheme.tags["explanation"] == fresh.scheme.tags["explanation"]
    assert not any(key in lost for key, _, _ in again.scheme.metrics)
    assert not lost & again.arrays.keys()
    assert not lost & again.arrays[names.DESCENT_ARRAYS].keys()


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("other", OTHERS, ids=["other rules", "another step"])
def test_there_and_back_is_where_it_began_but_for_what_was_lost(bed, other):
    first = bed.first
    there = bed.again(first, *other)
    back = bed.again(there, *FIRST)
    lost = set(there.scheme.tags.get("descend_again", "").split(","))
    same(first, back, lost | {"recorded", "explanation", "descend_again"})


def test_what_is_lost_matters_where_it_is_asked_for():
    def has_lost(lost, params):
        run = RunRecord("own", {names.DESCEND_AGAIN.key: lost})
        return folder.has_lost(JobRecord("e", {}, run), params)

    assert has_lost("path,theory/lipschitz_best", {"record": "['points', 'path']"})
    assert not has_lost("path,theory/lipschitz_best", {"record": ["points"]})
    assert not has_lost("", {"record": ["path"]})
    assert has_lost("final/critical_step", {})
    assert has_lost("folds/cost,folds/cost_of_seed", {})


def test_what_has_no_descent_stays():
    run = RunRecord("own", {}, [])
    header = outcome.RecordHeader("e", {}, {"normalizer": "own"})
    assert rejudge(JobRecord("e", {}, run), header) is None


def test_every_finding_of_a_scheme_is_a_declared_name(bed):
    """By its name it is told whether it is a series: one that was not would be cut to a number."""
    entries = [key for key, _, step in bed.first.scheme.metrics if step]
    entries = [key for key in entries if not key.startswith(names.GRID_PREFIX)]  # of its step sizes
    assert all(names.axis_of(key) or "_q" in key for key in entries)


def test_the_case_of_the_least_cost_is_a_known_one(bed):
    assert bed.first.scheme.tags[names.MINIMUM_CASE.key] in names.CASES
