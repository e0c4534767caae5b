"""Captions of figures: what their numbers show, and nothing that they do not."""

import numpy as np
import pytest

from normbench import names
from normbench.results.compare import heldout
from normbench.results.report.captions import describe_figure
from tests.results.compare.test_heldout import splits
from tests.results.made import recorded, runs, tagged

RAW = np.random.default_rng(4).standard_normal((50, 3)) * [1.0, 10.0, 1000.0]
EVEN = (RAW - RAW.mean(axis=0)) / RAW.std(axis=0)
RATIO = RAW.std(axis=0).max() / RAW.std(axis=0).min()
FLAT = np.column_stack([RAW, np.zeros(50), np.full(50, 0.1), EVEN[:, 0] * 1e-16])


def kept(left=0.41, iterations="10", step=1.0, columns=(), **parts):
    """Return schemes that end with a share of the excess, and keep these arrays."""
    jobs = [("x", label, {step: (3, left)}) for label in parts]
    sweep = tagged(runs(*jobs, iterations=iterations), STEP_SIZE=step, **dict(columns))
    return recorded(sweep, parts)


def spectrum(*after):
    return {"before": np.ones(len(after)), "after": np.array(after, dtype=float)}


def features(values, every=None):
    return {"values": values, "all": np.array(every or values.shape[1])}


def images(count, error, shares=(0.5, 0.3, 0.2)):
    original = np.arange(1.0, 10.0)
    built = original * (1 - np.array(error)[:, None])
    parts = {"components": np.ones((len(shares), 9)), "variance": np.array(shares)}
    return parts | {"count": np.array(count), "built": built, "original": original}


def curvature(*values):
    """Return the directions of a cost, of equal shares of the excess."""
    values = np.array(values)
    return {"layer_curvature": values, "layer_share": values**0}


def layers(*values):
    """Return the layers of least squares, from cost 1 to 0.41 in two iterations."""
    parts = {"layer_curvature": np.array(values), "layer_share": np.ones(len(values)) / len(values)}
    parts |= {names.TRAIN_COST.key: np.array([[[1.0, 0.5, 0.41]]]), "minimum": 0.0}
    return parts | {"step_sizes": np.array([1.0])}


def served(*counts, left=0.001, **columns):
    """Return schemes so many of whose ten directions step size 1 trains."""
    parts = {
        f"s{n}": curvature(*[1.0] * count, *[1e-6] * (10 - count)) for n, count in enumerate(counts)
    }
    return kept(left, columns=columns, **parts)


def trains(scheme, count):
    return f"Step size 1 trains {count} of 10 directions of s{scheme}, which hold {count}0% of"


def converging(*sizes):
    jobs = [("x", name, dict.fromkeys(own, 3.0)) for name, own in zip("ab", sizes)]
    return tagged(runs(*jobs), "b", "step", verdict="converged")


def over_problems(**schemes):
    return runs(*((f"x{n}", s, {1.0: k}) for s, own in schemes.items() for n, k in enumerate(own)))


IMAGE, BLANK = images([0], [0]), {"original": np.zeros(9)}
HALF = images(range(7), np.linspace(1, 0, 7))
FILM = {"lipschitz": [9.0, 1.0], "condition": [4567.0, 1.0], "iterations": [-1, 3], "most": 1000}
EXACT = {"BASIS": names.EXACT}
BOTH = {"a": {}, "b": {}}

