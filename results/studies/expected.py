"""Compare the numbers that a study's source states with the measured ones."""

import json
import textwrap
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import zip_longest
from typing import Annotated, Any

import pandas as pd
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    field_validator,
    model_validator,
)

from normbench import names
from normbench.results.safe import clean
from normbench.results.store.errors import ResultsError
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep, split_command
from normbench.results.studies.gallery import find_function
from normbench.settings import find_setting

ENTRY_EXAMPLE = (
    "such as {what: condition number, metric: theory/condition_number, value: 1, within: 0.1}"
)
WIDTH = 118
NARROWEST = 20  # characters: the least width of a wrapped column
AGREES, DIFFERS = "agrees", "differs"
# Formats of the columns of the table of runs, for the name of a setting and of a metric.
SETTING_COLUMNS = ("{}", names.setting("{}"), f"{names.TAGS}{{}}")
METRIC_COLUMNS = (f"{names.METRICS}{{}}", "{}")


# What the value of a key must be; the other keys hold words.
KEY_RULES = {
    "value": "must be a number, or the lowest and the highest as [1, 2]",
    "within": "must be a number, 0 or more, or a share such as 1%",
    "share": "must be true or false",
    "of": "must be settings that pick the runs of a metric, such as {normalizer: standard}",
}
Share = Annotated[str, Field(pattern=r"^\d+(\.\d+)?%$")]


class Expected(BaseModel):
    """A number that a study's source states, an item of `study.expected`.

    quantity: its description, the key `what`. metric: the recorded quantity of the scheme runs with
    the given settings (the key `of`): a metric, a column of the table of runs, or an element of an
    array as `spectrum/before/0`, with `share` as a share of the array's sum. name: instead of
    metric, the key of a number from the study's function in `results/studies/gallery/`.
    value: the stated number, or the lowest and the highest. within: the tolerance, a plain number
    or a share such as `1%`. says: the source's own text, where it says more than the number. why:
    the reason why the measured number differs, if it does.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    quantity: str = Field(alias="what", default="")
    value: FiniteFloat | list[FiniteFloat]
    metric: str = ""
    name: str = ""
    settings: dict[str, Any] = Field(alias="of", default={})
    share: bool = False
    within: Annotated[FiniteFloat, Field(ge=0)] | Share = 0.0
    says: str = ""
    why: str = ""

    @field_validator("value")
    @classmethod
    def _check_value(cls, value: float | list[float]) -> float | list[float]:
        if isinstance(value, list) and (len(value) != 2 or value[0] > value[1]):
            raise ValueError(KEY_RULES["value"])
        return value

    @model_validator(mode="after")
    def _check_quantity(self) -> "Expected":
        # A description is needed, and exactly one of the two ways to find the number. Settings pick
        # runs; a number of the study's function is one for the whole study.
        if not self.quantity or bool(self.metric) == bool(self.name):
            raise ValueError(
                "must have `what`, and one of `metric` (a recorded one) and `name` (the study's "
                f"own), {ENTRY_EXAMPLE}"
            )
        if self.settings and self.name:
            raise ValueError("`of` picks the runs of a metric; leave it out beside a name")
        return self

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest number that agree."""
        # A single number is its own lowest and highest.
        low, high = self.value if isinstance(self.value, list) else (self.value, self.value)
        if isinstance(self.within, str):  # a share such as `1%`, of each of the two numbers
            share = float(self.within.rstrip("%")) / 100
            return low - share * abs(low), high + share * abs(high)
        return low - self.within, high + self.within

    @property
    def source_text(self) -> str:
        """The source's statement, as a cell of the table."""
        if self.says:
            return self.says
        if isinstance(self.value, list):
            return " to ".join(f"{number:.7g}" for number in self.value)
        near = f" +- {self.within}" if self.within else ""
        return f"{self.value:.7g}{near}"


def parse(entries: Any) -> list[Expected]:
    """Parse the setting `study.expected`.

    Args:
        entries: The value of the setting, a list of mappings with the keys of `Expected`.

    Returns:
        The expected numbers.

    Raises:
        ResultsError: On a mistake in the setting.
    """
    if not isinstance(entries, list):
        raise ResultsError(
            f"study.expected={entries}: must be a list of numbers, each {ENTRY_EXAMPLE}"
        )
    return [_entry(number, entry) for number, entry in enumerate(entries)]


