"""What a study's source says in numbers, beside what was measured: agrees, or differs and why."""

import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any

import pandas as pd

from normbench import names
from normbench.results.safe import clean
from normbench.results.store.errors import ResultsError
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

GALLERY = "normbench.results.studies.gallery"  # numbers of the studies' own
WORDS = ("what", "metric", "name", "says", "why")
KEYS = (*WORDS, "of", "share", "value", "within")
EXAMPLE = "such as {what: condition number, metric: theory/condition_number, value: 1, within: 0.1}"
WIDTH = 118
MOST_BROKEN = 20  # letters: words are broken to no fewer
AGREES, DIFFERS = "agrees", "differs"
# A column of the table of runs by any of its names: of a setting, and of a number.
COLUMNS = ("{}", names.setting("{}"), f"{names.TAGS}{{}}")
NUMBERS = (f"{names.METRICS}{{}}", "{}")


@dataclass(frozen=True)
class Expected:
    """One number that a study's source says.

    what: what it is a number of, in words. metric: what the scheme runs with the settings `of` have
    recorded: a metric, a column of the table of runs, or an entry of an array as
    `spectrum/before/0`, with `share` its share of the array's sum. Or name: a number of the study's
    own, from its function in `results/studies/gallery/FOLDER.py`.
    value: a number, or the lowest and the highest. within: how far off a measured one may be, a
    plain number, or a share such as `1%`. says: the source's own words, where they are more than
    the number. why: why the measured number differs, where it does.
    """

    what: str
    value: float | tuple[float, float]
    metric: str = ""
    name: str = ""
    of: Mapping[str, Any] = field(default_factory=dict)
    share: bool = False
    within: float | str = 0.0
    says: str = ""
    why: str = ""

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest number that agree."""
        low, high = self.value if isinstance(self.value, tuple) else (self.value, self.value)
        share = isinstance(self.within, str)
        left = float(self.within.rstrip("%")) / 100 if isinstance(self.within, str) else self.within
        return low - left * (abs(low) if share else 1), high + left * (abs(high) if share else 1)

    @property
    def words(self) -> str:
        """What the source says, in a cell of the table."""
        if self.says:
            return self.says
        if isinstance(self.value, tuple):
            return " to ".join(f"{number:.7g}" for number in self.value)
        near = f" +- {self.within}" if self.within else ""
        return f"{self.value:.7g}{near}"


def parse(entries: Any) -> list[Expected]:
    """Return the numbers of a study's `study.expected`; raise ResultsError on a mistake in them."""
    if not isinstance(entries, list):
        raise ResultsError(f"study.expected={entries}: must be a list of numbers, each {EXAMPLE}")
    return [_entry(number, entry) for number, entry in enumerate(entries)]


def _entry(number: int, entry: Any) -> Expected:
    """Return one number of `study.expected`, checked; number: its place, from 0."""
    place = f"study.expected[{number}]"
    if not isinstance(entry, dict):
        raise ResultsError(f"{place}={entry}: must be one number with its words, {EXAMPLE}")
    for key in entry:
        if key not in KEYS:
            raise ResultsError(f"{place}.{key}: is not one of {', '.join(KEYS)}; leave it out")
    for key in WORDS:
        if not isinstance(entry.get(key, ""), str):
            raise ResultsError(f"{place}.{key}={entry[key]}: must be words")
    if not entry.get("what") or bool(entry.get("metric")) == bool(entry.get("name")):
        raise ResultsError(
            f"{place}: must have `what`, and one of `metric` (a recorded one) and `name` (the "
            f"study's own), {EXAMPLE}"
        )
    of = entry.get("of", {})
    if not isinstance(of, dict) or (of and entry.get("name")):
        raise ResultsError(
            f"{place}.of={of}: must be settings that pick the runs of a metric, such as "
            "{normalizer: standard}; leave it out beside a name"
        )
    if not isinstance(entry.get("share", False), bool):
        raise ResultsError(f"{place}.share={entry['share']}: must be true or false")
    known = {key: entry[key] for key in (*WORDS, "of", "share") if key in entry}
    value, within = _value(place, entry.get("value")), _within(place, entry.get("within", 0.0))
    return Expected(**known, value=value, within=within)


def _value(place: str, value: Any) -> float | tuple[float, float]:
    pair = value if isinstance(value, list) else [value]
    wrong = any(isinstance(one, bool) or not isinstance(one, (int, float)) for one in pair)
    if wrong or len(pair) not in (1, 2) or not all(map(math.isfinite, pair)) or pair[0] > pair[-1]:
        raise ResultsError(
            f"{place}.value={value}: must be a number, or the lowest and the highest as [1, 2]"
        )
    return (float(pair[0]), float(pair[1])) if isinstance(value, list) else float(value)


def _within(place: str, within: Any) -> float | str:
    text = within.rstrip("%") if isinstance(within, str) and within.endswith("%") else within
    try:
        wrong = isinstance(within, bool) or (text is within and isinstance(within, str))
        wrong = wrong or not 0 <= float(text) < math.inf
    except (TypeError, ValueError):
        wrong = True
    if wrong:
        raise ResultsError(
            f"{place}.within={within}: must be a number, 0 or more, or a share such as 1%"
        )
    return within if isinstance(within, str) else float(within)


