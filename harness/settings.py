"""The table of settings: each row has a role, a default, a check and one line of help.

Identity, problems, labels, `compare()`, `normbench --help` and the reference page read this table.
A config with a setting that is not in it is refused. To add a setting, add its row.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from normbench import names
from normbench.datasets.values import (
    LARGEST_FLOAT,
    UserError,
    check_choice,
    check_integer,
    check_list,
    check_number,
    check_switch,
    did_you_mean,
    format_value,
    parse_memory_size,
    to_python_number,
)

NAMED_STARTS = ("zeros", "normal", "same_function")
RANDOM_STARTS = NAMED_STARTS[1:]  # starts that a seed draws, so that there can be several
# The points that the statistics of a scheme are of, at a step.
FITTED, BATCH_STATISTICS, RUNNING_STATISTICS = "fitted", "batch", "running"
WINDOW_STATISTICS = "window"
SCHEME_STATISTICS = (FITTED, BATCH_STATISTICS, RUNNING_STATISTICS, WINDOW_STATISTICS)
SHUFFLED, ONCE, CYCLIC, REPLACEMENT = "shuffled", "once", "cyclic", "replacement"
# The points of pass n of `count` points, in their order; `draw(n)` returns a generator of numpy's.
BATCH_ORDERS: dict[str, Callable[[Callable[[int], Any], int, int], Any]] = {
    SHUFFLED: lambda draw, count, n: draw(n).permutation(count),
    ONCE: lambda draw, count, n: draw(0).permutation(count),
    CYCLIC: lambda draw, count, n: range(count),
    REPLACEMENT: lambda draw, count, n: draw(n).integers(0, count, count),
}
MAX_STEP_SIZES = 1000
# The parts of the identity of a job: its descent, its requested measures, its rules of judging.
DESCENT_PART, REQUEST_PART, JUDGING_PART = "descent", "asked", "judged"
# Takes the name of a setting, for messages, and a value; returns the value in its canonical type,
# or raises `UserError`.
Check = Callable[[str, Any], Any]


class Role(Enum):
    """The role of a setting, which determines statistics, identity and labels."""

    PROBLEM = "problem"  # the data, the cost and the start that schemes are compared on
    SCHEME = "scheme"
    DESCENT = "descent"
    REPETITION = "repetition"  # a seed: another value repeats the problem
    JUDGING = "judging"  # of recorded histories: a change needs no descent
    DRAWING = "drawing"  # measures of a finished job, for figures and tables
    LOCATION = "place"  # where results go, and what is reused; changes no number


@dataclass(frozen=True)
class Setting:
    """A row of the table.

    Attributes:
        name: The name; `group.*` is the row of all options of a group without a row.
        role: The role.
        default: The default.
        help: One line of help.
        check: Returns the value in its canonical type, or raises `UserError`; None where only the
            data decide.
        used: Returns whether the value has an effect beyond the content of the data, from the
            parameters of a job (texts or values).
        folds: Whether it is of a cross-validation, which runs beside the descent.
        same_problem: Whether other values leave the problem as it is, because an experiment has one
            value, or each scheme its own.
        recorded: Whether it is a parameter of a job.
        python: Whether it is an argument of `compare()`.
        listed: Whether `--help` lists an option of a few choices, as it does settings of all.
    """

    name: str
    role: Role
    default: Any
    help: str
    check: Check | None = None
    used: Callable[[Mapping[str, Any]], bool] = lambda params: True
    folds: bool = False
    same_problem: bool = False
    recorded: bool = True
    python: bool = True
    listed: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.role, Role):
            raise TypeError(f"{self.name}: has the role {self.role!r}, which is no Role")

    @property
    def group(self) -> str:
        """The group of the setting; empty outside groups."""
        return self.name.rpartition(".")[0]

    def enters(self, identity_part: str, params: Mapping[str, Any]) -> bool:
        """Return whether the value enters a part of the identity of a job.

        Data sets enter by their content, and not by their settings.

        Args:
            identity_part: A part, such as `DESCENT_PART`.
            params: The parameters of the job.
        """
        # The digest of the data stands for whatever drew and prepared them.
        by_content = self.role in (Role.PROBLEM, Role.REPETITION) and (
            self.group == "dataset" or self.name == "dataset"
        )
        # The part that the value belongs to; empty for none.
        part_of_role = {Role.JUDGING: JUDGING_PART, Role.DRAWING: REQUEST_PART, Role.LOCATION: ""}
        own_part = "" if by_content else part_of_role.get(self.role, DESCENT_PART)
        if self.folds:  # cross-validation runs beside the descent, which stays the same
            own_part = REQUEST_PART
        return self.recorded and own_part == identity_part and self.used(params)


def find_setting(name: str) -> Setting | None:
    """Return the row of a setting, or that of the options of its group; None without either.

    The row of `optimizer.momentum`, for example, is `optimizer.*`.
    """
    return ROWS.get(name) or ROWS.get(f"{name.partition('.')[0]}.*" if "." in name else "")


def default(name: str) -> Any:
    """Return the default of a setting."""
    return ROWS[name].default


def check(name: str, value: Any) -> Any:
    """Return the checked value of a setting.

    Args:
        name: The name of the setting.
        value: The value.

    Returns:
        The value in its canonical type.

    Raises:
        UserError: The setting does not exist, or the value breaks its rule.
    """
    row = find_setting(name)
    if row is None:
        raise UserError(f"{name}: no such setting; normbench --cfg job lists them")
    return value if row.check is None else row.check(name, value)


def identity_params(identity_part: str, params: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters that enter a part of the identity of a job, as texts by their names.

    Args:
        identity_part: A part, such as `DESCENT_PART`.
        params: The parameters of the job, by their full names. Those that are no setting are left
            out.
    """
    rows = ((key, find_setting(key)) for key in sorted(params))
    return {key: str(params[key]) for key, row in rows if row and row.enters(identity_part, params)}


