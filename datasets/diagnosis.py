"""Say in one line why a table cannot be used as it is, and which settings make it usable."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from normbench.datasets.entries import NOTATIONS, is_of_numbers, read_numbers, strip_entry
from normbench.datasets.values import UserError, spell_setting, table_word

if TYPE_CHECKING:
    import pandas as pd

GAP_MARKS = ("?", "-", ".", "NA", "N/A", "nan")  # entries that usually stand for a gap
MAX_ODD_ENTRIES = 3  # so few kinds among numbers may mark gaps; also how many a message lists
MAX_CATEGORIES = 20  # a column with more, of fewer than two points each, is hardly categorical
UNQUOTED = ("fill", "header", "decimal", "thousands", "delimiter")  # settings that need no quotes
MAX_LISTED_COLUMNS = 8  # columns that a message names
# What each setting of a remedy does, in the order in which they are spelled.
MEANINGS = {
    "delimiter": "delimiter: what separates entries",
    "read": "read: options of pandas.read_csv",
    "header": "header: whether the first row holds names",
    "decimal": "decimal, thousands: how numbers are written",
    "thousands": "decimal, thousands: how numbers are written",
    "target": "target: the column to be predicted",
    "encode": "encode: one column a category",
    "missing": "missing: these entries are gaps",
    "drop": "drop: leaves columns out",
    "fill": "fill: drop leaves points with gaps out",
}


@dataclass(frozen=True)
class Problem:
    """A reason why a table cannot be used as it is, and the settings that settle it.

    Attributes:
        reason: The reason.
        settings: Values by the names of settings without `dataset.`; lists add to the user's.
        label: The column, if it is one.
        notations: The settings that read the column, of which one is chosen for the whole table.
    """

    reason: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    notations: Sequence[Mapping[str, str]] = ()


def diagnose_column(column: "pd.Series[Any]", label: str, fill: str | None) -> Problem | None:
    """Return the reason why a column is not numeric, and what settles it; None if it is numeric.

    Args:
        column: The column (P,), indexed by the rows of the user's table.
        label: Its name.
        fill: `median` where gaps are filled.
    """
    named, dropped = f"column {label!r}", {"drop": [label]}
    entries = column.dropna()
    if not len(entries):
        return Problem(f"{named} is empty", dropped, label)
    if is_of_numbers(column.dtype):
        gaps = column.index[column.isna()]
        if fill == "median" or not len(gaps):
            return None
        reason = f"has no entry in {len(gaps)} of {len(column)} points, first in {gaps[0]}"
        return Problem(f"{named} {reason}", {"fill": "median"}, label)
    odd = [e for e in entries.astype(object) if not isinstance(e, (str, bytes, bool, int, float))]
    if odd:
        return Problem(
            f"{named} holds a {type(odd[0]).__name__} ({str(odd[0])[:20]!r})", dropped, label
        )
    texts = entries.map(strip_entry)
    shown = _list_entries(texts.unique())
    unmarked = texts[~texts.isin(GAP_MARKS)]
    numbers, notations = _find_notations(unmarked)
    others = texts.drop(numbers.index)
    words = unmarked.drop(numbers.index)
    has_few_words = words.nunique() <= MAX_ODD_ENTRIES
    if len(words) < len(numbers) and (notations or (len(others) and has_few_words)):
        reason = f"{named} is of numbers"
        if notations:
            example = numbers.index[0]
            reason += f" written as {texts[example]!r}, read as {numbers[example]:g}"
        if not len(others) or not has_few_words:
            return Problem(reason, {}, label, notations)
        marks = list(others.unique())
        places = f"{len(others)} point{'s' if len(others) > 1 else ''}, first in {others.index[0]}"
        reason += f", but for {_list_entries(marks)} in {places}"
        return Problem(reason, {"missing": marks, "fill": "median"}, label, notations)
    count = texts.nunique()
    if 2 < count == len(texts) or count > max(MAX_CATEGORIES, len(texts) / 2):
        reason = f"has {count} different texts in {len(texts)} entries ({shown})"
        return Problem(f"{named} {reason}", dropped, label)
    return Problem(f"{named} is of words ({count} kinds, {shown})", {"encode": [label]}, label)


def _find_notations(
    texts: "pd.Series[Any]",
) -> tuple["pd.Series[Any]", Sequence[Mapping[str, str]]]:
    """Return the numbers of a column, at their entries, and the settings that read the most.

    There are no such settings where ordinary numbers are the most.

    Args:
        texts: The entries of the column, without blanks around them and without marks of gaps.
    """
    import pandas as pd

    plain = pd.to_numeric(texts, errors="coerce")
    readings = [(read_numbers(texts, **notation), notation) for notation in NOTATIONS]
    counts = [numbers.count() if is_of_numbers(numbers.dtype) else 0 for numbers, _ in readings]
    if max(counts) <= plain.count():
        return plain.dropna(), ()
    best = [reading for reading, count in zip(readings, counts) if count == max(counts)]
    return best[0][0].dropna(), [notation for _, notation in best]


def diagnose_target(column: "pd.Series[Any]", label: str) -> Problem | None:
    """Return the reason why a target (P,) of text is no target of classes; None if it is one."""
    if not column.map(lambda entry: isinstance(entry, str)).any():
        return None
    problem = diagnose_column(column, label, fill="median")
    if problem and "missing" in problem.settings:
        return replace(problem, settings={**problem.settings, "fill": "drop"})
    if problem is None or problem.notations:
        return problem
    most = max(MAX_CATEGORIES, column.count() // 2)
    if column.nunique() <= most:
        return None
    reason = f"{problem.reason}, more than the {most} that are taken for classes: choose another "
    return Problem(f"{reason}target, or {spell_setting('dataset.task', 'classes')}", {}, label)


def refuse_text_target(option: str, y: Any) -> None:
    """Raise `UserError` for targets (P,) in memory that `diagnose_target` finds unfit.

    Args:
        option: The setting that names the target, as `dataset.y=price`, for the error.
        y: The targets; those that are not of text pass.
    """
    import pandas as pd

    if y.ndim == 1 and y.dtype.kind in "UO" and (problem := diagnose_target(pd.Series(y), "y")):
        raise UserError(f"{option}: {problem.reason}{_spell_conversion(problem)}")


def refuse(
    name: str, problems: Sequence[Problem], options: Mapping[str, Any], from_text: bool
) -> None:
    """Raise one `UserError` for all problems of a table, with the settings that settle them.

    Args:
        name: The name of the data set.
        problems: The problems, in the order of the message; without one nothing is raised.
        options: The user's values of `encode`, `missing`, `drop` and `fill`. A remedy that adds to
            a list repeats it.
        from_text: Whether the table is a text file, which settings can read in another notation.
    """
    if not problems:
        return
    lines = [problem.reason for problem in problems[:MAX_LISTED_COLUMNS]]
    if len(problems) > MAX_LISTED_COLUMNS:
        lines.append(f"{len(problems) - MAX_LISTED_COLUMNS} more columns")
    settings: dict[str, Any] = {}
    for setting, value in (pair for problem in problems for pair in problem.settings.items()):
        if isinstance(value, list):
            listed = settings.get(setting, [*options[setting]])
            settings[setting] = [*dict.fromkeys([*listed, *value])]
        elif settings.get(setting) != "drop" and not options.get(setting):
            settings[setting] = value  # a target with gaps needs fill=drop, whatever features need
    notated = [problem for problem in problems if problem.notations]
    if notated and from_text:
        settings |= max(NOTATIONS, key=lambda each: sum(each in p.notations for p in notated))
    elif notated:
        lines.append(_spell_conversion(notated[0]))
    used = [setting for setting in MEANINGS if setting in settings]
    spelled = " ".join(
        spell_setting(f"dataset.{setting}", settings[setting], shell=setting not in UNQUOTED)
        for setting in used
    )
    meanings = "; ".join(dict.fromkeys(MEANINGS[setting] for setting in used))
    remedy = f", or add {spelled} ({meanings})" if used else ""
    raise UserError(
        f"data of {name} (points counted from 0): {'; '.join(lines)}. Correct the {table_word()}"
        f"{remedy}"
    )


def _spell_conversion(problem: Problem) -> str:
    """Return how to convert a column of a frame that is in another notation; empty for others."""
    if not problem.notations:
        return ""
    arguments = ", ".join(f"{key}={value!r}" for key, value in problem.notations[0].items())
    column = f"table[{problem.label!r}]"
    return (
        "; convert such numbers: from normbench.datasets import read_numbers; "
        f"{column} = read_numbers({column}, {arguments})"
    )


def _list_entries(entries: Sequence[Any]) -> str:
    """Return the first `MAX_ODD_ENTRIES` entries as text, quoted and shortened."""
    listed = ", ".join(repr(str(entry)[:20]) for entry in entries[:MAX_ODD_ENTRIES])
    return listed + (", ..." if len(entries) > MAX_ODD_ENTRIES else "")
