"""Targets as a cost takes them."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from normbench import costs
from normbench.costs.declaration import traits
from normbench.datasets import UserError, made
from normbench.engine.settings import Settings
from normbench.engine.targets import check_cost, encode_targets, scores_of
from normbench.job import Job, check
from normbench.optimizers import gradient_descent


@pytest.mark.parametrize(
    ("scores", "classes", "wanted"), [(1, 2, [-1, 1, 1]), (2, 2, [0, 1, 1]), (1, 0, [0, 1, 1])]
)
def test_classes_are_signs_of_one_score_and_numbers_of_several(scores, classes, wanted):
    found = encode_targets(np.array([0, 1, 1]), scores, classes, np.float32)
    assert found.tolist() == wanted
    assert scores > 1 or found.dtype == np.float32


@pytest.mark.parametrize(
    ("cost", "task", "classes", "shape", "words"),
    [
        ("softmax", "multiclass", 3, (9, 9), r"\(multiclass, 3 classes\); .*multiclass_softmax$"),
        ("softmax", "regression", 0, (9, 2), r"\(regression\); .*dataset.task=classes\)$"),
        ("least_absolute_deviations", "binary", 2, (9, 2), r"dataset.task=regression\)$"),
        ("softmax", "multiclass", 3, (2, 9), "x has 2 points of 9 .* dataset.points_in=columns$"),
    ],
)
def test_a_cost_that_does_not_fit_is_refused_with_what_would(cost, task, classes, shape, words):
    points = {"x": np.empty(shape), "read_from_rows": True}
    data = SimpleNamespace(name="x", task=task, classes=classes, **points)
    check_cost(costs.least_squares, data)
    with pytest.raises(UserError, match=words):
        check_cost(getattr(costs, cost), data)


def test_the_columns_of_a_file_are_no_remedy_for_generated_text():
    data = made.text()
    assert data.x.shape[0] < data.x.shape[1]
    job = Job(data, costs.softmax, StandardScaler(), gradient_descent(), Settings((1.0,), 1))
    with pytest.raises(UserError, match=r"use cost=multiclass_softmax$"):
        check(job)


@pytest.mark.parametrize(
    ("cost", "scores"),
    [("softmax", [1, 1]), ("least_squares", [1, 1, 3]), ("multiclass_softmax", [1, 2, 3])],
)
def test_scores_are_one_a_class_where_the_cost_takes_them(cost, scores):
    found = [scores_of(traits(getattr(costs, cost)), classes) for classes in (0, 2, 3)]
    assert found[: len(scores)] == scores
