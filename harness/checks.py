"""Whether the parts of a job fit each other: mistakes that are told before anything is fitted."""

from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler

from normbench import measures
from normbench.costs.declaration import traits
from normbench.datasets import UserError
from normbench.datasets.on_disk.points import is_in_memory
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.engine.plan import Batches
from normbench.engine.scheme import FEATURES, check_scheme
from normbench.models.formulas import TEXTBOOK_RULE
from normbench.models.network import SOLVED, WEIGHT_NORMALIZATION, WHITENINGS, Mlp
from normbench.normalizers.on_columns import name_scheme
from normbench.preparation import Job
from normbench.settings import FITTED, default

# What an error message proposes, by the task of the data set.
REMEDIES = {
    "binary": "cost=softmax or cost=multiclass_softmax",
    "multiclass": "cost=multiclass_softmax",
    "regression": "cost=least_squares",
    "unlabelled": "a data set with targets (of a file of yours: set dataset.target), or, without a "
    "descent, iterations=0 'record=[points]'",
}


def check(job: Job) -> None:
    """Raise `UserError` for a cost, a scheme, a model or a record that does not fit the job.

    Nothing is fitted: whether the scheme has the start `same_function` is found when the job runs.
    """
    check_scheme(job.scheme)
    if not measures.without_descent(job.settings):
        _check_cost(job)
    _check_batch(job)
    _check_scheme_settings(job)
    if job.model is not None:
        _check_network(job, job.model)
    measures.check(job.settings, job.dataset, job.scheme)


def _check_cost(job: Job) -> None:
    """Raise `UserError` for a cost that is for other targets, or has no curvature to divide by."""
    data, cost, cost_traits = job.dataset, job.cost, traits(job.cost)
    tasks, task, classes = cost_traits.tasks, data.task, data.classes
    name = f"cost={getattr(cost, '__name__', cost)}"
    if job.step_rule.curved and cost_traits.piecewise == "linear":
        rule = "is made of linear pieces, without second derivatives for newton to divide by"
        raise UserError(f"{name}: {rule}; use optimizer=gradient_descent, or cost=softmax")
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


def _check_batch(job: Job) -> None:
    """Raise `UserError` for a batch that cannot be."""
    settings, name, points = job.settings, job.dataset.name, len(job.dataset.x)
    batch, setting = settings.batch, f"batch={settings.batch}"
    if batch is None:
        return
    if batch > points:
        rule = f"{name} has {points} training points; choose at most {points}, or batch=null"
        raise UserError(f"{setting}: {rule}")
    if job.optimizer.uses_problem:
        rule = "line_search, newton and lbfgs need all points at each step; use batch=null"
        raise UserError(f"{setting}: {rule}, or optimizer=gradient_descent")
    updates = Batches(points, batch).updates_per_pass
    if settings.records_per_pass > updates:  # two records after as many updates would be equal
        rule = f"a pass with {setting} has {updates} updates; choose at most {updates}"
        raise UserError(f"records_per_pass={settings.records_per_pass}: {rule}")


def _check_scheme_settings(job: Job) -> None:
    """Raise `UserError` where moving statistics or sparse points refuse the scheme or a setting."""
    x, scheme, scheme_type = job.dataset.x, job.scheme, type(job.scheme)
    moves, is_fitted_on_all = job.settings.statistics != FITTED, job.dataset.fit_on == "all"
    penalizes_features = job.l2 and job.l2_in == FEATURES
    if moves and (penalizes_features or is_fitted_on_all or not is_in_memory(x)):
        raise UserError(
            f"normalizer.statistics={job.settings.statistics}: takes dense points in memory, "
            "dataset.fit_on=train and cost.l2_in=transformed; use these, or statistics=fitted"
        )
    # Of schemes that centre, the first alone gets the mean of sparse points.
    keeps_sparse = scheme_type in (StandardScaler, MaxAbsScaler) or (
        scheme_type is FunctionTransformer and scheme.func is None
    )
    if isinstance(x, SparsePoints) and not keeps_sparse:
        raise UserError(
            f"normalizer {name_scheme(scheme)}: would fill sparse points, or cannot be fitted on "
            "them; choose identity, maxabs, unit_variance, centre or standard, on all columns"
        )


def _check_network(job: Job, model: Mlp) -> None:
    """Raise `UserError` for a setting that a network does not take."""
    settings, optimizer, points = job.settings, job.optimizer, len(job.dataset.x)
    by_cost, descended = optimizer.uses_problem, "optimizer=gradient_descent"
    is_solved, has_textbook_rule = model.affine == SOLVED, model.epsilon == TEXTBOOK_RULE
    no_deviations = model.normalize in (WEIGHT_NORMALIZATION, *WHITENINGS)
    for is_wrong, setting, remedy in (
        (settings.start_scale != default("start_scale"), "start_scale", "model.start_scale"),
        (settings.start == "same_function", "start=same_function", "start=null"),
        (settings.start == "zeros", "start=zeros, a stationary point", "start=null"),
        (settings.statistics != FITTED, "normalizer.statistics", "normalizer.statistics=fitted"),
        (not is_in_memory(job.dataset.x), "points that are not in memory", "dense points"),
        (job.l2_in == FEATURES, "cost.l2_in=features", "cost.l2_in=transformed"),
        (optimizer.scheme is not None, "optimizer=preconditioned", descended),
        (by_cost and model.has_running_statistics, "model.statistics=running", descended),
        (by_cost and model.affine_step, "model.affine_step", descended),
        (is_solved and not traits(job.cost).squares, "model.affine=solved", "cost=least_squares"),
        (is_solved and model.hidden, "model.affine=solved", "model=linear"),
        (is_solved and model.has_running_statistics, "model.affine=solved", "model.affine=true"),
        (has_textbook_rule and no_deviations, "model.epsilon=textbook", "a number"),
    ):
        if is_wrong:
            rule = "does not go with the chosen model, optimizer and cost"
            raise UserError(f"{setting}: {rule}; use {remedy}")
    batch = settings.batch or points
    if model.needs_all_points and 1 in (batch, points % batch):
        raise UserError(
            f"batch={batch}: leaves a batch of one of {points} points, and model.normalize="
            f"{model.normalize} needs two points, whose values have a deviation; choose another "
            "batch, or model.normalize=layer"
        )
