"""The rules of finer step sizes: one lattice for all grids, and no luck of a single step size."""

import numpy as np
import pytest

from normbench.verdicts import search
from normbench.verdicts.search import (
    coarse_numbers,
    fewest_iterations,
    fine_numbers,
    lattice_number,
)


def test_a_power_of_ten_is_the_literal_float():
    for power in range(-7, 3):
        number = lattice_number(float(f"1e{power}"))
        assert number == search.SIZES_PER_DECADE * power
        assert search.step_size_of(int(number)) == float(f"1e{power}")


@pytest.mark.parametrize("offset", np.arange(16) / 16)
def test_coarse_step_sizes_do_not_depend_on_the_offset_of_the_grid(offset):
    numbers = coarse_numbers(10.0**offset)
    assert all(number % search.COARSE_STRIDE == 0 for number in numbers)
    near = [number / 16 - offset for number in numbers]
    assert min(near) >= -1 - 1e-12
    assert max(near) <= 1 + 1e-12
    assert len(numbers) == (9 if offset * 4 % 1 == 0 else 8)


def test_fine_step_sizes_reach_three_sixteenths_to_each_side():
    assert fine_numbers(8) == [5, 6, 7, 8, 9, 10, 11]


def test_each_step_size_counts_with_the_median_of_its_neighbours():
    counts = dict(zip(range(7), [31, 18, 84, 29, 24, 29, 29]))
    found = fewest_iterations(counts, [*range(7)])
    # Medians with infinity beyond the ends: 31, 31, 29, 29, 29, 29, 29. The step size with number
    # 2 itself takes 84 iterations, its neighbour with number 3 takes the median.
    assert (found.iterations, found.step_size) == (29, search.step_size_of(3))


def test_a_single_lucky_step_size_is_no_number():
    counts = dict.fromkeys(range(7), np.inf) | {3: 5.0}
    assert fewest_iterations(counts, [*range(7)]) is None
    assert fewest_iterations(counts | {4: 7.0}, [*range(7)]).iterations == 7


def test_the_range_goes_down_to_the_next_step_size_that_misses():
    counts = dict(zip(range(7), [9.0, 8.0, 7.0, 6.0, 6.0, np.inf, 4.0]))
    found = fewest_iterations(counts, [*range(7)])
    assert (found.iterations, round(16 * np.log10(found.step_size))) == (6, 3)
    assert found.least == pytest.approx(6 * 10 ** (-2 / 16))
    open_end = search.bound_iterations(6.0, 3, {3: 6.0, 5: 8.0})
    assert np.isnan(open_end.least)
