"""What measures make of what is already known: of judgements, of eigenvalues, of other findings."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from normbench import names
from normbench.datasets import make_dataset
from normbench.measures import contract
from normbench.measures.contract import FinishedJob
from normbench.measures.data import covariance
from normbench.measures.judged import folds as measure_folds
from normbench.measures.judged import rejudge_histories, summarize_grid
from normbench.verdicts.convergence import Judgement, Rules
from normbench.verdicts.judging import Step
from tests.door import mapped

CONVERGED = Judgement(names.CONVERGED, falls=True, sinks=True)
RISES = Judgement(names.CONVERGED, sinks=True)
FAILED = Judgement(names.DIVERGED)
SLOW = Judgement(names.NOT_CONVERGED, falls=True, sinks=True)


def summary(*judgements, chosen=False):
    steps = [Step(10.0**n, one, {}, {}, {}, (), {}) for n, one in enumerate(judgements)]
    found = summarize_grid(steps, chosen)
    numbers = (names.LARGEST_CONVERGENT, names.LARGEST_FALLING, names.STEPS_LEVELLED)
    return [found.metrics[metric.key] for metric in numbers], found.tags


def test_a_grid_is_summed_up_by_its_judgements():
    numbers, tags = summary(SLOW, CONVERGED, RISES, FAILED, CONVERGED)
    assert numbers == [100, 10, 3]
    assert tags == {names.CENSORED.key: "false", names.CENSORED_FALLING.key: "false"}
    numbers, tags = summary(SLOW, CONVERGED, chosen=True)
    assert numbers == [10, 10, 1]
    assert tags == {
        names.CENSORED.key: "true",
        names.CENSORED_FALLING.key: "true",
        names.STEP_CHOSEN.key: "true",
    }


def test_a_grid_on_which_nothing_converges_has_no_largest():
    numbers, tags = summary(FAILED, FAILED)
    assert np.isnan(numbers[:2]).all()
    assert numbers[2] == 0
    assert tags[names.CENSORED.key] == "false"


def spectrum(variances, live, scheme, l2=None):
    moments = SimpleNamespace(
        get=lambda correlation, complete: SimpleNamespace(values=np.array(variances)),
        gram_root=np.diag([np.sqrt(5.0), 0.0]),
        correlation_deviations=np.sqrt([3.0, 1.0]),
        live=live,
        get_or_compute=lambda key, compute: compute(),
    )
    descent = SimpleNamespace(
        train=SimpleNamespace(linear=None if l2 is None else SimpleNamespace(l2=l2)),
        settings=SimpleNamespace(theory="full"),
    )
    dataset = SimpleNamespace(x=np.ones((1, 1)))
    job = SimpleNamespace(points_cache=moments, scheme=scheme, descent=descent, dataset=dataset)
    found = covariance.take(job)
    numbers = (names.DEAD_DIRECTIONS, names.LOST_DIRECTIONS, names.DEAD_VARIANCE)
    return [found.metrics[metric.key] for metric in numbers], found


def test_directions_are_dead_where_the_scheme_or_rounding_says_so():
    eps = np.finfo(float).eps
    numbers, _ = spectrum([6.0, 3.0, 1.0], 3, SimpleNamespace(dropped_=[False, True, True]))
    assert numbers == [2, 0, 0.4]
    numbers, _ = spectrum([8.0, 3.0 * 8 * eps, 0.0], 1, SimpleNamespace(dropped_=[True]))
    assert numbers == [2, 0, pytest.approx(3 * eps, rel=1e-9)]
    numbers, _ = spectrum([8.0, 3.1 * 8 * eps, 0.0], 2, SimpleNamespace())
    assert numbers[0] == 1
    numbers, _ = spectrum([0.0, 0.0], 0, SimpleNamespace())
    assert numbers[:2] == [2, 0]
    assert np.isnan(numbers[2])


def test_live_directions_are_lost_below_the_rounding_of_what_a_scheme_decomposes():
    eps = np.finfo(float).eps
    own = np.array([2.0, 10.1 * 2 * eps, 9.9 * 2 * eps])
    for live, lost in ((3, 1), (2, 0), (1, 0)):
        numbers, _ = spectrum([3.0, 2.0, 1.0], live, SimpleNamespace(eigenvalues_=own))
        assert numbers[1] == lost
    numbers, _ = spectrum([3.0, 2.0], 2, SimpleNamespace(eigenvalues_=own))  # of other features
    assert numbers[1] == 0


@pytest.mark.parametrize(("l2", "has_largest"), [(None, True), (0.0, True), (0.1, False)])
def test_with_a_penalty_the_points_alone_have_no_largest_curvature(l2, has_largest):
    _, found = spectrum([3.0, 2.0], 2, SimpleNamespace(), l2)
    largest = {
        names.LARGEST_RAW.key: pytest.approx(5.0),
        names.LARGEST_CENTRED.key: 3.0,
        names.LARGEST_STANDARD.key: pytest.approx(3.0),
    }
    assert {key: found.metrics[key] for key in largest if key in found.metrics} == (
        largest if has_largest else {}
    )


@pytest.mark.parametrize(
    ("points", "features", "most"),
    [(40, 2, 35), (30, 2, 30), (35, 1, 35)],
)
def test_of_many_points_of_a_file_a_sample_is_shown_with_the_point_that_is_reconstructed(
    monkeypatch, points, features, most
):
    monkeypatch.setattr(contract, "MAX_SHOWN_POINTS", 35)
    number = points - 2
    x = np.arange(float(points * features)).reshape(points, features)
    data = make_dataset("big", mapped(x), np.arange(points) % 2, class_names=["a", "b"], source="-")
    shown = FinishedJob(data, None, mapped(2 * x), None, shown_point=number).shown_points
    assert most <= len(shown.z) <= most + (points > most)
    assert np.array_equal(shown.z, 2 * np.asarray(shown.dataset.x))
    assert np.array_equal(shown.dataset.x[shown.shown_point], x[number])
    assert len(shown.dataset.y) == len(shown.z)
    first = shown.dataset.x[:, 0] / x.shape[1]
    assert np.array_equal(shown.dataset.y, first.astype(int) % 2)
    assert len(np.unique(first)) == len(first)
    np.testing.assert_allclose(shown.moments[0].mean(axis=0), x.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(shown.moments[1].var(axis=0), 4 * x.var(axis=0), rtol=1e-12)


def test_recorded_shadows_are_those_of_their_run_and_target():
    sizes, starts, shadows, records = 2, 3, 2, 4
    rng = np.random.default_rng(0)
    runs = (sizes, starts)
    arrays = {name: np.array(0.5) for name in ("minimum", "reference", "fit_seconds")}
    arrays |= {"epsilon": np.array(1e-16), "seconds_a_step": np.array(0.1), "tie": np.array(0.0)}
    arrays |= {"points": np.array(0), "batch": np.array(0), "records_per_pass": np.array(1)}
    arrays |= {
        "step_sizes": np.array([0.1, 1.0]),
        names.TRAIN_COST.key: rng.random((*runs, records + 1)),
        "diverged_at": np.full(runs, -1),
        "shadows": rng.random((*runs, shadows)),
        "shadows_reached": rng.integers(1, 9, (*runs, shadows, len(names.TARGETS))) + 0.0,
    }
    given = {}

    def steps(histories, diverged_at, sizes, bench, shadows):
        given.update(histories=histories, diverged_at=diverged_at, sizes=sizes, bench=bench)
        given["shadows"] = shadows
        return ()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("normbench.verdicts.judging.judge_steps", steps)
        assert rejudge_histories(arrays, Rules()) == ()
    assert given["sizes"] == [0.1, 1.0]
    assert given["diverged_at"].shape == (6,)
    assert np.array_equal(given["histories"]["train/cost"][4], arrays["train/cost"][1, 1])
    assert np.array_equal(given["shadows"].ends[5], arrays["shadows"][1, 2])
    for number, target in enumerate(names.TARGETS):
        recorded = arrays["shadows_reached"][1, 0, :, number]
        assert np.array_equal(given["shadows"].reached[target][3], recorded)
    assert given["bench"].tie_step_size == 0.0
    assert (given["bench"].compared_points, given["bench"].records_per_pass) == (0, 1)
    del arrays["shadows"]
    arrays["tie"] = np.array(np.nan)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("normbench.verdicts.judging.judge_steps", steps)
        rejudge_histories(arrays, Rules())
    assert given["shadows"] is None
    assert given["bench"].tie_step_size is None


@pytest.mark.parametrize("has_classes", [True, False])
def test_each_seed_of_a_cross_validation_has_the_mean_over_its_held_out_points(has_classes):
    """Fold f of seed s costs 10 s + f held out, 1 less in training; its first point is wrong."""
    x = np.arange(14.0).reshape(7, 2)
    kind = {"class_names": ["no", "yes"]} if has_classes else {}
    data = make_dataset("few", x, np.arange(7) % 2 + 0.0 * (not has_classes), source="-", **kind)
    folds = (np.array([0, 0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 0, 1, 2, 2]))
    data = replace(data, folds=folds)
    asked = []

    def descend(fold_data, step_size):
        held = sorted(fold_data.x_test[:, 0] / 2)
        seed, fold = next(
            (seed, number)
            for seed, numbers in enumerate(folds)
            for number in range(numbers.max() + 1)
            if held == np.flatnonzero(numbers == number).tolist()
        )
        asked.append((seed, fold, step_size, len(fold_data.x)))
        cost = 10.0 * seed + fold
        # At the last of three iterations, about the mean.
        two_starts = np.array([[99.0, 50.0, cost - 0.5], [99.0, 50.0, cost + 0.5]])
        wrong = np.array([[9.0, 5.0, 0.0], [9.0, 5.0, 2.0]]) if has_classes else None
        return SimpleNamespace(
            cost=two_starts - 1, test_cost=two_starts, test_misclassifications=wrong
        )

    descent = SimpleNamespace(best_step=SimpleNamespace(step_size=0.5))
    job = SimpleNamespace(descent=descent, descend_dataset=descend, dataset=data)
    found = measure_folds.take(job)
    assert asked == [(0, 0, 0.5, 3), (0, 1, 0.5, 4), (1, 0, 0.5, 5), (1, 1, 0.5, 5), (1, 2, 0.5, 4)]
    expected = {
        names.FOLDS_COST: [(4 * 0 + 3 * 1) / 7, (2 * 10 + 2 * 11 + 3 * 12) / 7],
        names.FOLDS_TRAIN_COST: [-0.5, 10.0],
    }
    if has_classes:
        expected[names.FOLDS_ERROR] = [2 / 7, 3 / 7]
    assert found.metrics == pytest.approx(
        {metric.key: np.mean(values) for metric, values in expected.items()}
    )
    assert set(found.series) == {names.of_seed(metric).key for metric in expected}
    for metric, values in expected.items():
        seeds, by_seed = found.series[names.of_seed(metric).key]
        assert seeds.tolist() == [0, 1]
        assert by_seed == pytest.approx(values)
