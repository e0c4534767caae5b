"""Whether the parts of a job fit each other: mistakes that are told before anything is fitted."""

from collections.abc import Iterator
from typing import Any

from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, RobustScaler, StandardScaler

from normbench import measures
from normbench.costs.declaration import traits
from normbench.datasets import UserError
from normbench.datasets.on_disk.points import is_in_memory
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import spell_setting
from normbench.engine.plan import Batches
from normbench.engine.scheme.applying import check_scheme
from normbench.engine.scheme.probed import FEATURES, TRANSFORMED
from normbench.models.network import SOLVED
from normbench.normalizers.affine import find_affine_traits
from normbench.normalizers.on_columns import name_scheme
from normbench.preparation import Job
from normbench.settings import FITTED, default
from normbench.settings import check as check_setting

# What an error message proposes, by the task of the data set.
REMEDIES = {
    "binary": "cost=softmax or cost=multiclass_softmax",
    "multiclass": "cost=multiclass_softmax",
    "regression": "cost=least_squares",
    "unlabelled": "a data set with targets (of a file of yours: set dataset.target), or, without a "
    "descent, iterations=0 'record=[points]'",
}
SPARSE_SCHEMES = (FunctionTransformer, MaxAbsScaler, RobustScaler, StandardScaler)
Rules = Iterator[tuple[Any, str]]  # whether a mistake was made, and what is said then


def check(job: Job) -> None:
    """Raise `UserError` for a cost, a scheme, a model or a record that does not fit the job.

    Nothing is fitted: whether the scheme has the start `same_function` is found when the job runs.
    """
    check_scheme(job.scheme)
    if not measures.without_descent(job.settings):
        _check_cost(job)
    for is_wrong, message in (*_step_rules(job), *_scheme_rules(job), *_network_rules(job)):
        if is_wrong:
            raise UserError(message)
    measures.check(job.settings, job.dataset, job.scheme)


def _check_cost(job: Job) -> None:
    """Raise `UserError` for a cost that is for other targets, or has no curvature to divide by."""
    data, cost, cost_traits = job.dataset, job.cost, traits(job.cost)
    tasks, task, classes = cost_traits.tasks, data.task, data.classes
    name = f"cost={getattr(cost, '__name__', cost)}"
    if job.step_rule.curved and cost_traits.piecewise == "linear":
        raise UserError(
            f"{name}: is made of linear pieces, whose second derivatives are 0, and the optimizer "
            "(such as newton) divides by them; use optimizer=gradient_descent or another cost, "
            "such as cost=softmax"
        )
    if task in tasks:
        return
    remedy = REMEDIES[task]
    # The data or the cost are of regression, not both: the task may have been inferred wrongly.
    if task == "regression" or (classes and tasks == ("regression",)):
        other_task = "classes" if task == "regression" else "regression"
        remedy += f" (or, where a file's targets are meant so, dataset.task={other_task})"
    # Fewer points than features: the columns of the file may be the points.
    points, features = data.x.shape
    if data.read_from_rows and points < features:
        remedy += f"; {data.name} has {points} points of {features} features: of a csv file with "
        remedy += "one point per column, dataset.points_in=columns"
    targets = f"{task}, {classes} classes" if classes else task
    raise UserError(
        f"{name}: does not fit the targets of {data.name} ({targets}); it is for "
        f"{' and '.join(tasks)} targets; use {remedy}"
    )


def _step_rules(job: Job) -> Rules:
    """Yield the mistakes in batches and schedules of steps."""
    settings, optimizer, points = job.settings, job.optimizer, len(job.dataset.x)
    yield (
        settings.step_schedule is not None and optimizer.gridless,
        f"{spell_setting('step_schedule', settings.step_schedule)}: the optimizer chooses its own "
        "step sizes, as lbfgs does; use step_schedule=null",
    )
    batch = settings.batch
    if batch is None:
        return
    yield (
        batch > points,
        f"batch={batch}: {job.dataset.name} has {points} training points; choose at most {points}, "
        "or batch=null for all of them",
    )
    yield (
        optimizer.uses_objective,
        f"batch={batch}: the optimizer needs all points at each step, as line_search, newton and "
        "lbfgs do; use batch=null, or another one, such as optimizer=gradient_descent",
    )
    updates = Batches(points, batch).updates_per_pass
    yield (  # two records with the same number of updates would be equal
        settings.records_per_pass > updates,
        f"records_per_pass={settings.records_per_pass}: a pass over {points} points with "
        f"batch={batch} has {updates} updates; choose at most {updates}",
    )


