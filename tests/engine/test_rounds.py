"""Shadows find the runs whose end rounding decides, and leave the runs as they are."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from normbench.costs import softmax
from normbench.engine import rounds as rounds_module
from normbench.engine.descent import Histories, SavedDescents, descend
from normbench.engine.rounds import Rounds
from normbench.normalizers import PCASphere
from normbench.optimizers import adam, gradient_descent
from tests import door

SIZES = [1e-3, 1.0, 10.0, 100.0]
ITERATIONS = 100


@pytest.fixture(scope="module")
def problem():
    data = load_breast_cancer()
    x = PCASphere().fit_transform(data.data)
    return door.problem(softmax, x, 2.0 * data.target - 1, True)


def rounds_of(problem, file=None, optimizer=None, shadows=True, dtype=np.float64):
    start = np.zeros((1, *problem.shape), dtype)
    rule = optimizer or gradient_descent()
    saved = file and SavedDescents(file)
    return Rounds(problem, None, start, lambda w: w, rule, door.plan(ITERATIONS), shadows, saved)


def test_runs_are_those_of_a_descent_without_shadows(problem):
    plain = descend(
        problem,
        None,
        gradient_descent(),
        np.zeros((len(SIZES), *problem.shape)),
        np.array(SIZES),
        door.plan(ITERATIONS),
    )
    with_shadows = rounds_of(problem).descend(SIZES)
    assert np.array_equal(plain.cost, with_shadows.cost)
    assert np.array_equal(plain.weights, with_shadows.weights)
    assert rounds_of(problem, shadows=False).descend(SIZES).shadows == {}


def test_only_a_run_that_rises_has_shadows(problem):
    histories = rounds_of(problem).descend(SIZES)
    rises = (np.diff(histories.cost) > 1e-12).any(axis=1)
    assert rises.tolist() == [False, False, False, True]
    assert list(histories.shadows) == np.flatnonzero(rises).tolist()
    ends = histories.shadows[3][:, -1]
    assert np.isfinite(ends).all()
    assert np.abs(ends - histories.cost[3, -1]).max() > 1e-3 * histories.cost[-1, 0]


def test_a_run_that_has_diverged_needs_no_shadow(problem, monkeypatch):
    # A share of the start's cost, which every run stays above.
    monkeypatch.setattr(rounds_module, "FAR", 1e-3)
    assert rounds_of(problem).descend(SIZES).shadows == {}


def test_every_run_of_a_rule_that_is_not_steady_has_a_shadow(problem):
    histories = rounds_of(problem, optimizer=adam()).descend([1e-3, 1e-2])
    assert list(histories.shadows) == [0, 1]


class File:
    """A checkpoint in memory, which ends the descent at a save."""

    def __init__(self, after):
        self.after, self.calls, self.parts = after, 0, None

    def due(self):
        self.calls += 1
        return self.calls == self.after

    def save(self, parts):
        self.parts = {name: np.array(part) for name, part in parts.items()}
        if self.calls == self.after:
            raise InterruptedError

    def resume(self, read):
        return None if self.parts is None else read(self.parts)


@pytest.mark.parametrize("after", [30, ITERATIONS + 20])
def test_a_descent_that_is_cut_off_in_any_round_goes_on_to_the_same_numbers(problem, after):
    whole = rounds_of(problem).descend(SIZES)
    file = File(after)
    with pytest.raises(InterruptedError):
        rounds_of(problem, file).descend(SIZES)
    finished = {name for name in file.parts if name.endswith("/cost")}
    assert len(finished) == 1 + after // (ITERATIONS + 1)
    file.after = -1
    again = rounds_of(problem, file)
    resumed = again.descend(SIZES)
    assert np.array_equal(whole.cost, resumed.cost)
    assert np.array_equal(whole.shadows[3], resumed.shadows[3])
    made_before = file.calls - after
    assert made_before <= 2 * ITERATIONS - after + 4  # finished descents are not made again


def noted_rounds(monkeypatch, costs):
    """Return a list of the starts and sizes of each round from now on.

    costs: what the rounds cost `(R, K + 1)`, one after the other, in place of descending.
    """
    noted, left = [], iter(costs)

    def note(train, test, optimizer, start, sizes, plan, *more, **options):
        noted.append((start, sizes))
        cost = np.array(next(left), dtype=float)
        none_diverged = np.full(len(cost), -1)
        return Histories(cost, None, None, None, none_diverged, start + 1.0)

    monkeypatch.setattr(rounds_module, "descend", note)
    return noted


def unit_direction(shape, size, start, shadow):
    """Return the direction in which a shadow's start is moved."""
    bits = int(np.frombuffer(np.float64(size).tobytes(), np.uint64)[0])
    drawn = np.random.default_rng((bits, start, shadow)).standard_normal(shape)
    return drawn / np.sqrt(np.sum(drawn**2))


