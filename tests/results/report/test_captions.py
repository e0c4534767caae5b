"""Captions of what was recorded beside the descent: each number is counted again, another way."""

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from normbench.results.report import captions
from normbench.results.store.runs import Sweep
from tests.results.made import runs

RNG = np.random.default_rng(4)


@dataclass(frozen=True)
class Kept(Sweep):
    """A sweep whose schemes keep arrays, by their label."""

    parts: Any = field(default_factory=dict)

    def arrays(self, rows, name):
        return {label: self.parts[label] for label in rows["label"] if label in self.parts}


def said(figure, **parts):
    """What is said of a figure of these arrays, by the scheme's name."""
    made = runs(*(("x", label, {1.0: (3, 0.001)}) for label in parts))
    return captions.finding(Kept("-", "s", made.runs, parts=parts), "x", figure)


def spectrum(*after):
    return {"before": np.ones(len(after)), "after": np.array(after, dtype=float)}


def test_the_directions_that_hold_most_of_the_variance():
    told = said("spectrum", a=spectrum(90, 9, 1, 0), b=spectrum(1, 1, 1, 1))
    assert told == (
        "The number of directions, of 4, that hold 90% of the variance goes from 1 under a to 4 "
        "under b."
    )
    assert said("spectrum", a=spectrum(89, 10, 1)).endswith(" is 2 under a.")
    assert said("spectrum", a=spectrum(0, 0)) == ""  # nothing varies
    # Ten equal ones, whose sums are rounded: nine of them hold 90 percent, whatever their size.
    for size in (1.0, 0.1, 1 / 3, 1e-20):
        assert said("spectrum", a=spectrum(*[size] * 10)).endswith(" is 9 under a.")


@pytest.mark.parametrize("seed", range(5))
def test_one_direction_less_holds_less(seed):
    values = np.sort(np.random.default_rng(seed).pareto(1.0, 12))[::-1]
    count = int(re.search(r"is (\d+) under", said("spectrum", a=spectrum(*values)))[1])
    assert values[:count].sum() >= 0.9 * values.sum() > values[: count - 1].sum()


def features(values, every=None):
    values = np.asarray(values, dtype=float)
    return {"values": values, "all": np.array(every or values.shape[1])}


def test_the_widths_of_features():
    raw = RNG.standard_normal((50, 3)) * [1.0, 10.0, 1000.0]
    even = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    ratio = max(map(np.std, raw.T)) / min(map(np.std, raw.T))
    told = said("features", a=features(raw), b=features(even))
    assert told == (
        "Of the coordinates that vary, the largest standard deviation over the smallest goes from "
        f"1 under b to {ratio:.4g} under a."
    )
    # Constants are left out: blank, shifted, and those that are rounding after a scheme.
    flat = np.column_stack([raw, np.zeros(50), np.full(50, 0.1), even[:, 0] * 1e-16])
    assert said("features", a=features(flat), b=features(even)) == told
    assert said("features", a=features(np.ones((5, 2)))) == ""
    assert " that vary among 3 of 64, the" in said("features", a=features(raw, 64))


def images(count, error, shares=(0.5, 0.3, 0.2)):
    original = np.arange(1.0, 10.0)
    built = original * (1 - np.array(error)[:, None])
    parts = {"components": np.ones((len(shares), 9)), "variance": np.array(shares)}
    return parts | {"count": np.array(count), "built": built, "original": original}


def test_the_image_amid_its_build_up():
    one, other = images(range(7), np.linspace(1, 0, 7)), images(range(7), [1, 1, 1, 0.9, 0, 0, 0])
    assert said("reconstruction", a=one, b=other) == (
        "The relative error of the image from 3 of 6 coordinates goes from 0.5 under a to 0.9 "
        "under b."
    )
    blank = one | {"original": np.zeros(9)}
    assert said("reconstruction", a=blank) == ""
    few = images(range(4), [1, 0.5, 0.2, 0])  # of fewer coordinates: a sentence of its own
    assert said("reconstruction", a=one, b=few).count("The relative error") == 2


def test_the_variance_of_the_components_that_are_drawn():
    assert said("components", a=images([0], [0])) == (
        "The share of the variance that 3 components add is 1 under a."
    )
    many = images([0], [0], shares=[1 / 64] * 64)
    assert said("components", a=many).endswith("that 16 components add is 0.25 under a.")
    assert said("components", a=many | {"original": np.ones(7)}) == ""  # no image


def test_the_variance_in_the_plane_of_a_biplot():
    one, other = ({"shares": np.array(own)} for own in ([0.5, 0.3], [0.25, 0.25]))
    assert said("biplot", a=one, b=other) == (
        "The share of the variance in the plane that is drawn goes from 0.5 under b to 0.8 under a."
    )
