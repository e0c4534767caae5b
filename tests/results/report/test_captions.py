"""Captions of what was recorded beside the descent: each number is counted again, another way."""

import re
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from normbench import names
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
    return captions.describe_figure(Kept("-", "s", made.runs, parts=parts), "x", figure)


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


def test_a_range_is_over_the_finite_numbers():
    def told(*values):
        return [sentence.text for sentence in captions._range("It", "abcd", values)]

    assert told(2.0, np.inf, 1.0, np.nan) == ["It goes from 1 under c to 2 under a."]
    assert told(np.nan, np.inf, 3.0, None) == ["It is 3 under c."]
    assert told(np.nan, -np.inf) == []
    assert told(1.0, 1.0 + 1e-12) == ["It is 1 under a = b."]
    assert told(-2.0, -2.0) == ["It is -2 under a = b."]


def board(*rows):
    columns = ["scheme", "rank", "solved", "problems"]
    return pd.DataFrame(rows, columns=columns)


def test_mean_ranks_are_in_the_order_of_the_board(monkeypatch):
    def told(*rows):
        monkeypatch.setattr(captions.comparisons, "leaderboard", lambda table: board(*rows))
        return captions.describe_figure(runs(("x", "a", {1.0: 3.0})), "x", "overview")

    words = "Over 4 problems, the mean rank by the iterations until"
    three = told(("a", 1.5, 1.0, 4), ("b", 1.5, 0.5, 3), ("c", 3.0, 1.0, 4))
    assert three.startswith(words)
    assert three.endswith(": a 1.5 (100%), b 1.5 (50%), c 3 (100%).")
    tied = told(("a", 1.5, 0.5, 4), ("b", 1.5, 0.5, 4), *((s, 3.0, 1.0, 4) for s in "cde"))
    assert tied.endswith(": a = b 1.5 (50%), c = d = e 3 (100%).")
    four = told(*((scheme, k + 1.0, 1.0, 4) for k, scheme in enumerate("abcd")))
    assert four.endswith(": a 1 (100%), b 2 (100%), c 3 (100%), d 4 (100%).")
    five = told(*((scheme, k + 1.0, 1.0, 4) for k, scheme in enumerate("abcde")))
    assert five.endswith(": a 1 (100%), ..., e 5 (100%).")
    assert told() == ""


def windows(*served, basis="exact", left=0.001):
    """Return the caption of schemes so many of whose ten directions step size 1 trains."""
    made = runs(*(("x", f"s{n}", {1.0: (3, left)}) for n in range(len(served))), iterations="10")
    made.runs[names.BASIS.column] = basis
    arrays = {
        f"s{n}": {
            "window_curvature": np.array([1.0] * count + [1e-6] * (10 - count)),
            "window_share": np.ones(10),
            "window_times": np.ones(10, int),
        }
        for n, count in enumerate(served)
    }
    return captions.describe_figure(Kept("-", "s", made.runs, parts=arrays), "x", "windows")


def test_of_many_schemes_those_with_the_fewest_and_most_directions_have_a_sentence():
    def sentence(scheme, count):
        return (
            f"Step size 1 trains {count} of 10 directions of s{scheme}, which hold {count}0% of "
            "the excess cost."
        )

    four = windows(5, 2, 9, 3)
    assert four == " ".join(sentence(n, count) for n, count in enumerate((5, 2, 9, 3)))
    assert windows(5, 2, 9, 3, 4) == f"{sentence(1, 2)} {sentence(2, 9)}"
    # Not exact: where as much is gone as is predicted, the sentence speaks of the start.
    near = windows(5, basis="bound", left=0.1 * 7.4)
    assert "trains 5 of 10 directions of s0, which hold 50% of the excess cost at the start" in near
    far = windows(5, basis="bound", left=0.76)
    assert "it predicts that 50% of the excess cost is removed, and 24% was" in far
    assert "it predicts that 50% of the excess cost is removed, and 0% was" in windows(
        5, basis="bound", left=1.3
    )
    assert "trains 5 of 10" in windows(5, basis="bound", left=np.nan)


class Layers:
    """Layers of which so many are gone at any step size."""

    def __init__(self, gone):
        self.distinct_offsets, self._gone = np.arange(9), gone

    def count_gone(self, step):
        return self._gone


