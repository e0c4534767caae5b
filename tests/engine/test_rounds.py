"""Shadows find the runs whose end rounding decides, and leave the runs as they are."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from normbench.costs import softmax
from normbench.engine.descent import descend
from normbench.engine.problem import Objective
from normbench.engine.rounds import EXTRA_SHADOWS, SHADOW_DISTANCE, Rounds
from normbench.normalizers import PCASphere
from normbench.optimizers import adam, gradient_descent

SIZES = [1e-3, 1.0, 10.0, 100.0]
ITERATIONS = 100


@pytest.fixture(scope="module")
def problem():
    data = load_breast_cancer()
    x = PCASphere().fit_transform(data.data)
    return Objective(softmax, x, 2.0 * data.target - 1, True, 0.0, 1)


def rounds_of(problem, checkpoint=None, optimizer=None, shadows=True, dtype=np.float64):
    start = np.zeros((1, *problem.shape), dtype)
    rule = optimizer or gradient_descent()
    return Rounds(problem, None, start, lambda w: w, rule, ITERATIONS, shadows, checkpoint)


def test_runs_are_those_of_a_descent_without_shadows(problem):
    plain = descend(
        problem,
        None,
        gradient_descent(),
        np.zeros((len(SIZES), *problem.shape)),
        np.array(SIZES),
        ITERATIONS,
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


def test_a_shadow_is_moved_by_its_step_size_and_start_alone(problem, monkeypatch):
    starts = np.zeros((2, *problem.shape))
    starts[1] = 0.1
    own, noted = Rounds._round, []

    def note(self, test, start, *parts, **more):
        noted.append(start)
        return own(self, test, start, *parts, **more)

    monkeypatch.setattr(Rounds, "_round", note)

    def directions(sizes):
        """Return where the first shadows of the last step size's two runs are moved to."""
        Rounds(problem, None, starts, lambda w: w, gradient_descent(), ITERATIONS, True).descend(
            sizes
        )
        moved = noted[1][-2:] - starts
        noted.clear()
        return moved / np.linalg.norm(moved, axis=(1, 2), keepdims=True)

    alone, among_others = directions([100.0]), directions(SIZES)
    np.testing.assert_allclose(alone, among_others, atol=1e-3)  # the start's digits are lost
    assert np.abs(alone[0] - alone[1]).max() > 0.1


def test_a_run_whose_shadow_meets_it_again_has_more(problem, monkeypatch):
    own = Rounds._descend_shadows_of

    def meeting(self, runs, numbers, histories, *parts):
        costs = own(self, runs, numbers, histories, *parts)
        costs[..., -1] = histories.cost[runs, -1][:, None]  # apart on the way, together at the end
        return costs

    monkeypatch.setattr(Rounds, "_descend_shadows_of", meeting)
    assert len(rounds_of(problem).descend(SIZES).shadows[3]) == 1 + EXTRA_SHADOWS


def test_a_run_that_has_diverged_needs_no_shadow(problem):
    rounds = rounds_of(problem)
    rounds.far = 1e-3  # times the start's cost, which every run stays above
    assert rounds.descend(SIZES).shadows == {}


def test_runs_that_leave_end_there_and_change_no_other(problem):
    whole = rounds_of(problem, shadows=False).descend(SIZES)

    def leave(k, alive, costs):
        return (k == 20) & (alive % 2 == 0)

    short = rounds_of(problem).descend(SIZES, leave=leave)
    assert np.isfinite(short.cost[::2, :21]).all()
    assert np.isnan(short.cost[::2, 21:]).all()
    np.testing.assert_allclose(short.cost[1], whole.cost[1], rtol=1e-12)
    assert (short.diverged_at == -1).all()


def test_every_run_of_a_rule_that_is_not_steady_has_a_shadow(problem):
    histories = rounds_of(problem, optimizer=adam()).descend([1e-3, 1e-2])
    assert list(histories.shadows) == [0, 1]


def test_a_shadow_starts_at_a_tiny_share_of_the_distance(problem, monkeypatch):
    rounds = rounds_of(problem)
    starts = []
    own = Rounds._round

    def noted(self, test, start, *parts, **more):
        starts.append(start)
        return own(self, test, start, *parts, **more)

    monkeypatch.setattr(Rounds, "_round", noted)
    histories = rounds.descend([100.0])
    travelled = np.linalg.norm(histories.weights[0])
    moved = np.linalg.norm(starts[1].reshape(len(starts[1]), -1), axis=1)
    np.testing.assert_allclose(moved, SHADOW_DISTANCE["float64"] * travelled, rtol=1e-9)
    assert len(starts[1]) == 1


class File:
    """A checkpoint in memory, which ends the descent at a save."""

    spent = 0.0

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
    assert int(file.parts["round"]) == (after - 1) // ITERATIONS
    file.after = -1
    again = rounds_of(problem, file)
    resumed = again.descend(SIZES)
    assert len(again.finished) == 2
    assert np.array_equal(whole.cost, resumed.cost)
    assert np.array_equal(whole.shadows[3], resumed.shadows[3])
    made_before = file.calls - after
    assert made_before <= 2 * ITERATIONS - after + 2  # rounds that were finished are not made again


def test_finished_rounds_of_another_descent_are_made_again(problem):
    file = File(ITERATIONS + 20)
    with pytest.raises(InterruptedError):
        rounds_of(problem, file).descend(SIZES)
    file.after = -1
    fewer = rounds_of(problem, file).descend(SIZES[:2])
    assert np.array_equal(fewer.cost, rounds_of(problem).descend(SIZES[:2]).cost)


def test_who_says_what_leaves_is_told_again_of_a_round_that_was_finished(problem):
    def told_to():
        seen = []
        return (
            seen,
            lambda k, alive, costs: (
                seen.append((k, alive.tolist())) or np.full(len(alive), k == 10)
            ),
        )

    def two_rounds(file, leave):
        rounds = rounds_of(problem, file)
        rounds.descend(SIZES[:2])
        rounds.descend(SIZES[:3], leave=leave)
        return rounds.descend(SIZES), rounds

    whole, say = told_to()
    plain, _ = two_rounds(None, say)
    file = File(2 * ITERATIONS)  # in the third round: the one that is left asks for nothing
    with pytest.raises(InterruptedError):
        two_rounds(file, told_to()[1])
    assert int(file.parts["round"]) >= 2
    file.after = -1
    again, say = told_to()
    resumed, rounds = two_rounds(file, say)
    assert again == whole
    assert np.array_equal(plain.cost, resumed.cost)
    assert rounds.seconds == float(file.parts["round_seconds"]) > 0


def test_a_round_of_other_step_sizes_is_made_again(problem):
    file = File(ITERATIONS + 20)
    with pytest.raises(InterruptedError):
        rounds_of(problem, file).descend(SIZES)
    file.after = -1
    others = [2 * size for size in SIZES]
    found = rounds_of(problem, file).descend(others)
    assert np.array_equal(found.cost, rounds_of(problem).descend(others).cost)
