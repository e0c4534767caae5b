"""Whether the parts of a job fit each other: mistakes that are told before anything is fitted."""

from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, RobustScaler, StandardScaler

from normbench import measures
from normbench.costs.declaration import traits
from normbench.datasets import UserError
from normbench.datasets.on_disk.points import is_in_memory
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import spell_setting
from normbench.engine.plan import Batches
from normbench.engine.scheme.applying import check_scheme
from normbench.engine.scheme.probed import FEATURES
from normbench.models.network import SOLVED, Mlp
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
    _check_steps(job)
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


def _check_steps(job: Job) -> None:
    """Raise `UserError` for a schedule without step sizes, or a batch that cannot be."""
    settings, name, points = job.settings, job.dataset.name, len(job.dataset.x)
    if settings.step_schedule is not None and job.optimizer.gridless:
        setting = spell_setting("step_schedule", settings.step_schedule)
        raise UserError(f"{setting}: lbfgs chooses its own step sizes; use step_schedule=null")
    batch, setting = settings.batch, f"batch={settings.batch}"
    if batch is None:
        return
    if batch > points:
        rule = f"{name} has {points} training points; choose at most {points}, or batch=null"
        raise UserError(f"{setting}: {rule}")
    if job.optimizer.uses_objective:
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
    keeps_sparse = (
        # Of schemes that centre, it alone gets the mean of sparse points.
        scheme_type is StandardScaler
        or (scheme_type is RobustScaler and not scheme.with_centering)
        or (scheme_type is MaxAbsScaler and not getattr(scheme, "clip", False))
        or (scheme_type is FunctionTransformer and scheme.func is None)
    )
    if isinstance(x, SparsePoints) and not keeps_sparse:
        raise UserError(
            f"normalizer {name_scheme(scheme)}: would fill sparse points, or cannot be fitted on "
            "them; choose identity, maxabs, unit_variance, centre or standard, on all columns"
        )


def _check_network(job: Job, model: Mlp) -> None:
    """Raise `UserError` for a setting that a network does not take."""
    settings, optimizer, points = job.settings, job.optimizer, len(job.dataset.x)
    scale, default_scale = settings.start_scale, default("start_scale")
    if scale != default_scale:
        remedy = f"start_scale={default_scale:g} and model.start_scale={scale:g}"
        raise UserError(f"start_scale={scale:g}: is for model=linear; use {remedy}")
    for is_wrong, setting, remedy in (
        (settings.start == "same_function", "start=same_function", "start=null"),
        (settings.start == "zeros", "start=zeros, a stationary point", "start=null"),
        (settings.statistics != FITTED, "normalizer.statistics", "normalizer.statistics=fitted"),
        (not is_in_memory(job.dataset.x), "points that are not in memory", "dense points"),
        (job.l2_in == FEATURES, "cost.l2_in=features", "cost.l2_in=transformed"),
        (optimizer.scheme is not None, "optimizer=preconditioned", "optimizer=gradient_descent"),
    ):
        if is_wrong:
            raise UserError(f"{setting}: is for model=linear; use {remedy}, or model=linear")
    if optimizer.uses_objective and (model.has_running_statistics or model.affine_step):
        raise UserError(
            "model.statistics=running, model.affine_step: the optimizer chooses its steps by the "
            "cost, as line_search, newton and lbfgs do; use optimizer=gradient_descent"
        )
    if model.affine == SOLVED and not traits(job.cost).squares:
        rule = "gain and shift are solved for cost=least_squares; use that, or model.affine=true"
        raise UserError(f"model.affine=solved: {rule}")
    batch = settings.batch or points
    if model.needs_all_points and 1 in (batch, points % batch):
        raise UserError(
            f"batch={batch}: leaves a batch of one of {points} points, and model.normalize="
            f"{model.normalize} needs two points, whose values have a deviation; choose another "
            "batch, or model.normalize=layer"
        )
