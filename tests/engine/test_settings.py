"""The settings of a descent: what is taken, and what is refused in one line."""

import math

import numpy as np
import pytest

from normbench import optimizers
from normbench.datasets import UserError
from normbench.engine.settings import Settings
from normbench.settings import check, powers_of_ten


def test_decades_are_the_powers_of_ten_with_both_ends():
    assert powers_of_ten(-3, 1) == [0.001, 0.01, 0.1, 1.0, 10.0]
    assert powers_of_ten(2, 2) == [100.0]
    assert len(powers_of_ten(-300, 300)) == 601
    fine = powers_of_ten(-1, 1, 4)
    assert fine[::4] == [0.1, 1.0, 10.0]
    assert np.diff(np.log10(fine)) == pytest.approx(np.full(8, 0.25))


@pytest.mark.parametrize(
    ("of", "words"),
    [
        ((2, 1), "must run upwards between -300 and 300"),
        ((-301, 0), "must run upwards between -300 and 300"),
        ((0, 301), "must run upwards between -300 and 300"),
        ((0, 1, 0), "with 1 point a decade or more"),
        ((0, 1.5), "1.5 is not a whole number"),
        ((True, 2), "True is not a whole number"),
        ((-250, 250, 2), "makes 1001 step sizes; 1000 at most"),
    ],
)
def test_decades_that_are_none_are_refused(of, words):
    with pytest.raises(UserError, match=words) as caught:
        powers_of_ten(*of)
    assert str(caught.value).startswith("step_sizes=${decades:")
    assert len(powers_of_ten(-249, 250, 2)) == 999


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"step_sizes": "0.1"}, "step_sizes=0.1: is not a list"),
        ({"step_sizes": []}, "is empty"),
        ({"step_sizes": [0.1, True]}, "True is not a number"),
        ({"step_sizes": ["a"]}, "'a' is not a number"),
        ({"step_sizes": [0.0]}, "0.0 is not positive and finite"),
        ({"step_sizes": [math.inf]}, "inf is not positive and finite"),
        ({"step_sizes": [1.0, 0.1, 0.1]}, "0.1 stands in it twice"),
        ({"start": "ones"}, "start=ones: must be .*zeros, normal"),
        ({"start": 3}, "start=3: must be .*zeros, normal"),
        ({"start": []}, "must be .*zeros, normal"),
        ({"start": [0.1, "a"]}, "start=a"),
        ({"start": [math.nan, 0.1]}, "start=nan: must be a finite number$"),
        ({"start": [[0.1], [10**400]]}, "must be a finite number$"),
        ({"step_sizes": [10**400]}, "is not positive and finite"),
        ({"record": "path"}, "record=path: must be a list"),
        ({"starts": 2}, "is the same start every time"),
        ({"starts": 2, "start": [0.0, 1.0]}, "is the same start every time"),
        ({"iterations": -1}, "iterations=-1"),
        ({"start_scale": 0}, "start_scale=0"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_settings_that_make_no_descent_are_refused(settings, words):
    with pytest.raises(UserError, match=words):
        Settings(**{"step_sizes": (0.1,), **settings})


@pytest.mark.parametrize(
    "step_sizes", [np.array([0.5, 2], np.float32), [np.float32(0.5), 2], np.array([0.5, 2])]
)
def test_numbers_of_numpy_are_numbers(step_sizes):
    sizes = check("step_sizes", step_sizes)
    assert sizes == (0.5, 2.0)
    assert {*map(type, sizes)} == {float}
    assert check("step_sizes", np.array(0.5)) == (0.5,)
    assert check("start_scale", np.float32(0.5)) == 0.5


def test_step_sizes_are_a_set_in_ascending_order():
    assert check("step_sizes", [1, 0.1, 10.0]) == check("step_sizes", [10, 1.0, 0.10])
    assert Settings((0.1, 1.0), shown_step=1).shown_step == 1.0
    assert optimizers.momentum(np.float32(0.5)).steady


def test_settings_at_their_bounds_are_taken():
    start, record = [[0, 1.5], [-2, 3]], ["path"]
    made = Settings([0.1, 1], iterations=0, seed=0, start=start, record=record)
    assert (made.start, made.record) == (start, record)  # as they were given
    assert (check("start", start), check("record", record)) == (((0, 1.5), (-2, 3)), ("path",))
    for start in ("normal", "same_function"):
        assert Settings((0.1,), starts=2, start=start).starts == 2