def has_role(name: str, *roles: Role) -> bool:
    """Return whether a setting has one of the roles; False for a name that is no setting."""
    row = find_setting(name)
    return row is not None and row.role in roles


def separates_problems(name: str) -> bool:
    """Return whether two values of a parameter make two problems, whose costs do not compare.

    A parameter that is no setting does, because its role is unknown.
    """
    row = find_setting(name)
    problem_roles = (Role.PROBLEM, Role.DESCENT, Role.REPETITION)
    return row is None or (row.role in problem_roles and not row.same_problem)


def arguments() -> Iterator[tuple[str, Setting]]:
    """Yield the settings that `compare()` takes, each with the name of its argument.

    The name has no group: `cost.l2` is `l2`. Of groups, only those of `dataset`, `cost` and
    `normalizer` are among them: the arguments `model` and `rules` take whole objects.
    """
    for row in TABLE:
        if (
            row.python
            and row.default is not OF_OPTIONS
            and row.group in ("", "dataset", "cost", "normalizer")
        ):
            yield row.name.rpartition(".")[2], row


def describe_settings() -> str:
    """Return the settings with default and help, as `--help` lists them.

    A row with `listed`, which only some options of a group have, has no common default.
    """
    rows = [row for row in TABLE if row.default is not OF_OPTIONS or row.listed]
    defaults = ["" if row.listed else f"={format_value(row.default)}" for row in rows]
    return "".join(
        f"  {row.name}{default}\n      {row.help}\n" for row, default in zip(rows, defaults)
    )


def reference() -> str:
    """Return the reference page of the settings, in Markdown: a table for each role."""
    text = "# Settings\n\nWritten by `python -m normbench.settings` from the table of settings.\n"
    for role in Role:
        text += f"\n## Of the {role.value}\n\n"
        text += "| setting | default | meaning |\n| --- | --- | --- |\n"
        for row in TABLE:
            default_text = (
                "the option's own"
                if row.default is OF_OPTIONS
                else f"`{format_value(row.default)}`"
            )
            if row.role is role:
                # chr(92) is a backslash, which the braces of an f-string allow from Python 3.12 on.
                text += (
                    f"| `{row.name}` | {default_text} | {row.help.replace('|', chr(92) + '|')} |\n"
                )
    return text


