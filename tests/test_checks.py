"""Parts of a job that do not fit each other are refused before anything is fitted."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from normbench import costs, optimizers
from normbench.datasets import UserError, made, make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, check
from normbench.models import Mlp


def job(classes=2, shape=(9, 2), cost="softmax", rule=None, model=None, **settings):
    names = [f"c{number}" for number in range(classes)] or None
    y = np.arange(shape[0]) % classes if classes else np.arange(shape[0]) / 2
    x = np.random.default_rng(0).standard_normal(shape)
    data = make_dataset("x", x, y, class_names=names, source="-")
    chosen = Settings((1.0,), 1, **settings)
    rule = rule or optimizers.gradient_descent()
    return Job(data, getattr(costs, cost), StandardScaler(), rule, chosen, model=model)


@pytest.mark.parametrize(
    ("cost", "classes", "wanted"),
    [("softmax", 2, [-1, 1, -1]), ("multiclass_softmax", 2, [0, 1, 0]), ("least_squares", 0, None)],
)
def test_classes_are_signs_of_one_score_and_numbers_of_several(cost, classes, wanted):
    made = job(classes, (3, 2), cost)
    assert made.encode(made.dataset.y, "float32").tolist() == (wanted or [0, 0.5, 1])


@pytest.mark.parametrize(
    ("cost", "scores"),
    [("softmax", [1, 1]), ("least_squares", [1, 1, 3]), ("multiclass_softmax", [1, 2, 3])],
)
def test_scores_are_one_a_class_where_the_cost_takes_them(cost, scores):
    found = [job(classes, cost=cost).scores for classes in (0, 2, 3)]
    assert found[: len(scores)] == scores


@pytest.mark.parametrize(
    ("cost", "classes", "shape", "words"),
    [
        ("softmax", 3, (9, 9), r"\(multiclass, 3 classes\); .*multiclass_softmax$"),
        ("softmax", 0, (9, 2), r"\(regression\); .*dataset.task=classes\)$"),
        ("least_absolute_deviations", 2, (9, 2), r"dataset.task=regression\)$"),
        ("softmax", 3, (4, 9), "x has 4 points of 9 .* dataset.points_in=columns$"),
    ],
)
def test_a_cost_that_does_not_fit_is_refused_with_what_would(cost, classes, shape, words):
    asked = job(classes, shape, cost)
    with pytest.raises(UserError, match=words):
        check(replace(asked, dataset=replace(asked.dataset, read_from_rows=True)))


def test_the_columns_of_a_file_are_no_remedy_for_generated_text():
    with pytest.raises(UserError, match=r"use cost=multiclass_softmax$"):
        check(replace(job(), dataset=made.text()))


NORMALIZED = Mlp([5], normalize="batch")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"batch": 10}, "batch=10: x has 9 training points; choose at most 9"),
        ({"batch": 5, "rule": optimizers.newton()}, "batch=5: .* need all points at each step"),
        ({"batch": 5, "records_per_pass": 3}, "has 2 updates; choose at most 2"),
        (
            {"step_schedule": (3, 0.5), "rule": optimizers.lbfgs()},
            r"step_schedule=.3, ?0.5.: does not go with lbfgs, which has its own",
        ),
        (
            {"rule": optimizers.newton(), "cost": "perceptron"},
            "newton: does not go with .* linear pieces",
        ),
        ({"model": Mlp([5]), "start": "zeros"}, "stationary point,: does not go with"),
        (
            {"model": Mlp([5]), "start": "normal", "start_scale": 10},
            "start_scale=10: .*use model.start_scale",
        ),
        (
            {"model": Mlp([5], affine_step=0.1), "start": "normal", "rule": optimizers.newton()},
            "model.affine_step: .*use optimizer=gradient_descent",
        ),
        ({"model": NORMALIZED, "start": "normal", "batch": 4}, "leaves a batch of one of 9 points"),
        ({"batch": 4, "statistics": "batch"}, None),
        ({"model": NORMALIZED, "start": "normal", "batch": 5}, None),
        ({"model": Mlp([5]), "start": "normal", "batch": 4, "records_per_pass": 3}, None),
    ],
)
def test_settings_of_steps_and_networks_that_exclude_each_other_are_refused(fields, words):
    if words is None:
        check(job(**fields))
        return
    with pytest.raises(UserError, match=words):
        check(job(**fields))
