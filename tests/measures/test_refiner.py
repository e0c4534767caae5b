"""The search for the best step size beside the grid, with descents that are only counted."""

from types import SimpleNamespace

import numpy as np
import pytest

from normbench import names
from normbench.measures import targets
from normbench.measures.targets import FREE_PRODUCTS
from normbench.verdicts import refinement
from normbench.verdicts.judging import Step

TARGET = "1e-2"
KEY = names.reached(TARGET).key
GRID = (0, 16, 32)  # lattice numbers of step sizes 1, 10 and 100


class Descent:
    """A judged descent whose step size `number` takes `law(number)` iterations to every target."""

    def __init__(self, law, starts=1, points=False, refine="auto", iterations=50, **bench):
        self.law, self.descended, self.scouted, self.leaves = law, [], [], []
        self.settings = SimpleNamespace(iterations=iterations, refine=refine, starts=starts)
        self.steps = [self.step(number) for number in GRID]
        cost = np.ones((len(GRID) * starts, iterations + 1))
        cost[-1, 11:] = np.nan
        self.histories = SimpleNamespace(cost=cost)
        own = {"compared_points": points, "tie_step_size": None, "minimum": 0.0, "epsilon": 1e-16}
        own |= {"targets": dict.fromkeys(names.TARGETS, 0.1)} | bench
        self.judging_context = SimpleNamespace(**own)
        self.start = np.zeros((starts, 3, 1))
        self.train = SimpleNamespace(linear=SimpleNamespace(targets=np.zeros(100)))
        self.rounds = SimpleNamespace(
            run_iterations=int(np.isfinite(cost[:, 1:]).sum()), scout=self.scout
        )

    def step(self, number):
        count = self.law(number)
        metrics = {names.reached(target).key: count for target in names.TARGETS}
        metrics[names.TO_LOWEST.key] = 7.0 if number == GRID[0] else np.nan
        history = np.geomspace(1, 0.5, self.settings.iterations + 1)
        histories = {names.TRAIN_COST.key: history}
        return Step(refinement.step_size_of(number), None, histories, {}, {}, {}, metrics)

    def descend_finer(self, sizes, leave):
        numbers = [round(refinement.lattice_number(size)) for size in sizes]
        self.descended.append(numbers)
        self.leaves.append(leave)
        steps = [self.step(number) for number in numbers]
        return steps, [np.full((1, 2), number) for number in numbers], [True] * len(numbers)

    def scout(self, sizes, first):
        numbers = [round(refinement.lattice_number(size)) for size in sizes]
        self.scouted.append(numbers)
        self.gap = first.allowed
        self.known_count = first.known_count
        first.arrival[:] = [np.nan_to_num(self.law(number), nan=np.inf) for number in numbers]


def valley(best, least=10.0):
    """Return a law of iterations: fewest at a number, one more for each number beside it."""
    return lambda number: least + abs(number - best)


def refiner(descent):
    tried = {refinement.lattice_number(step.step_size): step for step in descent.steps}
    return targets._Refiner(descent, tried)


def test_the_best_step_size_is_found_between_those_of_the_grid():
    descent = Descent(valley(22))
    assert refiner(descent).window(TARGET) == [*range(17, 24)]  # about the coarse best, 20
    assert descent.scouted == [[4, 8, 12, 20, 24, 28]]
    assert descent.known_count == 16  # of the grid's best, number 16
    assert descent.descended == [[17, 18, 19, 20, 21, 22, 23]]


def test_the_passes_of_a_search_are_counted():
    one = refiner(Descent(valley(22)))
    iterations, first, missing = 50, 16, 6
    fine = 2 * refinement.FINE_RADIUS * first + 4 * (iterations - first)
    coarse = refinement.coarse_numbers(10.0)
    assert one.grid_passes == 2 * iterations + 10  # the last diverged
    assert one._work(coarse, 1, TARGET) == 2 * missing * first + fine
    unreached = 2 * missing * iterations + 2 * refinement.FINE_RADIUS * iterations
    assert one._work(coarse, None, TARGET) == unreached
    one.descent.rounds.run_iterations += 70
    assert one._work(coarse, None, TARGET) == unreached + 70
    of_points = refiner(Descent(valley(22), points=True))
    assert of_points._work(coarse, 1, TARGET) == unreached
    three = refiner(Descent(valley(22), starts=3))
    assert three._work(coarse, 1, TARGET) == 3 * (2 * missing * first + fine)