def _scheme_rules(job: Job) -> Rules:
    """Yield the mistakes in what is fitted: moving statistics, sparse points, a penalty."""
    data, scheme, l2_in = job.dataset, job.scheme, job.l2_in
    affine_traits = find_affine_traits(scheme)
    penalizes_features = job.l2 and l2_in == FEATURES
    check_setting("cost.l2_in", l2_in)
    yield (
        penalizes_features and affine_traits is None,
        f"{spell_setting('cost.l2_in', l2_in)}: normalizer {name_scheme(scheme)} is not known to "
        "be an affine map of the features, so that it has no weights of theirs; leave it out, or "
        f"use {spell_setting('cost.l2_in', TRANSFORMED)}",
    )
    is_same = is_in_memory(data.x) and data.fit_on == "train" and not penalizes_features
    yield (
        job.settings.statistics != FITTED and not is_same,
        f"normalizer.statistics={job.settings.statistics}: takes dense points in memory, "
        "dataset.fit_on=train and cost.l2_in=transformed; use these, or statistics=fitted",
    )
    # Of schemes that centre, only `StandardScaler` gets the mean of sparse points.
    centres = affine_traits is None or affine_traits.centres
    fills = type(scheme) not in SPARSE_SCHEMES or (centres and type(scheme) is not StandardScaler)
    yield (
        isinstance(data.x, SparsePoints) and fills,
        f"normalizer {name_scheme(scheme)}: would fill sparse points, or cannot be fitted on them; "
        "choose identity, maxabs, unit_variance, centre or standard, on all columns",
    )


def _network_rules(job: Job) -> Rules:
    """Yield the mistakes in the settings of a network; none for linear scores."""
    model, settings, optimizer = job.model, job.settings, job.optimizer
    if model is None:
        return
    scale, default_scale = settings.start_scale, default("start_scale")
    for is_wrong, setting, remedy in (
        (settings.start == "same_function", "start=same_function", "start=null"),
        (settings.start == "zeros", "start=zeros", "start=null"),  # a stationary point
        (
            scale != default_scale,
            f"start_scale={scale:g}",
            f"start_scale={default_scale:g} and model.start_scale={scale:g}",
        ),
        (settings.statistics != FITTED, "normalizer.statistics", "normalizer.statistics=fitted"),
        (not is_in_memory(job.dataset.x), "points that are not in memory", "dense points"),
        (job.l2_in == FEATURES, "cost.l2_in=features", "cost.l2_in=transformed"),
        (optimizer.scheme is not None, "optimizer=preconditioned", "optimizer=gradient_descent"),
    ):
        yield is_wrong, f"{setting}: is for model=linear; use {remedy}, or model=linear"
    yield (
        optimizer.uses_objective and (model.has_running_statistics or model.affine_step),
        "model.statistics=running and model.affine_step: the optimizer chooses its steps by the "
        "cost, as line_search, newton and lbfgs do; use optimizer=gradient_descent",
    )
    yield (
        model.affine == SOLVED and not traits(job.cost).squares,
        "model.affine=solved: gain and shift are solved for cost=least_squares; use "
        "model.affine=true, or that cost",
    )
    # A point by itself has no deviation to be normalized by.
    points = len(job.dataset.x)
    batch = settings.batch or points
    yield (
        model.needs_all_points and 1 in (batch, points % batch),
        f"batch={batch}: of {points} points leaves a batch of one, and "
        f"model.normalize={model.normalize} needs two points or more, whose values have a "
        "deviation; choose another batch, or model.normalize=layer",
    )