def test_of_many_melts_those_with_the_most_and_least_left_have_a_sentence(monkeypatch):
    def told(*left):
        melts = [
            SimpleNamespace(
                label=f"s{n}", layers=Layers(n), step=0.12345, excess_left=share, row={}
            )
            for n, share in enumerate(left)
        ]
        monkeypatch.setattr(captions.melt, "drawable_schemes", lambda arrays, rows, steps: melts)
        return captions.describe_figure(runs(("x", "a", {1.0: 3.0})), "x", "melt")

    def sentence(scheme, percent):
        are = "is" if scheme == 1 else "are"
        return (
            f"At step size 0.12, {scheme} of 9 layers of s{scheme} {are} gone, and {percent} % of "
            "the excess cost is left."
        )

    assert told(0.2, 0.5) == f"{sentence(1, 50)} {sentence(0, 20)}"
    assert told(0.2, 0.5, 0.3, 0.4).count("At step size") == 4
    assert told(0.2, 0.5, 0.3, 0.4, 0.25) == f"{sentence(1, 50)} {sentence(0, 20)}"


def test_converging_step_sizes_are_counted_where_all_schemes_tried_as_many():
    made = runs(*(("x", scheme, {0.1: 3.0, 1.0: 3.0}) for scheme in "ab"))
    is_step = made.runs["role"] == names.STEP
    made.runs.loc[is_step, "verdict"] = ["converged", "diverged", "converged", "converged"]
    text = captions.describe_figure(made, "x", "phase_diagram")
    assert text == "Step sizes that converged, of 2: a 1, b 2."
    none = runs(("x", "a", None))
    assert captions.describe_figure(none, "x", "phase_diagram") == ""


def test_a_scheme_that_loses_variance_says_how_much():
    made = runs(*(("x", scheme, {1.0: 3.0}) for scheme in "abc"))
    assert captions.describe_figure(replace(made), "x", "projection") == ""
    lost = made.runs["normalizer"].map({"a": 0.12345, "b": np.nan, "c": 0.0})
    made.runs[names.VARIANCE_LOST.column] = lost
    text = captions.describe_figure(made, "x", "projection")
    assert text == "a loses 12.345% of the variance. c loses 0.000% of the variance."


def test_a_figure_without_numbers_has_no_sentence():
    made = runs(("x", "a", {1.0: 3.0}))
    for figure in ("nothing", "film", "windows", "contours", "data", "sharpness", "landing"):
        assert captions.describe_figure(made, "x", figure) == ""


@pytest.mark.parametrize(("count", "shown"), [(49, 49), (50, 16)])
def test_up_to_49_components_are_all_drawn(count, shown):
    told = said("components", a=images([0], [0], shares=[1 / count] * count))
    assert f"that {shown} components add is {shown / count:.4g} under a." in told


def test_the_best_step_sizes_are_those_of_the_schemes_and_may_be_shown_ones():
    made = runs(("x", "a", {0.1: 3.0}), ("x", "b", {10.0: 3.0}), ("x", "c", {0.1: 3.0}))
    assert captions.describe_figure(made, "x", "step_sizes") == (
        "The best step size goes from 0.1 under a = c to 10 under b."
    )
    chosen = Sweep("-", "s", made.runs.assign(**{names.STEP_CHOSEN.column: "true"}))
    assert captions.describe_figure(chosen, "x", "step_sizes").startswith(
        "The shown step size goes from"
    )


@pytest.mark.parametrize(
    ("figure", "metric"),
    [
        ("contours", names.CONDITION),
        ("data", names.COVARIANCE_CONDITION),
        ("sharpness", names.SHARPNESS),
        ("landing", names.LANDING_SOFT),
    ],
)
def test_a_number_of_each_scheme_is_told_as_a_range(figure, metric):
    made = runs(("x", "a", {1.0: 3.0}), ("x", "b", {1.0: 3.0}))
    values = made.runs["normalizer"].map({"a": 4.0, "b": 0.5})
    told = captions.describe_figure(
        Sweep("-", "s", made.runs.assign(**{metric.column: values})), "x", figure
    )
    assert told.endswith(" goes from 0.5 under b to 4 under a.")
