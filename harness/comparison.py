"""The comparison from Python: the same as the command line, on arrays, without a store."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, replace
from inspect import Parameter, Signature, signature
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd

from normbench import names, settings
from normbench.choices import build, import_target, on_columns, options, sampling
from normbench.contracts import GROUP_CONTRACTS
from normbench.costs.declaration import Traits
from normbench.datasets import Dataset, Sampling, UserError, label_dataset
from normbench.datasets.labels import convert_targets
from normbench.datasets.tables import TableOptions, table_dataset
from normbench.datasets.values import did_you_mean, limited_memory, python_spelling
from normbench.engine.scheme import check_scheme
from normbench.engine.settings import Settings
from normbench.job import Job, PointsCache, run, with_default_start
from normbench.optimizers import Optimizer
from normbench.record.outcome import RecordHeader, of_outcome
from normbench.record.provenance import provenance_tags
from normbench.rehearsal import rehearse
from normbench.results.report.notebook import Comparison
from normbench.results.store import memory as recorded
from normbench.results.store.job_records import JobRecord
from normbench.synonyms import setting_of
from normbench.verdicts.convergence import Rules

MAX_COLUMNS_LENGTH = 60  # characters of a list of columns in the name of a scheme
MAX_ARGUMENT_LENGTH = 200  # characters of an argument in the call that is recorded
PLAIN_TYPES = (bool, int, float, str, type(None))
ARGUMENTS = dict(settings.arguments())  # by the names of arguments
ARGUMENT_NAMES = {"normalizer": "normalizers", "dataset": "x"}  # that differ from their setting
DEFAULT_COST, DEFAULT_OPTIMIZER, DEFAULT_STEP_SIZES, DEFAULT_ITERATIONS = map(
    settings.default, ("cost", "optimizer", "step_sizes", "iterations")
)


def compare(  # noqa: D417 (settings are added to `Args` below)
    x: Any,
    y: Any,
    cost: Any = DEFAULT_COST,
    normalizers: Any = ("identity", "standard", "pca_sphere"),
    step_sizes: float | Sequence[float] = DEFAULT_STEP_SIZES,
    iterations: int = DEFAULT_ITERATIONS,
    *,
    optimizer: Any = DEFAULT_OPTIMIZER,
    model: Any = "linear",
    rules: Rules | Mapping[str, Any] | None = None,
    drop: Sequence[str | int] = (),
    encode: Sequence[str | int] = (),
    fill: str | None = None,
    missing: Sequence[str | float] = (),
    merge_labels: bool = False,
    name: str = "x",
    **other_settings: Any,
) -> Comparison:
    """Compare normalizers: descend one cost under each of them with every step size.

    Arguments from `step_sizes` on are settings of the command line, without their groups.

    Args:
        x: Points (P, N), an array or a pandas frame, one point per row.
        y: Targets (P,): labels of any kind for a cost of classes, numbers for one of regression.
            `least_squares` takes numbers of two distinct values for labels, and a function of your
            own without declared tasks takes integers for labels.
        cost: A name under `conf/cost`, or a function of scores (R, C, p) and targets (p,) that
            returns the sum over points, (R,).
        normalizers: Names under `conf/normalizer`, or scikit-learn transformers, pipelines among
            them; one, or a list.
        optimizer: A name under `conf/optimizer`, or an optimizer, such as
            `normbench.optimizers.momentum(0.5)`.
        model: A name under `conf/model`, or a model, such as `normbench.models.Mlp(hidden=[100])`.
        rules: `Rules` of the verdicts, or some of its fields by their names.
        drop: Columns of a frame that are left out.
        encode: Columns of a frame that become one column a category.
        fill: What fills gaps of a frame, such as `median`; `drop` leaves such points out.
        missing: Entries of a frame that stand for a gap.
        merge_labels: Whether labels that differ by capitals or a final stop alone are one class.
        name: What the data are called.
        **other_settings: The settings below. Of `split_seed` a list is taken, too: a split for
            each.

    Returns:
        The comparison; a notebook shows its sentence, figures and table.

    Raises:
        UserError: A value is out of its range or does not fit another; a `ValueError`.
        TypeError: There is no such argument; the message names the one that is meant.
    """
    given = {**locals()}
    call = _describe_call({**given.pop("other_settings"), **given})
    _refuse_unknown(other_settings)
    arguments = {"step_sizes": step_sizes, "iterations": iterations, **other_settings}
    with python_spelling(normalizer="normalizers"), limited_memory(arguments.get("memory")):
        seeds = _seeds(arguments.pop("split_seed", settings.default("dataset.split_seed")))
        values = {
            key: settings.check(row.name, arguments.get(key, row.default))
            for key, row in ARGUMENTS.items()
        }
        function, cost_name = _cost(cost)
        columns = TableOptions(drop, encode, fill, missing)
        data = _dataset(name, x, y, function, columns, merge_labels)
        schemes = [_scheme(normalizer) for normalizer in _listed(normalizers)]
        verdict_rules = _rules(rules)
        model_name, network = _model(model)
        optimizer_name, step_rule = _optimizer(optimizer)
        records: list[JobRecord] = []
        for seed in seeds:
            split_values = values | {"split_seed": seed}
            drawn = sampling(split_values)
            points, descent = drawn.apply(data), _descent(split_values, drawn)
            shared = PointsCache(points.x)
            for scheme_name, scheme in schemes:
                job = Job(
                    dataset=points,
                    cost=function,
                    normalizer=_restrict_to_columns(_clone(scheme), split_values["columns"]),
                    optimizer=step_rule,
                    settings=descent,
                    l2=split_values["l2"],
                    l2_in=split_values["l2_in"],
                    rules=verdict_rules,
                    model=network,
                )
                job = with_default_start(job) if split_values["start"] is None else job
                if not records and not isinstance(cost, str):  # the first job tries a user's cost
                    rehearse(job)
                choices = {
                    "dataset": data.name,
                    "cost": cost_name,
                    "normalizer": scheme_name,
                    "optimizer": optimizer_name,
                    "model": model_name,
                }
                header = _header(job, scheme, split_values, choices)
                records.append(of_outcome(header, points, run(job, points_cache=shared)))
    return Comparison(recorded.sweep(records, call, provenance_tags()), data.notes)


def _describe_call(arguments: Mapping[str, Any]) -> str:
    """Return a call of `compare` as text: the arguments that are no defaults, each cut to a length.

    Args:
        arguments: The arguments by name, with x and y.
    """
    parameters = signature(compare).parameters
    texts = [
        f"{key}={text}"
        for key, value in arguments.items()
        if key not in ("x", "y")
        if (text := _describe_argument(value))
        != _describe_argument(parameters[key].default if key in parameters else None)
    ]
    return f"normbench.compare({', '.join(['x', 'y', *texts])})"


def _describe_argument(value: Any) -> str:
    """Return an argument as Python writes it; a function or a class by its name."""
    if isinstance(value, (list, tuple)):
        return shorten(f"[{', '.join(map(_describe_argument, value))}]", MAX_ARGUMENT_LENGTH)
    return shorten(getattr(value, "__name__", None) or repr(value), MAX_ARGUMENT_LENGTH)


def _refuse_unknown(other_settings: Mapping[str, Any]) -> None:
    """Raise TypeError for an argument that `compare` does not take, and name a near one.

    A known synonym, such as `lr`, is answered with the argument here; any other name with a
    similar one, or with all arguments.
    """
    parameters = signature(compare).parameters
    for key in other_settings:
        if key not in ARGUMENTS:
            # The setting that is meant; empty for a name that is no synonym of any.
            setting = key if key in ARGUMENT_NAMES else setting_of(key)
            near_name = ARGUMENT_NAMES.get(setting, setting.rpartition(".")[2])
            remedy = (
                f"; it is called {near_name} here"
                if near_name in parameters
                else did_you_mean(key, parameters)
            )
            remedy = remedy or f"; it takes {', '.join(parameters)}"
            raise TypeError(f"compare() takes no {key}{remedy}")


def _seeds(value: Any) -> list[int]:
    """Return the checked seeds of the splits as a list, each seed once.

    Args:
        value: The argument `split_seed`: one seed, or several.

    Raises:
        UserError: It is empty, or a seed is no natural number.
    """
    seeds = list(value) if hasattr(value, "__iter__") and not isinstance(value, str) else [value]
    if not seeds:
        raise UserError("split_seed=[]: is empty; give a whole number, or several as [0, 1, 2]")
    return [settings.check("dataset.split_seed", seed) for seed in dict.fromkeys(seeds)]


def _listed(normalizers: Any) -> list[Any]:
    """Return the argument `normalizers` as a list; a single one becomes a list of one.

    The entries are not checked: `_scheme` refuses what is no scheme. Raises `UserError` for an
    empty list.
    """
    is_single = isinstance(normalizers, str) or hasattr(normalizers, "fit")
    schemes = (
        [normalizers] if is_single or not hasattr(normalizers, "__iter__") else list(normalizers)
    )
    if not schemes:
        raise UserError("normalizers=[]: is empty; name one at least, such as 'standard'")
    return schemes


def _scheme(normalizer: Any) -> tuple[str, Any]:
    """Return the name of a scheme, and the scheme.

    Args:
        normalizer: A name under `conf/normalizer`, or a transformer. A pipeline is called by the
            names of its steps, joined by ` + `.

    Raises:
        UserError: It is no scheme.
    """
    if isinstance(normalizer, str):
        return normalizer, build("normalizer", options("normalizer", normalizer))
    if isinstance(normalizer, type):
        raise UserError(
            f"normalizers={normalizer.__name__}: is a class; give an object of it, such as "
            f"normalizers=[{normalizer.__name__}()]"
        )
    if isinstance(normalizer, (list, tuple)):
        raise UserError(
            f"normalizers=[{normalizer!r}]: holds a list, which is no scheme; for schemes one "
            "after the other give a pipeline, such as sklearn.pipeline.make_pipeline(Contrast(), "
            "StandardScaler()), with normbench.normalizers.Contrast"
        )
    check_scheme(normalizer)
    # A pipeline has steps, pairs of a name and a scheme; any other scheme is a step by itself.
    steps = getattr(normalizer, "steps", None) or [("", normalizer)]
    return " + ".join(_name(step) for _, step in steps), normalizer


def _name(scheme: Any) -> str:
    """Return the name of a scheme: its class, or for a `ColumnTransformer` its schemes and columns.

    Args:
        scheme: A transformer, or a text that scikit-learn takes in place of one, such as `drop`.
    """
    if isinstance(scheme, str):
        return scheme
    transformers = getattr(scheme, "transformers", None)
    if type(scheme).__name__ != "ColumnTransformer" or not transformers:
        return type(scheme).__name__
    names_on_columns = [
        f"{_name(member)} on {shorten(str(columns), MAX_COLUMNS_LENGTH)}"
        for _, member, columns in transformers
    ]
    return ", ".join([*names_on_columns, f"{_name(scheme.remainder)} on the rest"])


def _restrict_to_columns(scheme: Any, columns: Any) -> Any:
    """Return a scheme on some columns; the scheme itself where the columns are None."""
    return scheme if columns is None else on_columns(scheme, columns)


def _model(model: Any) -> tuple[str, Any]:
    """Return the name of a model, and the model: None for the linear one.

    Args:
        model: A name under `conf/model`, or a model.

    Raises:
        UserError: It is no model.
    """
    if isinstance(model, str):
        return model, build("model", options("model", model))
    if isinstance(model, type):
        raise UserError(
            f"model={model.__name__}: is a class; give an object of it, such as "
            f"model={model.__name__}()"
        )
    # The contract accepts None, which a loader returns for the linear model; a user names it.
    if not GROUP_CONTRACTS["model"].accepts_result(model) or model is None:
        raise UserError(
            f"model={model!r}: is no model; give a name, such as 'mlp', or a model, such as "
            "normbench.models.Mlp(hidden=[100])"
        )
    return type(model).__name__, model


def _optimizer(optimizer: Any) -> tuple[str, Optimizer]:
    """Return the name of an optimizer, and the optimizer.

    Args:
        optimizer: A name under `conf/optimizer`, or an optimizer, which is called by the function
            that makes its step.

    Raises:
        UserError: It is no optimizer.
    """
    if isinstance(optimizer, str):
        return optimizer, build("optimizer", options("optimizer", optimizer))
    if not isinstance(optimizer, Optimizer):
        raise UserError(
            f"optimizer={optimizer!r}: is no optimizer; give a name, such as 'momentum', or an "
            "optimizer, such as normbench.optimizers.momentum(0.5)"
        )
    step_name = getattr(optimizer.step, "__qualname__", type(optimizer.step).__name__)
    return step_name.partition(".")[0], deepcopy(optimizer)  # a job finds its scheme's columns


def _cost(cost: Any) -> tuple[Any, str]:
    """Return the function of a cost, and its name.

    Args:
        cost: A name under `conf/cost`, or a function of scores and targets.

    Raises:
        UserError: It is neither.
    """
    if isinstance(cost, str):
        return import_target("cost", options("cost", cost)["_target_"]), cost
    if not callable(cost):
        raise UserError(
            f"cost={cost!r}: is no cost; give a name, such as 'softmax', or a function of scores "
            "(R, C, p) and targets (p,) that gives their sum over points, (R,)"
        )
    return cost, getattr(cost, "__name__", type(cost).__name__)


def _rules(rules: Any) -> Rules:
    """Return the rules of the verdicts; raise `UserError` for one that does not exist.

    Args:
        rules: `Rules`, a mapping of some of its fields, or None for the defaults.
    """
    if rules is None or isinstance(rules, Rules):
        return rules or Rules()
    rule_names = [field.name for field in fields(Rules)]
    # What a message quotes: keys that are no rules, or the argument itself if it is no mapping.
    unknown = (
        [key for key in rules if key not in rule_names] if isinstance(rules, Mapping) else [rules]
    )
    if unknown:
        raise UserError(
            f"rules: there is no {unknown[0]}; give some of {', '.join(rule_names)}, such as "
            "rules={'tail': 0.2}"
        )
    return Rules(**rules)


def _descent(values: Mapping[str, Any], drawn: Sampling) -> Settings:
    """Return the settings of the descent of a job.

    Args:
        values: The values of all settings, by the names of arguments.
        drawn: How the points are sampled; its seed counts only where points are held out.

    Returns:
        The settings; `draws` are the seeds that drew the points: of the split, and of the data.
    """
    descent_values = {
        field.name: values[field.name] for field in fields(Settings) if field.name in values
    }
    # None may become a random start; `normal` is one, so that `starts` may be several.
    descent_values["start"] = "normal" if values["start"] is None else values["start"]
    split_seed = drawn.split_seed if drawn.test_fraction else 0
    points_seed = 0  # the points are given
    return Settings(**descent_values, draws=(split_seed, points_seed))


def _signature() -> Signature:
    """Return the signature of `compare`, with every setting as an argument."""
    compare_signature = signature(compare)
    parameters = [
        parameter
        for parameter in compare_signature.parameters.values()
        if parameter.kind != parameter.VAR_KEYWORD
    ]
    setting_parameters = [
        Parameter(key, Parameter.KEYWORD_ONLY, default=row.default)
        for key, row in ARGUMENTS.items()
        if key not in compare_signature.parameters
    ]
    return compare_signature.replace(parameters=[*parameters, *setting_parameters])


# Help and editors show every setting as an argument, though `compare` takes them by `**`.
compare.__signature__ = _signature()  # type: ignore[attr-defined]
compare.__doc__ = (compare.__doc__ or "").replace(
    "\n\n    Returns:",
    "".join(
        f"\n        {key}: {row.help}."
        for key, row in ARGUMENTS.items()
        if f"        {key}: " not in (compare.__doc__ or "")
    )
    + "\n\n    Returns:",
)


def _header(
    job: Job, scheme: Any, values: Mapping[str, Any], choices: Mapping[str, str]
) -> RecordHeader:
    """Return the header of the record of a job, with the keys that the command line records.

    Args:
        job: The job.
        scheme: The scheme as the user gave it; those of its parameters that are plain values are
            recorded.
        values: The values of the settings, by the names of arguments.
        choices: The name of the choice in each group.
    """
    scheme_params = scheme.get_params() if hasattr(scheme, "get_params") else {}
    # Later entries replace earlier ones of the same key.
    params = {
        **choices,
        **{
            f"normalizer.{key}": value
            for key, value in scheme_params.items()
            if isinstance(value, PLAIN_TYPES)
        },
        **{f"rules.{key}": value for key, value in vars(job.rules).items()},
        **{f"model.{key}": value for key, value in _describe_model(job.model).items()},
        **{row.name: values[key] for key, row in ARGUMENTS.items() if row.recorded},
        "start": job.settings.start,
        "step_sizes": list(job.effective_settings.step_sizes),
        "record": list(job.settings.record),
    }
    tags = dict(choices)
    # A network starts at `normal` anyway; with the linear model it stands in for `same_function`,
    # which the scheme has not.
    if values["start"] is None and job.settings.start == "normal" and job.model is None:
        tags[names.STANDS_IN.key] = "true"
    # The experiment is named as on the command line.
    return RecordHeader(f"{choices['dataset']}-{choices['cost']}", params, tags)


def _describe_model(model: Any) -> dict[str, Any]:
    """Return the class of a model as `_target_`, and its settings; empty for the linear model."""
    if model is None:
        return {}
    return {"_target_": f"{type(model).__module__}.{type(model).__qualname__}", **vars(model)}


def _clone(normalizer: Any) -> Any:
    """Return a copy of a scheme, which a job fits in place.

    It is unfitted where scikit-learn can clone the scheme, and a deep copy otherwise.
    """
    from sklearn.base import clone

    return clone(normalizer) if hasattr(normalizer, "get_params") else deepcopy(normalizer)


def _dataset(
    name: str, x: Any, y: Any, cost: Any, columns: TableOptions, merge_labels: bool
) -> Dataset:
    """Return arrays or a frame as a data set, with encoded labels or targets of regression.

    Numbers are targets of regression where the cost has no other task, or where they have more than
    two distinct values and the cost accepts regression; of a cost without declared traits, where
    some are no integers. All other targets are labels of classes.

    Args:
        name: What the data are called.
        x: The points (P, N), an array or a pandas frame.
        y: The targets (P,).
        cost: The function of the cost.
        columns: How the columns of a frame are read; of an array only the default is accepted.
        merge_labels: Whether labels that differ by capitals or a final stop alone are one class.

    Raises:
        UserError: The points or targets cannot be used, or `columns` is set for an array.
    """
    targets = convert_targets(y)
    task = None  # of texts and booleans, which are labels
    if np.issubdtype(targets.dtype, np.number):
        is_regression = bool((targets != np.round(targets)).any())
        if isinstance(declared_traits := getattr(cost, "traits", None), Traits):
            tasks, values = declared_traits.tasks, np.unique(targets)
            is_regression = "regression" in tasks and (len(tasks) == 1 or len(values) > 2)
        task = "regression" if is_regression else "classes"
    # Targets of another shape than (P,) are refused by `label_dataset` below.
    if isinstance(x, pd.DataFrame) and targets.shape == (len(x),):
        table = pd.concat([x.reset_index(drop=True), pd.Series(targets, name="y")], axis=1)
        last_column = -1  # the targets
        options = replace(columns, target=last_column, task=task, merge_labels=merge_labels)
        return table_dataset(name, table, options, source="arrays")
    lists = (columns.drop, columns.encode, columns.missing)
    if not isinstance(x, pd.DataFrame) and (columns.fill or any(map(np.size, lists))):
        raise UserError("drop, encode, fill, missing: are for the columns of a pandas frame")
    return label_dataset(name, x, targets, task, merge_labels=merge_labels, source="arrays")