# The figure, what it shows, and its caption: the whole one, or where it ends in "...", its start.
CAPTIONS = [
    (
        "spectrum",
        lambda: kept(a=spectrum(90, 9, 1, 0), b=spectrum(1, 1, 1, 1)),
        "The number of directions, of 4, that hold 90% of the variance goes from 1 under a to 4 "
        "under b.",
    ),
    ("spectrum", lambda: kept(a=spectrum(0, 0)), ""),  # nothing varies
    (  # nine equal ones hold 90 percent, although their sums are rounded
        "spectrum",
        lambda: kept(a=spectrum(*[0.1] * 10)),
        "The number of directions, of 10, that hold 90% of the variance is 9 under a.",
    ),
    (  # constants are left out: blank, shifted, and those that are rounding after a scheme
        "features",
        lambda: kept(a=features(FLAT), b=features(EVEN)),
        "Of the coordinates that vary, the largest standard deviation over the smallest goes from "
        f"1 under b to {RATIO:.4g} under a.",
    ),
    (
        "features",
        lambda: kept(a=features(RAW, 64)),
        "Of the coordinates that vary among 3 of 64, ...",
    ),
    ("features", lambda: kept(a=features(np.ones((5, 2)))), ""),
    (
        "reconstruction",
        lambda: kept(a=HALF, b=images(range(7), [1, 1, 1, 0.9, 0, 0, 0])),
        "The relative error of the image from 3 of 6 coordinates goes from 0.5 under a to 0.9 "
        "under b.",
    ),
    ("reconstruction", lambda: kept(a=HALF | BLANK), ""),
    (
        "components",
        lambda: kept(a=IMAGE),
        "The share of the variance that 3 components add is 1 under a.",
    ),
    (
        "components",
        lambda: kept(a=images([0], [0], shares=[1 / 64] * 64)),
        "The share of the variance that 16 components add is 0.25 under a.",
    ),
    ("components", lambda: kept(a=IMAGE | {"original": np.ones(7)}), ""),  # no image
    (
        "biplot",
        lambda: kept(a={"shares": np.array([0.5, 0.3])}, b={"shares": np.array([0.25, 0.25])}),
        "The share of the variance in the plane that is drawn goes from 0.5 under b to 0.8 under "
        "a.",
    ),
    *(
        (
            figure,
            lambda metric=metric: tagged(kept(**BOTH, c={}), **{metric: {"a": 4.0, "b": 0.5}}),
            f"{what} goes from 0.5 under b to 4 under a.",
        )
        for figure, metric, what in (
            ("contours", "CONDITION", "The condition number of the cost's curvature"),
            ("data", "COVARIANCE_CONDITION", "The condition number of the points' covariance"),
            ("sharpness", "SHARPNESS", "At the end, step size x L / 2"),
            (
                *("landing", "LANDING_SOFT"),
                "The share of directions that a step goes less than 0.1 of the way to their "
                "minimum",
            ),
        )
    ),
    ("contours", lambda: tagged(kept(**BOTH), CONDITION=[np.inf] * 4), ""),
    (
        "projection",
        lambda: tagged(kept(**BOTH, c={}), VARIANCE_LOST={"a": 0.12345, "c": 0.0}),
        "a loses 12.345% of the variance. c loses 0.000% of the variance.",
    ),
    (
        "step_sizes",
        lambda: runs(*(("x", s, {size: 3.0}) for s, size in zip("abc", (0.1, 10.0, 0.1)))),
        "The best step size goes from 0.1 under a = c to 10 under b.",
    ),
    (
        "step_sizes",
        lambda: tagged(kept(**BOTH), STEP_CHOSEN="true"),
        "The shown step size is 1 under a = b.",
    ),
    (
        "phase_diagram",
        lambda: converging([0.1, 1.0], [1.0, 10.0]),
        "Step sizes that converged, of 2: a 0, b 2.",
    ),
    ("phase_diagram", lambda: converging([0.1, 1.0], [1.0]), ""),
    *(
        (figure, lambda: tagged(kept(**BOTH), GRIDLESS="true"), "")
        for figure in ("step_sizes", "phase_diagram")
    ),
    *(
        (figure, lambda: kept(iterations="0", **BOTH), "")
        for figure in ("step_sizes", "phase_diagram")
    ),
    (
        "melt",
        lambda: kept(iterations="2", a=layers(1.0, 0.01)),
        "At step size 1, 1 of 2 layers of a is gone, and 41 % of the excess cost is left.",
    ),
    (
        "melt",
        lambda: kept(iterations="2", a=layers(1.0, 0.01), columns={"MINIMUM_REACHED": "false"}),
        "At step size 1, 1 of 2 layers of a is gone, and 41 % of the excess cost over the lowest "
        "cost that it saw is left.",
    ),
    (
        "film",
        lambda: kept(a=FILM),
        "From raw points to a, the condition number of the cost goes from 4570 to 1, and the "
        "iterations until 1 percent of the excess cost is left, at step size 1/L, from > 1,000 to "
        "3.",
    ),
    (
        "overview",
        lambda: over_problems(a=[3, 3], b=[3, 3], c=[9, np.inf]),
        "Over 2 problems, the mean rank by the iterations until 1 % of the excess cost is left "
        "(and the share of problems where that happens): a = b 1.5 (100%), c 3 (50%).",
    ),
    ("overview", lambda: runs(("x", "a", {1.0: 3}), ("y", "b", {1.0: 3})), ""),
    *(
        (figure, lambda: runs(("x", "a", {1.0: 3})), "")
        for figure in ("nothing", "film", "landing")
    ),
]


def all_said():
    """Return every caption, and the sentence on test costs."""
    rises = heldout.describe_rises(splits(a=[0.2]).assign(**{"best cost": 0.0, "start": 0.6}))
    return [*(caption for *_, caption in CAPTIONS), rises]


@pytest.mark.parametrize(("figure", "make", "caption"), CAPTIONS)
def test_a_caption_says_what_the_numbers_show(figure, make, caption):
    said = describe_figure(make(), "x", figure)
    assert said.startswith(caption[:-3]) if caption.endswith("...") else said == caption


@pytest.mark.parametrize("seed", range(3))
def test_one_direction_less_holds_less(seed):
    values = np.sort(np.random.default_rng(seed).pareto(1.0, 12))[::-1]
    said = describe_figure(kept(a=spectrum(*values)), "x", "spectrum")
    count = int(said.split()[-3])
    assert values[:count].sum() >= 0.9 * values.sum() > values[: count - 1].sum()


def test_a_test_cost_rises_where_it_does():
    rising, still = (
        splits(a=[0.2]).assign(**{"cost": 0.2, "best cost": 0.2 - by, "start": 0.6})
        for by in (0.03, 0.01)
    )
    assert heldout.describe_rises(rising).startswith("The test cost rises again under a (from 0.17")
    assert heldout.describe_rises(still) == ""
