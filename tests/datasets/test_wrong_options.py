"""Options of what is made and of what is drawn of it: a wrong one is told in a line."""

import numpy as np
import pytest

from normbench.datasets import Sampling, UserError, make_dataset, split
from normbench.datasets.bundled import diabetes, wine
from normbench.datasets.made import broken, ferris_wheel, gaussian, nonorthogonal, two_moons
from normbench.datasets.sampling import assign_folds, draw_subset, keep_classes, set_fit_points

GAUSSIAN = [
    *({"points": 1}, {"features": 0}, {"classes": 0}, {"seed": -1}),
    *({"condition_number": float("inf")}, {"rotation": -0.1}, {"offset": float("nan")}),
    *({"separation": -1}, {"label_noise": 1}, {"correlation": 1}, {"eigenvalues": [1, "a"]}),
]
SHAPE = [{"points": 1}, {"noise": -1}, {"seed": -1}, {"points": 10**15}]
BROKEN = [{"scale": 0}, {"kind": "holes"}]
NAMED = [  # a loader, and options of which the first is named
    *((gaussian, wrong) for wrong in GAUSSIAN),
    *((load, wrong) for load in (ferris_wheel, nonorthogonal, two_moons) for wrong in SHAPE),
    *((broken, wrong) for wrong in (*BROKEN, {"seed": -1})),
    *((nonorthogonal, {"angle": angle}) for angle in (0, 90, "wide")),
    (two_moons, {"seed": 2**32}),
]


@pytest.mark.parametrize(("load", "wrong"), NAMED)
def test_an_option_of_a_made_data_set_is_named(load, wrong):
    with pytest.raises(UserError, match=f"dataset.{next(iter(wrong))}="):
        load(**wrong)


FEW = {"points": 200, "features": 4}
SAID = [
    (FEW | {"dummies": [0.1] * 5}, "dataset.features=4: must be 5 or more"),
    (FEW | {"dummies": [0]}, "must be a finite number, above 0"),
    (FEW | {"dummies": 0.5}, "must be a list of numbers"),
    ({"noise": 1}, "dataset.noise=1, dataset.label_noise=0: noise is of dataset.task=regression"),
    ({"task": "regression", "label_noise": 0.1}, "dataset.label_noise=0.1: noise is of"),
    ({"task": "lines"}, "dataset.task=lines: "),
]


@pytest.mark.parametrize(("options", "said"), SAID)
def test_gaussian_classes_say_what_does_not_go_together(options, said):
    with pytest.raises(UserError, match=said):
        gaussian(**options)


HELD = split(wine(), 0.25, 0)
LONELY = make_dataset("few", np.eye(5), [0, 0, 0, 0, 1], class_names=["a", "b"], source="made")
DRAWN = [
    (lambda: draw_subset(wine(), 1, 0), r"dataset\.points=1: must be"),
    (lambda: draw_subset(wine(), 179, 0), r"dataset\.points=179: must be from 2 to 178"),
    (lambda: draw_subset(LONELY, 2, 3), r"dataset\.points=2: leaves no point of class b"),
    (lambda: assign_folds(wine(), 1, 1, 0), r"dataset\.folds=1: must be"),
    (lambda: assign_folds(wine(), 90, 1, 0), r"dataset\.folds=90: must be from 2 to 89"),
    (lambda: assign_folds(wine(), 5, 0, 0), r"dataset\.repeats=0: must be"),
    (lambda: assign_folds(wine(), 2, 10**9, 0), "repeats=1000000000: must be from 1 to 10000"),
    (lambda: assign_folds(HELD, 5, 1, 0), r"dataset\.folds=5: holds points of wine out by itself"),
    (lambda: keep_classes(wine(), ["class_9"]), r"a list of classes of wine \(class_0, class_1,"),
    (lambda: keep_classes(wine(), "class_1"), "keep_classes=class_1: must be a list of classes"),
    (lambda: keep_classes(wine(), []), r"keep_classes=\[\]: must be a list of classes"),
    (lambda: keep_classes(diabetes(), [1]), r"of diabetes \(it has none\)"),
    (lambda: set_fit_points(HELD, "both"), r"dataset\.fit_on=both: must be one of train, all"),
    (lambda: set_fit_points(wine(), "all"), r"dataset\.fit_on=all: wine has no test points"),
]


@pytest.mark.parametrize(("draw", "message"), DRAWN)
def test_what_cannot_be_drawn_says_the_setting_and_the_remedy(draw, message):
    with pytest.raises(UserError, match=message):
        draw()


COPIES = {"augment": "round"}
CELLS = {"outliers": "cells"}
SAMPLED = [
    ({"augment": "square"}, "dataset.augment=square: must be one of aligned, round"),
    (COPIES | {"augment_copies": 0}, "dataset.augment_copies=0: must be from 1 to 10000"),
    (COPIES | {"augment_noise": 0}, "dataset.augment_noise=0: must be a finite number, above 0"),
    (COPIES | {"augment_copies": 10**12}, "dataset.augment_copies=1000000000000: must be from 1"),
    ({"augment_noise": -1}, "dataset.augment_noise=-1"),
    ({"outliers": "rows"}, "dataset.outliers=rows: must be one of cells, points"),
    ({"outlier_share": 0}, "dataset.outlier_share=0: must be a finite number, above 0"),
    ({"outlier_share": 1.5}, "dataset.outlier_share=1.5: must be"),
    ({"outlier_size": -1}, "dataset.outlier_size=-1: must be a finite number, above 0"),
    (CELLS | {"outlier_size": 1e200}, r"dataset.outlier_size=1e\+200: must be"),
]


@pytest.mark.parametrize(("settings", "words"), SAMPLED)
def test_a_setting_of_copies_or_outliers_is_told(settings, words):
    with pytest.raises(UserError, match=words):
        Sampling(**settings).apply(wine())
