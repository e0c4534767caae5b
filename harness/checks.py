"""Whether the parts of a job fit each other: mistakes that are told before anything is fitted."""

from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, RobustScaler, StandardScaler

from normbench import measures
from normbench.costs.declaration import traits
from normbench.datasets import UserError
from normbench.datasets.on_disk.points import is_in_memory
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import spell_setting
from normbench.engine.plan import Batches
from normbench.engine.scheme import FEATURES, check_scheme
from normbench.models.formulas import TEXTBOOK_RULE
from normbench.models.network import SOLVED, WEIGHT_NORMALIZATION, WHITENINGS
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
    _check_sparse(job)
    _check_combinations(job)
    measures.check(job.settings, job.dataset, job.scheme)


def _check_cost(job: Job) -> None:
    """Raise `UserError` for a cost that is for other targets, or has no curvature to divide by."""
    data, cost, cost_traits = job.dataset, job.cost, traits(job.cost)
    tasks, task, classes = cost_traits.tasks, data.task, data.classes
    name = f"cost={getattr(cost, '__name__', cost)}"
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
    settings, name, points, model = job.settings, job.dataset.name, len(job.dataset.x), job.model
    batch = settings.batch or points
    updates, setting = Batches(points, batch).updates_per_pass, f"batch={batch}"
    if batch > points:
        rule = f"{name} has {points} training points; choose at most {points}, or batch=null"
        raise UserError(f"{setting}: {rule}")
    if settings.batch and job.optimizer.uses_problem:
        rule = "line_search, newton and lbfgs need all points at each step; use batch=null"
        raise UserError(f"{setting}: {rule}, or optimizer=gradient_descent")
    if settings.batch and settings.records_per_pass > updates:  # else two records would be equal
        rule = f"a pass with {setting} has {updates} updates; choose at most {updates}"
        raise UserError(f"records_per_pass={settings.records_per_pass}: {rule}")
    if model is not None and model.needs_all_points and 1 in (batch, points % batch):
        raise UserError(
            f"{setting}: leaves a batch of one of {points} points, and model.normalize="
            f"{model.normalize} needs two points, whose values have a deviation; choose another "
            "batch, or model.normalize=layer"
        )


def _check_sparse(job: Job) -> None:
    """Raise `UserError` for a scheme that would fill sparse points."""
    scheme, scheme_type = job.scheme, type(job.scheme)
    keeps_sparse = (
        # Of schemes that centre, it alone gets the mean of sparse points.
        scheme_type is StandardScaler
        or (scheme_type is RobustScaler and not scheme.with_centering)
        or (scheme_type is MaxAbsScaler and not getattr(scheme, "clip", False))
        or (scheme_type is FunctionTransformer and scheme.func is None)
    )
    if isinstance(job.dataset.x, SparsePoints) and not keeps_sparse:
        raise UserError(
            f"normalizer {name_scheme(scheme)}: would fill sparse points, or cannot be fitted on "
            "them; choose identity, maxabs, unit_variance, centre or standard, on all columns"
        )


def _check_combinations(job: Job) -> None:
    """Raise `UserError` for a setting that does not go with another part of the job."""
    settings, optimizer, model = job.settings, job.optimizer, job.model
    moves = settings.statistics != FITTED
    statistics = f"normalizer.statistics={settings.statistics}"
    of_features, in_features = job.l2_in == FEATURES, "cost.l2_in=features"
    schedule = spell_setting("step_schedule", settings.step_schedule)
    takes_no_schedule = settings.step_schedule and optimizer.gridless
    is_dense, dense = is_in_memory(job.dataset.x), "dense points in memory"
    preconditioned, scale = optimizer.scheme is not None, settings.start_scale
    descended, own_sizes = "optimizer=gradient_descent", "lbfgs, which has its own"
    is_flat = optimizer.curved and traits(job.cost).piecewise == "linear"
    mistakes: list[tuple[object, str, str, str]] = [
        (is_flat, "optimizer=newton", "a cost made of linear pieces", "cost=softmax"),
        (moves and not is_dense, statistics, "these points", dense),
        (moves and job.dataset.fit_on == "all", statistics, "dataset.fit_on=all", "fit_on=train"),
        (moves and job.l2 and of_features, statistics, in_features, "cost.l2_in=transformed"),
        (preconditioned and not is_dense, "optimizer=preconditioned", "these points", dense),
        (takes_no_schedule, schedule, own_sizes, "step_schedule=null"),
    ]
    if model is not None:
        by_cost, is_running = optimizer.uses_problem, model.has_running_statistics
        no_deviations = model.normalize in (WEIGHT_NORMALIZATION, *WHITENINGS)
        not_by_rule = no_deviations and model.epsilon == TEXTBOOK_RULE
        is_solved, solved = model.affine == SOLVED, "model.affine=solved"
        squares, network = traits(job.cost).squares, "model=mlp"
        moved_scale, by_its_cost = scale != default("start_scale"), "steps chosen by the cost"
        mistakes += [
            (moved_scale, f"start_scale={scale:g}", network, "model.start_scale"),
            (settings.start == "same_function", "start=same_function", network, "start=null"),
            (settings.start == "zeros", "start=zeros, a stationary point,", network, "start=null"),
            (moves, statistics, network, "normalizer.statistics=fitted"),
            (not is_dense, network, "these points", dense),
            (of_features, in_features, network, "cost.l2_in=transformed"),
            (preconditioned, "optimizer=preconditioned", network, descended),
            (by_cost and is_running, "model.statistics=running", by_its_cost, descended),
            (by_cost and model.affine_step, "model.affine_step", by_its_cost, descended),
            (is_solved and model.hidden, solved, "hidden layers", "model=linear"),
            (is_solved and not squares, solved, "this cost", "cost=least_squares"),
            (is_solved and is_running, solved, "model.statistics=running", "model.affine=true"),
            (not_by_rule, "model.epsilon=textbook", "this normalization", "a number"),
        ]
    for is_wrong, setting, other, remedy in mistakes:
        if is_wrong:
            raise UserError(f"{setting}: does not go with {other}; use {remedy}")