def powers_of_ten(first: Any, last: Any, per_decade: Any = 1) -> list[float]:
    """Return the powers of ten from 10^first to 10^last, ends included.

    A whole exponent gives the float of its literal: 10^-3 is 0.001 to the last digit.

    Args:
        first: The first exponent.
        last: The last exponent.
        per_decade: The number of points in a decade.

    Raises:
        UserError: An argument is no whole number, or the range is empty or too long.
    """
    name = f"step_sizes=${{decades:{first},{last},{per_decade}}}"
    for number in (first, last, per_decade):
        if isinstance(number, bool) or not isinstance(number, int):
            raise UserError(f"{name}: {number} is not a whole number; write ${{decades:-7,2}}")
    if last < first or per_decade < 1 or not -300 <= first <= last <= 300:
        raise UserError(
            f"{name}: must run upwards between -300 and 300 with 1 point a decade or more; "
            "write ${decades:-7,2}"
        )
    count = (last - first) * per_decade + 1
    if count > MAX_STEP_SIZES:
        raise UserError(f"{name}: makes {count} step sizes; {MAX_STEP_SIZES} at most")
    # Each exponent as a fraction: numerator and denominator.
    exponents = [(first * per_decade + i, per_decade) for i in range(count)]
    return [float(f"1e{n // d}") if n % d == 0 else 10.0 ** (n / d) for n, d in exponents]


def find_step_size(shown: float | None, step_sizes: Sequence[float]) -> float | None:
    """Return the step size that `shown_step` names.

    Args:
        shown: The value of `shown_step`; None for none.
        step_sizes: The step sizes of the grid.

    Returns:
        The step size that is equal, else the only one of the same six digits, which is how tables
        and messages write it; None without either.
    """
    if shown is None or shown in step_sizes:
        return shown
    alike = [step_size for step_size in step_sizes if f"{step_size:g}" == f"{shown:g}"]
    return alike[0] if len(alike) == 1 else None


def _step_sizes(name: str, values: Any) -> tuple[float, ...]:
    """Return distinct positive step sizes as floats, ascending, from a list or a single number.

    Raises `UserError` for anything else, and for an empty list.
    """
    remedy = "give a list of distinct positive numbers, such as step_sizes=[0.01,0.1,1]"
    if isinstance(values, (str, bytes)) or not (
        hasattr(values, "__iter__") or hasattr(values, "__float__")
    ):
        raise UserError(f"{name}={values}: is not a list; {remedy}")
    has_entries = hasattr(values, "__iter__") and getattr(values, "ndim", 1) > 0
    sizes = list(values) if has_entries else [values]
    if not sizes:
        raise UserError(f"{name}=[]: is empty; {remedy}")
    for size in map(to_python_number, sizes):
        if isinstance(size, bool) or not hasattr(size, "__float__"):
            raise UserError(f"{name}={sizes}: {size!r} is not a number; {remedy}")
        if not 0 < size <= LARGEST_FLOAT:  # a whole number can be larger
            raise UserError(f"{name}={sizes}: {size} is not positive and finite; {remedy}")
    sizes = [float(size) for size in sizes]
    if len(set(sizes)) < len(sizes):
        twice = next(size for size in sizes if sizes.count(size) > 1)
        raise UserError(f"{name}={sizes}: {twice:g} stands in it twice; {remedy}")
    return tuple(sorted(sizes))


def _start(name: str, value: Any) -> Any:
    """Return a start: None, a name, or given weights as a tuple.

    The weights are numbers, bias first, or a list of such numbers for each class, which becomes a
    tuple, too. Raises `UserError` for anything else.
    """
    if value is None or (isinstance(value, str) and value in NAMED_STARTS):
        return value
    remedy = f"must be null, {', '.join(NAMED_STARTS)}, or a list of weights with the bias first"
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        near = did_you_mean(value, ("null", *NAMED_STARTS))
        raise UserError(f"{name}={value}: {remedy}{near}")
    rows = [list(row) if hasattr(row, "__iter__") else row for row in value]
    flat = [entry for row in rows for entry in (row if isinstance(row, list) else [row])]
    for entry in flat:
        check_number(name, entry)
    if not flat:
        raise UserError(f"{name}={value}: {remedy}")
    return tuple(tuple(row) if isinstance(row, list) else row for row in rows)


def _step_schedule(name: str, value: Any) -> tuple[int, float] | None:
    """Return the passes between two changes of the step size, and the factor of each; or None."""
    if value is None:
        return None
    rule = "null, or passes and a factor, such as step_schedule=[40,0.5]"
    numbers = check_list(name, value, rule)
    if len(numbers) != 2:
        raise UserError(f"{name}={value}: must be {rule}")
    passes = check_integer(name, numbers[0], at_least=1)
    return passes, check_number(name, numbers[1], above=0, below=1)