def test_the_first_targets_may_take_a_tenth_of_a_second_and_others_as_much_as_the_grid():
    one = refiner(Descent(lambda number: valley(22)(number), starts=2))
    small = FREE_PRODUCTS / (4 * 100 * 3)
    assert one.max_grid_passes == 50 * 3 * 2
    assert [one._allowed(target) for target in ("1e-2", "1e-1", "1e-3")] == [small, 300, 300]
    one.order = ["1e-1", "1e-3", "1e-2"]
    assert [one._allowed(target) for target in ("1e-2", "1e-1", "1e-3")] == [small, small, 300]
    one.max_grid_passes = small + 1
    assert one._allowed("1e-2") == small + 1
    one.descent.train.linear = None
    one.max_grid_passes = 300
    assert one._allowed("1e-2") == 300


@pytest.mark.parametrize(("refine", "is_tried"), [("auto", False), (True, True)])
def test_a_search_that_takes_more_than_is_allowed_is_left_unless_it_is_asked_for(refine, is_tried):
    one = refiner(Descent(valley(22), refine=refine))
    work = one._work(refinement.coarse_numbers(10.0), 1, TARGET)
    one._allowed = lambda target: work - 1
    assert (one.window(TARGET) is not None) == is_tried
    same = refiner(Descent(valley(22), refine=refine))
    same._allowed = lambda target: work
    assert same.window(TARGET) is not None


def test_a_target_that_no_step_size_reaches_has_no_window():
    descent = Descent(lambda number: np.nan)
    one = refiner(descent)
    assert one.window(TARGET) == []
    # About the grid's lowest cost, at number 0; none of them arrives, so none is descended.
    assert descent.scouted == [[-16, -12, -8, -4, 4, 8, 12]]
    assert descent.descended == []


def test_without_a_lowest_cost_there_is_nothing_to_try():
    descent = Descent(lambda number: np.nan)
    for step in descent.steps:
        step.metrics[names.TO_LOWEST.key] = np.nan
    assert refiner(descent).window(TARGET) is None


@pytest.mark.parametrize(("tie", "is_hopeless"), [(None, False), (1.0, True)])
def test_a_quadratic_cost_that_cannot_arrive_is_not_tried(monkeypatch, tie, is_hopeless):
    given = []

    def hopeless(history, minimum, goal):
        given.append((history[0], history[-1], minimum, goal))
        return True

    monkeypatch.setattr(refinement, "cannot_reach", hopeless)
    descent = Descent(lambda number: np.nan, tie_step_size=tie)
    assert refiner(descent).window(TARGET) == []
    assert (descent.scouted == []) == is_hopeless
    assert given == [(1.0, pytest.approx(0.5), 0.0, 0.1)] * is_hopeless
    # Where the grid reaches it, the question is not asked.
    refiner(Descent(valley(22), tie_step_size=tie)).window(TARGET)
    assert len(given) == is_hopeless


def test_a_step_size_that_leaves_the_target_again_is_found_by_its_whole_history():
    """The scout sees number 20 arrive in 12 iterations; its history says that it did not stay."""
    descent = Descent(lambda number: np.nan if number == 20 else valley(12)(number))
    seen = descent.scout

    def scout(sizes, first):
        seen(sizes, first)
        first.arrival[descent.scouted[-1].index(20)] = 3.0

    descent.rounds.scout = scout
    one = refiner(descent)
    assert one.window(TARGET) == [*range(9, 16)]  # about the coarse best that stays, 12
    assert descent.descended == [
        [17, 18, 19, 20, 21, 22, 23],
        [4, 8, 12, 24, 28],  # whole, those of the coarse step sizes that were not
        [9, 10, 11, 13, 14, 15],
    ]


def test_targets_that_count_points_are_descended_whole():
    descent = Descent(valley(22), points=True)
    assert refiner(descent).window(TARGET) == [*range(17, 24)]
    assert descent.scouted == []
    assert descent.descended == [[4, 8, 12, 20, 24, 28], [17, 18, 19, 21, 22, 23]]
    assert descent.leaves == [None, None]


def test_what_was_scouted_by_shadows_is_held_to_their_distance():
    descent = Descent(valley(22), minimum=0.25, epsilon=1e-7)
    descent.histories.cost[0, 0] = 9.0
    refiner(descent).window(TARGET)
    assert descent.gap == targets.shadow_tolerance(9.0, 0.25, 1e-7)


def test_a_scout_ends_where_the_best_of_what_is_known_has_arrived():
    descent = Descent(valley(22))
    one = refiner(descent)
    for number in (12, 20):  # as those of an earlier target
        one.tried[number] = descent.step(number)
    one.window(TARGET)
    assert descent.scouted == [[4, 8, 24, 28]]
    assert descent.known_count == 12  # of number 20; the others take 16 and 20