def _entry(number: int, entry: Any) -> Expected:
    """Return one item of `study.expected`, checked.

    Args:
        number: Its index in the list, which errors name.
        entry: Its value as the user wrote it.

    Raises:
        ResultsError: The item has a wrong key or value.
    """
    key_path = f"study.expected[{number}]"
    if not isinstance(entry, dict):
        raise ResultsError(
            f"{key_path}={entry}: must be one number with its words, {ENTRY_EXAMPLE}"
        )
    try:
        return Expected.model_validate(entry)
    except ValidationError as error:
        mistake = error.errors()[0]
    if not mistake["loc"]:  # of several keys together
        raise ResultsError(f"{key_path}: {mistake['msg'].removeprefix('Value error, ')}")
    key = mistake["loc"][0]
    if mistake["type"] == "extra_forbidden":
        keys = [field.alias or name for name, field in Expected.model_fields.items()]
        raise ResultsError(f"{key_path}.{key}: is not one of {', '.join(keys)}; leave it out")
    rule = KEY_RULES.get(str(key), "must be words")
    raise ResultsError(f"{key_path}.{key}={entry.get(key)}: {rule}")


def recorded(sweep: Sweep) -> list[Expected]:
    """Return the numbers that the sweep's study expects; none for a sweep without a study."""
    rows = sweep.of_role(names.SWEEP)
    if names.EXPECTED.column not in rows:
        return []
    recorded_texts = rows[names.EXPECTED.column].dropna()
    return parse(json.loads(recorded_texts.iloc[0])) if len(recorded_texts) else []


def compare_with_source(sweep: Sweep, study: str) -> list[dict[str, Any]]:
    """Compare the expected numbers of a study with the measured ones.

    Args:
        sweep: A sweep of the study.
        study: The study's name, such as `notes/iris_pca`.

    Returns:
        One row for each expected number, with the columns `study`, `what`, `the source says`,
        `measured`, `verdict` and `why`. Where the settings `of` pick several runs, each of them
        must agree. `why` is empty for numbers that agree.

    Raises:
        ResultsError: A sweep that is all of the study lacks a number: the study has a mistake.
    """
    expected_numbers = recorded(sweep)
    has_names = any(expected.name for expected in expected_numbers)
    study_numbers = numbers(sweep, study) if has_names else {}
    rows = []
    for expected in expected_numbers:
        # A number of the study's function; it may lack one, which is then not measured.
        if expected.name in study_numbers:
            measured = [study_numbers[expected.name]]
        else:
            measured = _measured(sweep, expected)
            if not measured and expected.metric and _is_whole(sweep, study):
                raise _unknown_metric(sweep, study, expected.metric)
        low, high = expected.bounds
        agrees = bool(measured) and all(low <= number <= high for number in measured)
        rows.append(
            {
                "study": study.rpartition("/")[2],
                "what": expected.quantity,
                "the source says": expected.source_text,
                "measured": _range_text(measured),
                "verdict": AGREES if agrees else DIFFERS,
                "why": "" if agrees else expected.why,
            }
        )
    return rows


def numbers(sweep: Sweep, study: str) -> dict[str, float]:
    """Return the numbers that a study's function in `gallery` computes, by name.

    Args:
        sweep: A sweep of the study.
        study: The study's name, such as `notes/iris_pca`.

    Returns:
        The numbers; none where `gallery` has no function of that name, and where the sweep was cut
        down so that it lacks the records that the function needs.

    Raises:
        ResultsError: The function fails on a sweep that is all of the study.
    """
    folder, _, name = study.rpartition("/")
    make = find_function(folder, name)
    try:
        return dict(make(sweep)) if make else {}
    except (LookupError, ValueError, ZeroDivisionError) as error:
        if not _is_whole(sweep, study) and not _is_unknown_column(error):
            return {}  # records that the function needs are missing
        raise ResultsError(
            f"study {study}: its function in results/studies/gallery fails "
            f"({type(error).__name__}: {error}); mend it there"
        ) from error


def _is_unknown_column(error: Exception) -> bool:
    """Return whether an error is that of a setting's column which no run has: a misspelt one."""
    column = str(error.args[0]) if isinstance(error, KeyError) and error.args else ""
    setting = column.removeprefix(names.PARAMS)
    return setting != column and find_setting(setting) is None


def _is_whole(sweep: Sweep, study: str) -> bool:
    """Return whether a sweep is all of a study: no setting was overridden, and no job is missing.

    A number that such a sweep lacks is a mistake in the study.
    """
    overrides = [
        word
        for word in split_command(sweep.command)
        if "=" in word and not word.startswith(("-", "figures=", "tracking.uri="))
    ]
    if overrides != [f"experiment={study}"]:
        return False
    schemes, rows = sweep.of_role(names.SCHEME), sweep.of_role(names.SWEEP)
    jobs = pd.to_numeric(rows[names.JOBS.column]).max()
    return len(schemes) >= jobs and not (schemes["verdict"] == names.FAILED).any()