def recorded(sweep: Sweep) -> list[Expected]:
    """Return the numbers that the sweep's study expects; none where it is no study with numbers."""
    rows = sweep.of_role(names.SWEEP)
    if names.EXPECTED.column not in rows:
        return []
    said = rows[names.EXPECTED.column].dropna()
    return parse(json.loads(said.iloc[0])) if len(said) else []


def checked(sweep: Sweep, study: str) -> list[dict[str, Any]]:
    """Return a row an expected number: study, what, the source says, measured, verdict, why.

    study: its name, such as `notes/iris_pca`. Where `of` picks several runs, each of them must
    agree. `why` is empty where it agrees.
    """
    entries = recorded(sweep)
    own = numbers(sweep, study) if any(entry.name for entry in entries) else {}
    rows = []
    for entry in entries:
        found = [own[entry.name]] if entry.name in own else _measured(sweep, entry)
        low, high = entry.bounds
        agrees = bool(found) and all(low <= number <= high for number in found)
        rows.append(
            {
                "study": study.rpartition("/")[2],
                "what": entry.what,
                "the source says": entry.words,
                "measured": _told(found),
                "verdict": AGREES if agrees else DIFFERS,
                "why": "" if agrees else entry.why,
            }
        )
    return rows


def numbers(sweep: Sweep, study: str) -> dict[str, float]:
    """Return the numbers of a study's own, by name; none where `gallery` has no function of it.

    None either of a sweep that was cut down, so that it lacks what they are made of.
    """
    folder, _, name = study.rpartition("/")
    if not folder.isidentifier() or find_spec(f"{GALLERY}.{folder}") is None:
        return {}
    make = getattr(import_module(f"{GALLERY}.{folder}"), name, None)
    try:
        return dict(make(sweep)) if make else {}
    except (LookupError, ValueError):
        return {}


def _measured(sweep: Sweep, entry: Expected) -> list[float]:
    """Return what an entry asks of the scheme runs that it picks; empty where none has it."""
    rows = sweep.of_role(names.SCHEME)
    for key, value in entry.of.items():
        column = _column(rows, key, COLUMNS)
        if column is None:
            return []
        rows = rows[[_same(text, value) for text in rows[column]]]
    column = _column(rows, entry.metric, NUMBERS)
    if column is not None:
        return [float(number) for number in rows[column].dropna()]
    word, name, number = (*entry.metric.split("/"), "", "")[:3]
    if not number.isdigit():
        return []
    every = [parts[name] for parts in sweep.arrays(rows, word).values() if name in parts]
    shares = [array / array.sum() if entry.share else array for array in every]
    return [float(array[int(number)]) for array in shares if int(number) < len(array)]


def _column(rows: pd.DataFrame, key: str, forms: Sequence[str]) -> str | None:
    return next((form.format(key) for form in forms if form.format(key) in rows), None)


def _same(text: Any, value: Any) -> bool:
    """Return whether a recorded setting is the value that is meant: as text, or as a number."""
    if str(text) == str(value):
        return True
    try:
        return float(text) == float(value)
    except (TypeError, ValueError):
        return False


def _told(found: Sequence[float]) -> str:
    """Return measured numbers in a cell: one, or the lowest to the highest."""
    if not found:
        return "not measured"
    return " to ".join(dict.fromkeys(f"{number:.7g}" for number in (min(found), max(found))))


def unexplained(table: pd.DataFrame) -> int:
    """Return how many numbers of the table differ and say not why."""
    return int(((table["verdict"] == DIFFERS) & (table["why"] == "")).sum())


def narrow(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table for a terminal: without `why`, its words broken, in 118 letters or so.

    What does not fit goes on in rows below, whose other cells are empty.
    """
    shown = table.drop(columns="why")
    widths = {name: max(map(len, [name, *shown[name]])) for name in shown}
    what, says = "what", "the source says"
    room = WIDTH + widths[what] + widths[says] - sum(widths.values()) - 2 * (len(widths) - 1)
    wide = min(widths[says], max(len(says), room - widths[what], int(0.45 * room)))
    breaks = {says: wide, what: max(MOST_BROKEN, room - wide)}
    rows: list[tuple[str, ...]] = []
    for row in as_rows(shown):
        parts = {
            name: textwrap.wrap(text, breaks.get(name, WIDTH), break_on_hyphens=False) or [""]
            for name, text in row.items()
        }
        rows += zip_longest(*parts.values(), fillvalue="")
    return pd.DataFrame(rows, columns=shown.columns)


def reasons(table: pd.DataFrame) -> list[str]:
    """Return for each number that differs its study, and why, in lines of 118 letters at most."""
    rows = as_rows(table[table["verdict"] == DIFFERS])
    said = [
        clean.line(f"{row['study']}, {row['what']}: {row['why'] or 'differs, and nobody says why'}")
        for row in rows
    ]
    return [textwrap.fill(line, WIDTH, subsequent_indent="  ") for line in said]