def _record(name: str, values: Any) -> tuple[str, ...]:
    """Return the names of arrays; `measures.check` checks that they exist."""
    return tuple(map(str, check_list(name, values, "a list, such as record=[path,points]")))


def _batch(name: str, value: Any) -> int | None:
    """Return the positive number of points that a step sees, or None for all."""
    try:
        return value if value is None else check_integer(name, value, at_least=1)
    except UserError as error:
        raise UserError(f"{error}, of points, or null for all") from None


def _window(name: str, value: Any) -> int | None:
    """Return a positive number of points, or None."""
    return value if value is None else check_integer(name, value, at_least=1)


def _checkpoint(name: str, value: Any) -> Any:
    """Return the positive seconds between two checkpoints, or None for no checkpoints."""
    try:
        return value if value is None else check_number(name, value, above=0)
    except UserError as error:
        raise UserError(f"{error}, of seconds, or null for never") from None


def _refine(name: str, value: Any) -> Any:
    """Return `auto`, True or False, from one of these or from the text of one."""
    choices = {"auto": "auto", "true": True, "false": False}
    return value if isinstance(value, bool) else choices[check_choice(name, value, tuple(choices))]


def _shown_step(name: str, value: Any) -> float | None:
    """Return a positive step size, or None."""
    return None if value is None else check_number(name, value, above=0)


def _artifacts(name: str, value: Any) -> str | None:
    """Return a folder or a URI unchanged, or None."""
    if value is not None and not isinstance(value, str):
        raise UserError(f"{name}={format_value(value)}: must be a folder, a URI, or null")
    return value


def _memory(name: str, value: Any) -> Any:
    """Return a valid size of memory unchanged."""
    parse_memory_size(value)
    return value


def _is_drawn(params: Mapping[str, Any]) -> bool:
    """Return whether a seed draws the start, or may: null is random under some schemes."""
    return str(params.get("start")) in (*RANDOM_STARTS, "None")


def _has_model(params: Mapping[str, Any]) -> bool:
    """Return whether a model has an effect: it is not the linear one, or it normalizes."""
    is_normalized = str(params.get("model.normalize", "none")) != "none"
    return params.get("model", "linear") != "linear" or is_normalized


def _is_batched(params: Mapping[str, Any]) -> bool:
    """Return whether a step sees a batch of the points."""
    return str(params.get("batch")) != "None"  # a recorded None is the text `None`


def _is_full_batch(params: Mapping[str, Any]) -> bool:
    """Return whether a step sees all points."""
    return not _is_batched(params)


def _has_moving_statistics(params: Mapping[str, Any]) -> bool:
    """Return whether a scheme learns from other points at each step."""
    return params.get("normalizer.statistics", FITTED) != FITTED


def _draws_batches(params: Mapping[str, Any]) -> bool:
    """Return whether a seed draws the order of the batches."""
    return _is_batched(params) and params.get("batch_order") != "cyclic"


def _is_folded(params: Mapping[str, Any]) -> bool:
    """Return whether the job has a cross-validation."""
    return str(params.get("dataset.folds")) != "None"


OF_OPTIONS = ...  # the default of a row of options: the file of each option has it
CACHE = "${oc.env:NORMBENCH_DATA,${oc.env:XDG_CACHE_HOME,${oc.env:HOME,.}/.cache}/normbench}"
POSITIVE, SHARE = partial(check_number, above=0), partial(check_number, above=0, below=1)
NATURAL, COUNT = partial(check_integer, at_least=0), partial(check_integer, at_least=1)
COMMAND_ONLY: Any = {"recorded": False, "python": False}  # of the command alone
FOLDS_ONLY: Any = {"used": _is_folded, "folds": True}
THEORY_CHOICES, L2_IN = ("auto", "full", "none"), ("transformed", "features")
PRECISIONS = ("float64", "float32")