def test_shadows_of_a_run_are_numbered_and_follow_their_start_and_size(problem, monkeypatch):
    """The first parts from its run by more than a share of the excess, and meets it at the end."""
    run = [[1.0, 5.0, 0.5], [1.0, 0.9, 0.8]]
    noted = noted_rounds(monkeypatch, [run, [[1.0, 4.0, 0.5]], [[1.0, 4.0, 0.5], [1.0, 2.0, 0.1]]])
    start = np.full((2, *problem.shape), 0.5)
    rounds = Rounds(problem, None, start, lambda w: w, gradient_descent(), door.plan(2), True)
    histories = rounds.descend([3.0])
    (_, _), (first, sizes), (others, other_sizes) = noted
    assert (sizes.tolist(), other_sizes.tolist()) == ([3.0], [3.0, 3.0])
    length = 1e-10 * np.sqrt(np.prod(problem.shape))  # each weight has travelled by 1
    for moved, number in zip((*first, *others), range(3)):
        expected = length * unit_direction(problem.shape, 3.0, 0, number)
        np.testing.assert_allclose(moved - 0.5, expected, atol=1e-15)
    assert [*histories.shadows] == [0]
    np.testing.assert_array_equal(
        histories.shadows[0], [[1.0, 4.0, 0.5], [1.0, 4.0, 0.5], [1.0, 2.0, 0.1]]
    )


@pytest.mark.parametrize(
    ("away", "apart_at_end", "extra"),
    [(1.1e-3, 0.0, True), (0.9e-3, 0.0, False), (0.5, 0.9e-7, True), (0.5, 1.1e-7, False)],
)
def test_a_shadow_parts_and_meets_its_run_by_shares_of_the_starts_excess(
    problem, away, apart_at_end, extra, monkeypatch
):
    """The excess is 2: from 3 at the start to 1, the lowest cost of all."""
    cost = [[3.0, 5.0, 1.0]]
    shadow = [[3.0, 5.0 + 2 * away, 1.0 + 2 * apart_at_end]]
    noted_rounds(monkeypatch, [cost, shadow, shadow * 2])
    rounds = rounds_of(problem)
    assert len(rounds.descend([3.0]).shadows[0]) == (3 if extra else 1)


@pytest.mark.parametrize("most", [0, 10**6])  # numbers that are kept of the grid
@pytest.mark.parametrize("starts", [1, 2])
def test_a_replay_shows_the_runs_of_the_grid_to_the_bit(problem, starts, most, monkeypatch):
    """The last run diverges, so that the stack shrinks on its way."""
    monkeypatch.setattr(rounds_module, "MAX_KEPT_NUMBERS", most)
    start = np.stack([np.full(problem.shape, 0.1 * n) for n in range(starts)])
    rule = gradient_descent()
    rounds = Rounds(problem, None, start, lambda w: -w, rule, door.plan(ITERATIONS), True)
    sizes = [*SIZES, 1e308]
    histories = rounds.descend(sizes)
    rounds.descend([3.0], is_grid=False)
    ends, seen = np.full_like(histories.weights, np.nan), []

    def observe(k, alive, weights):
        seen.append(k)
        ends[alive] = weights

    rounds.replay(sizes, {0, 7, ITERATIONS}, observe)
    assert seen == [0, 7, ITERATIONS]
    is_finite = histories.diverged_at < 0
    assert is_finite.sum() == len(SIZES) * starts
    assert np.array_equal(ends[is_finite], histories.weights[is_finite])