def _unknown_metric(sweep: Sweep, study: str, metric: str) -> ResultsError:
    """Return the error that no scheme run of a whole study has a metric, with a similar name."""
    recorded_names = [
        str(column).removeprefix(names.METRICS)
        for column in sweep.runs
        if str(column).startswith(names.METRICS)
    ]
    similar = get_close_matches(metric, recorded_names, n=1)
    remedy = f"did you mean {similar[0]}?" if similar else "name a recorded metric"
    return ResultsError(f"study {study}: study.expected.metric={metric}: is not recorded; {remedy}")


def _measured(sweep: Sweep, expected: Expected) -> list[float]:
    """Return the measured numbers of the scheme runs that an expected number refers to.

    Args:
        sweep: A sweep of the study.
        expected: The expected number, with the names of the metric and of the settings.

    Returns:
        One number a scheme run that has it; empty where a setting, the metric or the array is not
        recorded under its name.
    """
    rows = sweep.of_role(names.SCHEME)
    for key, value in expected.settings.items():
        column = _column(rows, key, SETTING_COLUMNS)
        if column is None:
            return []
        rows = rows[[_equal_values(text, value) for text in rows[column]]]
    column = _column(rows, expected.metric, METRIC_COLUMNS)
    if column is not None:
        return [float(number) for number in rows[column].dropna()]
    # The metric is no column: an element of an array, as `spectrum/before/0`. A name of fewer parts
    # is padded, so that its index is empty.
    array_file, name, index = (*expected.metric.split("/"), "", "")[:3]
    if not index.isdigit():
        return []
    arrays_by_label = sweep.arrays(rows, array_file)
    scheme_arrays = [arrays[name] for arrays in arrays_by_label.values() if name in arrays]
    if expected.share:
        scheme_arrays = [array / array.sum() for array in scheme_arrays]
    return [float(array[int(index)]) for array in scheme_arrays if int(index) < len(array)]


def _column(rows: pd.DataFrame, key: str, forms: Sequence[str]) -> str | None:
    """Return the first column of the table that a key may refer to; None if there is none.

    Args:
        rows: The table.
        key: The name of a setting or a metric.
        forms: The formats of the columns that are tried, to be filled with the key.
    """
    return next((form.format(key) for form in forms if form.format(key) in rows), None)


def _equal_values(text: Any, value: Any) -> bool:
    """Return whether a recorded setting equals an expected value, as text or as a number."""
    if str(text) == str(value):
        return True
    try:
        return float(text) == float(value)
    except (TypeError, ValueError):
        return False


def _range_text(measured_numbers: Sequence[float]) -> str:
    """Return measured numbers as a cell: one number, or the lowest to the highest."""
    if not measured_numbers:
        return "not measured"
    extremes = (min(measured_numbers), max(measured_numbers))
    return " to ".join(dict.fromkeys(f"{number:.7g}" for number in extremes))


def unexplained(table: pd.DataFrame) -> int:
    """Return how many numbers of a table from `compare_with_source` differ without a reason."""
    return int(((table["verdict"] == DIFFERS) & (table["why"] == "")).sum())


def narrow_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table from `compare_with_source` for a terminal of about `WIDTH` characters.

    The column `why` is dropped. The two columns of text are wrapped: their further lines are rows
    of their own, whose other cells are empty.
    """
    narrowed = table.drop(columns="why")
    # The width of a column: that of its longest cell, or of its heading.
    widths = {name: max(map(len, [name, *narrowed[name]])) for name in narrowed}
    quantity, source = "what", "the source says"
    # Columns are two blanks apart. The source's text gets what the description leaves, or at least
    # 45 percent of the room; the description gets the rest.
    fixed_width = sum(widths.values()) - widths[quantity] - widths[source] + 2 * (len(widths) - 1)
    room = WIDTH - fixed_width
    widest = max(len(source), room - widths[quantity], int(0.45 * room))
    source_width = min(widths[source], widest)
    wrap_widths = {source: source_width, quantity: max(NARROWEST, room - source_width)}
    rows: list[tuple[str, ...]] = []
    for row in as_rows(narrowed):
        wrapped_cells = {
            name: textwrap.wrap(text, wrap_widths.get(name, WIDTH), break_on_hyphens=False) or [""]
            for name, text in row.items()
        }
        # One row a line of the longest cell; shorter cells are filled with empty lines.
        rows += zip_longest(*wrapped_cells.values(), fillvalue="")
    return pd.DataFrame(rows, columns=narrowed.columns)


def reasons(table: pd.DataFrame) -> list[str]:
    """Return why each number that differs does so, as a paragraph wrapped to `WIDTH` characters.

    Args:
        table: A table from `compare_with_source`.
    """
    rows = as_rows(table[table["verdict"] == DIFFERS])
    lines = [
        clean.line(f"{row['study']}, {row['what']}: {row['why'] or 'differs, and nobody says why'}")
        for row in rows
    ]
    return [textwrap.fill(line, WIDTH, subsequent_indent="  ") for line in lines]