TABLE = (
    Setting(
        "dataset", Role.PROBLEM, "breast_cancer", "the data set", same_problem=True, python=False
    ),
    Setting(
        "cost",
        Role.PROBLEM,
        "softmax",
        "the cost that is minimized",
        same_problem=True,
        python=False,
    ),
    Setting("normalizer", Role.SCHEME, "standard", "the schemes that are compared", python=False),
    Setting(
        "model",
        Role.PROBLEM,
        "linear",
        "how scores follow from the weights",
        used=_has_model,
        python=False,
    ),
    Setting(
        "optimizer", Role.DESCENT, "gradient_descent", "how the weights are updated", python=False
    ),
    Setting("tracking", Role.LOCATION, "local", "where MLflow's copy goes", **COMMAND_ONLY),
    Setting(
        "step_sizes",
        Role.DESCENT,
        powers_of_ten(-7, 2),
        "a list; ${decades:first,last} is 10^first..10^last, a third number the points a decade",
        _step_sizes,
        same_problem=True,
    ),
    Setting(
        "step_schedule",
        Role.DESCENT,
        None,
        "[passes, factor]: after every so many passes (iterations without a batch) the step size "
        "is multiplied by the factor, as [40,0.5]; null: it stays",
        _step_schedule,
        lambda params: str(params.get("step_schedule")) != "None",
    ),
    Setting(
        "shown_step",
        Role.JUDGING,
        None,
        "the step size shown for each scheme; null: its best",
        _shown_step,
    ),
    Setting(
        "iterations",
        Role.DESCENT,
        100,
        "updates of the weights; with a batch, passes over the points",
        NATURAL,
    ),
    Setting(
        "batch",
        Role.DESCENT,
        None,
        "how many points a step sees; null: all. With a batch, refine and shadows are off",
        _batch,
        _is_batched,
    ),
    Setting(
        "batch_order",
        Role.DESCENT,
        SHUFFLED,
        "shuffled (anew for each pass), once, cyclic (the points' own order), or replacement "
        "(drawn with replacement)",
        partial(check_choice, choices=tuple(BATCH_ORDERS)),
        _is_batched,
    ),
    Setting(
        "records_per_pass",
        Role.DESCENT,
        1,
        "how often a pass of batches is recorded; iterations to a target are passes in fractions",
        COUNT,
        _is_batched,
    ),
    Setting(
        "start",
        Role.PROBLEM,
        None,
        "zeros, normal, same_function, or a list of weights with the bias first; null: zeros, but "
        "for perceptrons, whose cost is least there, same_function or else normal",
        _start,
    ),
    Setting(
        "start_scale", Role.PROBLEM, 0.1, "standard deviation of random starts", POSITIVE, _is_drawn
    ),
    Setting("starts", Role.PROBLEM, 1, "how many random starts", COUNT),
    Setting(
        "shadows",
        Role.DESCENT,
        True,
        "descend sensitive runs once more, to see whether rounding errors decide where they end",
        check_switch,
        _is_full_batch,
    ),
    Setting(
        "refine",
        Role.DESCENT,
        "auto",
        "try step sizes between those given, to find the fewest iterations to every target; auto: "
        "to the reported one, unless that takes long",
        _refine,
        _is_full_batch,
    ),
    Setting(
        "precision",
        Role.DESCENT,
        "float64",
        "float64 or float32",
        partial(check_choice, choices=PRECISIONS),
    ),
    Setting(
        "folder",
        Role.LOCATION,
        names.HOME,
        "the folder of comparisons and of their records",
        **COMMAND_ONLY,
    ),
    Setting(
        "reuse",
        Role.LOCATION,
        True,
        "take equal, finished jobs from what is recorded",
        check_switch,
        **COMMAND_ONLY,
    ),
    Setting(
        "checkpoint",
        Role.LOCATION,
        180,
        "seconds between two checkpoints, from which the same command resumes; null: none",
        _checkpoint,
        **COMMAND_ONLY,
    ),
    Setting(
        "packages", Role.LOCATION, [], "packages whose code a _target_ may name", **COMMAND_ONLY
    ),
    Setting(
        "record",
        Role.DRAWING,
        [],
        "arrays to record for figures, of path, contours, film, fit, points, biplot, features, "
        "projection, components, spectrum, sharpness, landing, exemplars, colours, autoencoder, "
        "formulas, hessian, boundary, curvature, by_layer, weight_norms",
        _record,
    ),
    Setting(
        "figures",
        Role.DRAWING,
        None,
        "the figures that are drawn; null: all",
        **COMMAND_ONLY,
    ),
    Setting(
        "shown_point",
        Role.DRAWING,
        0,
        "the training point that record=[components] builds up",
        NATURAL,
    ),
    Setting(
        "theory",
        Role.DRAWING,
        THEORY_CHOICES[0],
        "auto: all of up to 2,000 features and weights, of more L; full: all of any size; none",
        partial(check_choice, choices=THEORY_CHOICES),
    ),
    Setting(
        "memory",
        Role.LOCATION,
        None,
        "the most memory that a process takes, such as 1GiB or 500MB",
        _memory,
        recorded=False,
    ),
    Setting("data_dir", Role.LOCATION, CACHE, "the folder of downloaded data", python=False),
    Setting("dataset.*", Role.PROBLEM, OF_OPTIONS, "options of a data set"),
    Setting(
        "dataset.encoding",
        Role.PROBLEM,
        OF_OPTIONS,
        "how the job encoded columns of text",
        same_problem=True,
    ),
    Setting(
        "dataset.merge_labels",
        Role.PROBLEM,
        OF_OPTIONS,
        "of a file: join labels that differ by capitals or a final stop alone",
        check_switch,
        listed=True,
    ),
    Setting(
        "dataset.keep_classes", Role.PROBLEM, None, "the classes whose points are used; null: all"
    ),
    Setting("dataset.points", Role.PROBLEM, None, "how many training points are used; null: all"),
    Setting(
        "dataset.test_fraction",
        Role.PROBLEM,
        0.0,
        "share of the points held out, class by class",
        partial(check_number, at_least=0, below=1),
    ),
    Setting(
        "dataset.folds",
        Role.PROBLEM,
        None,
        "cross-validation: how many parts, each held out once",
        **FOLDS_ONLY,
    ),
    Setting(
        "dataset.repeats",
        Role.PROBLEM,
        1,
        "how often cross-validation is repeated, each time with another seed",
        COUNT,
        **FOLDS_ONLY,
    ),
    Setting(
        "dataset.split_seed",
        Role.REPETITION,
        0,
        "the seed by which points are held out",
        NATURAL,
        **FOLDS_ONLY,
    ),
    Setting("dataset.seed", Role.REPETITION, OF_OPTIONS, "the seed of random data"),
    Setting("seed", Role.REPETITION, 0, "the seed of random starts", NATURAL, _is_drawn),
    Setting(
        "batch_seed",
        Role.REPETITION,
        0,
        "the seed of the order of batches",
        NATURAL,
        _draws_batches,
    ),
    Setting(
        "dataset.augment",
        Role.PROBLEM,
        None,
        "noisy copies: aligned to the principal axes, or round",
    ),
    Setting("dataset.augment_copies", Role.PROBLEM, 1, "how many noisy copies of each point"),
    Setting(
        "dataset.augment_noise",
        Role.PROBLEM,
        0.2,
        "size of their noise, relative to each principal axis",
    ),
    Setting(
        "dataset.outliers",
        Role.PROBLEM,
        None,
        "outliers among the training points: cells, or whole points",
    ),
    # A fold's outliers do not follow from those of all points, whose number is rounded.
    Setting(
        "dataset.outlier_share",
        Role.PROBLEM,
        0.01,
        "share of the cells, or of the points",
        used=lambda params: _is_folded(params) and str(params.get("dataset.outliers")) != "None",
        folds=True,
    ),
    Setting(
        "dataset.outlier_size",
        Role.PROBLEM,
        100.0,
        "size of outliers, in standard deviations of the feature",
    ),
    Setting(
        "dataset.fit_on",
        Role.SCHEME,
        "train",
        "the points whose statistics the schemes learn: train, or all (leakage: then the test is "
        "not fair)",
        used=lambda params: params.get("dataset.fit_on") == "all",
    ),
    Setting(
        "dataset.target_scheme",
        Role.PROBLEM,
        None,
        "a scheme for real targets, fitted on the training targets, such as standard; null: none",
    ),
    Setting("cost.*", Role.PROBLEM, OF_OPTIONS, "options of a cost"),
    Setting(
        "cost.l2",
        Role.PROBLEM,
        0.0,
        "adds l2 * |weights|^2 to the cost, without the bias",
        partial(check_number, at_least=0),
    ),
    Setting(
        "cost.l2_in",
        Role.PROBLEM,
        L2_IN[0],
        "the weights that l2 penalizes: transformed, or features (the raw ones, one cost for all)",
        partial(check_choice, choices=L2_IN),
        lambda params: bool(float(params.get("cost.l2") or 0)),
    ),
    Setting(
        "normalizer.columns",
        Role.SCHEME,
        None,
        "columns that the scheme is on, the others pass through: numeric (all but columns of 0 and "
        "1), names or positions; null: all",
        used=lambda params: str(params.get("normalizer.columns")) != "None",
    ),
    Setting(
        "normalizer.statistics",
        Role.SCHEME,
        FITTED,
        "the points that a scheme learns from: fitted (all), batch (those of the step), running "
        "(those seen so far) or window (the last normalizer.window)",
        partial(check_choice, choices=SCHEME_STATISTICS),
        _has_moving_statistics,
    ),
    Setting(
        "normalizer.window",
        Role.SCHEME,
        None,
        "how many points statistics=window learns from",
        _window,
        _has_moving_statistics,
    ),
    Setting(
        "normalizer.ridge",
        Role.SCHEME,
        OF_OPTIONS,
        "of schemes that whiten: added to every eigenvalue, the epsilon of ZCA and PCA whitening",
        listed=True,
    ),
    Setting("normalizer.*", Role.SCHEME, OF_OPTIONS, "options of a scheme"),
    *(  # what is normalized inside a model is compared, as schemes are
        Setting(
            name, Role.SCHEME, OF_OPTIONS, "how a model normalizes", used=_has_model, python=False
        )
        for name in (
            "model.normalize",
            "model.place",
            "model.affine",
            "model.signs",
            "model.newton_iterations",
        )
    ),
    Setting("model.*", Role.PROBLEM, OF_OPTIONS, "options of a model", used=_has_model),
    Setting("optimizer.*", Role.DESCENT, OF_OPTIONS, "options of an optimizer"),
    Setting("tracking.*", Role.LOCATION, OF_OPTIONS, "where MLflow's copy goes", **COMMAND_ONLY),
    Setting(
        "tracking.artifacts",
        Role.LOCATION,
        OF_OPTIONS,
        "where the copy's artifacts go",
        _artifacts,
        **COMMAND_ONLY,
    ),
    Setting(
        "tracking.steps",
        Role.LOCATION,
        OF_OPTIONS,
        "whether each step size has a run in the copy",
        _refine,
        **COMMAND_ONLY,
    ),
    Setting(
        "rules.tail",
        Role.JUDGING,
        0.1,
        "the share of the iterations that is called the tail",
        SHARE,
    ),
    Setting("rules.least_tail", Role.JUDGING, 10, "the fewest iterations of a tail", COUNT),
    Setting(
        "rules.variation",
        Role.JUDGING,
        0.01,
        "a tail is flat if the cost varies in it by less than this share of the whole drop",
        SHARE,
    ),
    Setting(
        "rules.excess",
        Role.JUDGING,
        0.5,
        "a converged run ends under this share of the starting excess cost",
        SHARE,
    ),
    Setting(
        "rules.last",
        Role.JUDGING,
        0.2,
        "a cycling run rises and finds no new low in this last share of the run",
        partial(check_number, above=0, below=0.5),
    ),
    Setting(
        "rules.diverged",
        Role.JUDGING,
        10.0,
        "a run that ends with over so many times the starting excess cost has diverged",
        partial(check_number, at_least=1),
    ),
    Setting(
        "search.critical",
        Role.DRAWING,
        False,
        "find the critical step size by bisection",
        check_switch,
    ),
    Setting(
        "search.width",
        Role.DRAWING,
        0.01,
        "the relative width at which the bisection ends",
        partial(check_number, at_least=1e-9, below=1),
        lambda params: str(params.get("search.critical")) == "True",
    ),
    Setting("study.*", Role.LOCATION, OF_OPTIONS, "what a study says of its source"),
    Setting(
        "study.expected", Role.LOCATION, OF_OPTIONS, "the numbers of that source", **COMMAND_ONLY
    ),
)
ROWS = {row.name: row for row in TABLE}
SETTING_GROUPS = tuple(dict.fromkeys(row.group for row in TABLE if row.group))
# The choices of a job, and its seeds: that of the data first.
CHOICES = tuple(row.name for row in TABLE if f"{row.name}.*" in ROWS and row.recorded)
SEEDS = tuple(row.name for row in TABLE if row.role is Role.REPETITION)

if __name__ == "__main__":
    print(reference(), end="")