def test_targets_that_the_grid_reaches_come_first():
    descent = Descent(valley(22))
    for step in descent.steps:
        step.metrics[KEY] = np.nan
    assert refiner(descent).order == ["1e-1", "1e-3", "1e-2"]
    assert refiner(Descent(valley(22))).order == ["1e-2", "1e-1", "1e-3"]


def test_the_numbers_of_a_window_are_recorded_with_what_they_took():
    descent = Descent(valley(22))
    descent.optimizer = SimpleNamespace(gridless=False)
    descent.judging_context.fit_seconds, descent.judging_context.seconds_a_step = 2.0, 0.5
    job = SimpleNamespace(judged_descent=descent, dataset=SimpleNamespace(x=np.zeros((3, 2))))
    found = targets.take(job)
    # 11 is the median of 12, 11 and 10: a step size counts with its neighbours.
    assert found.metrics[KEY] == 11
    assert found.metrics[names.best_step_for_target(TARGET).key] == refinement.step_size_of(21)
    assert found.metrics[names.reached(TARGET, "seconds").key] == 2 + 11 * 0.5
    assert found.arrays["refined_step_sizes"].tolist() == [
        refinement.step_size_of(number) for number in range(17, 24)
    ]
    assert found.arrays["refined_cost"][:, 0, 0].tolist() == [*range(17, 24)]


@pytest.mark.parametrize("refine", [False, "auto"])
def test_on_the_grid_alone_the_number_is_its_best(refine):
    descent = Descent(valley(22), refine=refine)
    descent.optimizer = SimpleNamespace(gridless=False)
    descent.judging_context.fit_seconds, descent.judging_context.seconds_a_step = 2.0, 0.5
    job = SimpleNamespace(judged_descent=descent, dataset=SimpleNamespace(x="a file"))
    found = targets.take(job)
    assert found.metrics[KEY] == 16
    assert found.metrics[names.best_step_for_target(TARGET).key] == 10
    assert found.tags == {}
    assert found.arrays == {}


def test_isolated_step_sizes_that_arrive_leave_the_number_to_the_grid():
    """Where nothing but a step size of the grid arrives, no neighbourhood is recorded."""
    descent = Descent(lambda number: 20.0 if number == 32 else np.nan)
    descent.optimizer = SimpleNamespace(gridless=False)
    descent.judging_context.fit_seconds, descent.judging_context.seconds_a_step = 0.0, 0.0
    job = SimpleNamespace(judged_descent=descent, dataset=SimpleNamespace(x=np.zeros((3, 2))))
    found = targets.take(job)
    assert found.metrics[KEY] == 20
    assert found.metrics[names.best_step_for_target(TARGET).key] == 100
    assert '"targets": []' in found.tags[names.REFINED.key]


@pytest.mark.parametrize(
    ("decided", "is_whole"), [(None, False), (9, True), (10, True), (11, False), (40, False)]
)
def test_neighbours_that_left_early_are_descended_whole_where_the_number_was_not_kept(
    decided, is_whole
):
    """The number is 11, a median of 12, 11 and 10; those of 17 to 19 leave at the decision."""
    descent, calls = Descent(valley(22)), []
    whole = descent.descend_finer

    def descend_finer(sizes, leave):
        steps, costs, _ = whole(sizes, leave)
        numbers = descent.descended[-1]
        calls.append((numbers, leave is None))
        if leave is not None:
            leave.decided = decided
        return steps, costs, [leave is None or number >= 20 for number in numbers]

    descent.descend_finer = descend_finer
    one = refiner(descent)
    assert one.window(TARGET) == [*range(17, 24)]
    again = [([17, 18, 19], True)] if is_whole else []
    assert calls == [([*range(17, 24)], False), *again]
    assert sorted(one.added) == [*range(17 if is_whole else 20, 24)]


def test_neighbours_that_all_leave_the_target_again_are_descended_whole():
    """At the decision they had reached it; afterwards none of them has."""
    descent, calls = Descent(valley(22)), []
    law = descent.law

    def descend_finer(sizes, leave):
        numbers = [round(refinement.lattice_number(size)) for size in sizes]
        calls.append((numbers, leave is None))
        if leave is not None:
            leave.decided = 12
        descent.law = law if leave is None else lambda number: np.nan
        steps = [descent.step(number) for number in numbers]
        return steps, [np.zeros((1, 2)) for _ in numbers], [number != 17 for number in numbers]

    descent.descend_finer = descend_finer
    refiner(descent)._descend_neighbours([*range(17, 24)], TARGET)
    assert calls == [([*range(17, 24)], False), ([17], True)]
