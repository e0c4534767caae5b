"""Tables: a sweep's summary and its histories, as text, Markdown, CSV, LaTeX and Parquet."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from normbench import names
from normbench.results.answer.theory_table import converges_up_to
from normbench.results.compare.merging import REPEATS, merged
from normbench.results.compare.problems import without_descent
from normbench.results.compare.reached import compared, excess_shown
from normbench.results.safe import clean
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import HISTORIES, QUARTILES, Sweep

# Columns of numbers that may stand behind a sign, as in >=10.
NUMBERS = (
    *("best step", "shown step", "step", "step size", "critical step", "range"),
    *("always falls up to", "converges up to", "seen / promised", "condition number"),
)
COSTS = ("cost", "cost q1", "cost q3", "test cost", "best test cost")
EXCESS_LEFT = "excess cost left"
QUANTILES = ("low", "high", "median", "q1", "q3")
LARGE = 1e6  # a cost from which on six decimals say nothing


def summary(sweep: Sweep) -> pd.DataFrame:
    """Return one row a scheme: its best step, final cost and misclassifications, and the counts.

    Splits and seeds of a scheme are one row: medians over what `medians of` says, and the
    quartiles of the cost, which several starts have too. What no scheme has is left out.

    Args:
        sweep: The runs, as `normbench.results.store.runs.load` returns them.

    Returns:
        The table. The step is `shown step` where one was chosen (`shown_step`). `converges up to`
        is the largest step size that converges (`>=` where no larger one failed), `excess cost
        left` the share of the start's excess over the least cost that is left, where the least
        cost is known. `seconds` are those of fitting the scheme and of descending the whole grid.
    """
    rows = []
    runs = merged(sweep)
    step = f"{runs.which_step()} step"
    still = without_descent(runs.of_role(names.SCHEME))
    several = len(sweep.experiments) > 1
    for row, stays in zip(as_rows(runs.of_role(names.SCHEME)), still):
        entry: dict[str, Any] = {"experiment": row["experiment"]} if several else {}
        failed = row["verdict"] == names.FAILED
        words = str(row.get(names.RECORDED.column) or "").split(",") if stays else ()
        by_cost = compared(row) is names.TRAIN_COST
        solved = by_cost and row.get(names.MINIMUM_REACHED.column) == "true"
        entry |= {
            "scheme": row["label"],
            "medians of": row.get(REPEATS) or None,
            "verdict": (row["verdict"] or None) if failed or not stays else None,
            names.RECORDED.key: ", ".join(word for word in words if word and word != names.KEPT)
            or None,
            step: None if stays else row.get(names.STEP_TAG.column),
            "converges up to": None if failed else converges_up_to(row),
            "cost": row.get(names.FINAL_COST.column),
            "cost q1": row.get(names.quartile(names.TRAIN_COST, "q1").column),
            "cost q3": row.get(names.quartile(names.TRAIN_COST, "q3").column),
            EXCESS_LEFT: excess_shown(row, row) if solved else None,
            "misclassified": row.get(names.FINAL_MISCLASSIFICATIONS.column),
            "test cost": row.get(names.FINAL_TEST_COST.column),
            "test misclassified": row.get(names.FINAL_TEST_MISCLASSIFICATIONS.column),
            "steps": None if failed or stays else row.get(names.STEPS_TRIED.column),
            names.DIVERGED: None if failed or stays else row.get(names.STEPS_DIVERGED.column),
            "seconds": row.get(names.FIT_SECONDS.column, float("nan"))
            + row.get(names.DESCENT_SECONDS.column, float("nan")),
        }
        rows.append(entry)
    if not rows:
        return pd.DataFrame({"scheme": pd.Series(dtype=str), "seconds": pd.Series(dtype=float)})
    table = pd.DataFrame(rows)
    needed: tuple[str, ...] = ("experiment", "scheme", "seconds")
    if not still.all():
        needed += (step, "cost", "steps", names.DIVERGED)
    empty = [name for name in table if name not in needed and table[name].isna().all()]
    return table.drop(columns=empty)


def histories(sweep: Sweep, role: str = names.SCHEME) -> pd.DataFrame:
    """Return the tidy table: one row a run and iteration.

    Args:
        sweep: The runs.
        role: `scheme` for the best step size of each scheme, over its splits and seeds as in
            `summary`; `step` for every step size of every job.

    Returns:
        Columns: the run's id, sweep, experiment, data set, cost, optimizer, scheme, label, step
        size, verdict, then iteration and the metrics, with quartiles where there are several
        starts, splits or seeds.
    """
    sweep = merged(sweep) if role == names.SCHEME else sweep
    runs = sweep.of_role(role)
    table = sweep.histories(runs, (*HISTORIES, *QUARTILES))
    about = runs.set_index("run_id")
    for place, tag in enumerate((names.SWEEP_ID, names.DATASET, names.COST, names.OPTIMIZER)):
        column = about.get(tag.column, pd.Series(dtype=str))
        table.insert(1 + place, tag.key, table["run_id"].map(column))
    size = names.STEP_SIZE.key
    table[size] = pd.to_numeric(table[size])
    return table


def text(table: pd.DataFrame) -> str:
    """Return a table as aligned lines for a terminal, numbers to the right, `-` for nothing."""
    columns = []
    for name, column in cells(table).items():
        width = max(map(len, [name, *column]))
        align = "<" if is_words(name, table) else ">"
        columns.append([f"{cell:{align}{width}}" for cell in [name, *column]])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def markdown(table: pd.DataFrame) -> str:
    """Return a table as Markdown, numbers to the right."""
    rule = [":--" if is_words(str(name), table) else "--:" for name in table]
    written = [list(map(clean.markdown, [name, *column])) for name, column in cells(table).items()]
    head, *body = zip(*written, strict=True)
    rows = [head, rule, *body]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def latex(table: pd.DataFrame) -> str:
    """Return a table as a LaTeX `tabular` with plain rules: no package is needed."""
    written = cells(table)
    align = "".join("l" if is_words(name, table) else "r" for name in written)
    rows = [list(written), *zip(*written.values(), strict=True)]
    lines = [" & ".join(_escaped(cell) for cell in row) + r" \\" for row in rows]
    body = [lines[0], r"\hline", *lines[1:]]
    return "\n".join(
        [rf"\begin{{tabular}}{{{align}}}", r"\hline", *body, r"\hline", r"\end{tabular}"]
    )


# What `--format` of a table chooses from; Parquet is bytes, all others are text.
FORMATS: dict[str, Callable[[pd.DataFrame], str | bytes]] = {
    "text": text,
    "markdown": markdown,
    "csv": lambda table: table.to_csv(index=False).rstrip("\n"),
    "latex": latex,
    "parquet": lambda table: table.to_parquet(index=False),
}


def cells(table: pd.DataFrame) -> dict[str, list[str]]:
    """Return each column's cells as text, rounded for reading, by the column's name."""
    formats = {
        **dict.fromkeys(COSTS, "{:.6f}"),
        EXCESS_LEFT: "{:.2%}",
        "seconds": "{:.2f}",
        "misclassified": "{:g}",
        "test misclassified": "{:g}",
        "steps": "{:.0f}",
        names.DIVERGED: "{:.0f}",
        **dict.fromkeys(
            ("largest curvature L", "2/L", "2/L at the end", "ratio", *QUANTILES),
            "{:.4g}",
        ),
        **dict.fromkeys(("step", "difference", "at iteration"), "{:g}"),
        **dict.fromkeys(("train error, %", "test error, %", "best test error, %"), "{:.2f}"),
        **dict.fromkeys(("rank", "wins", "solved", "won"), "{:.2f}"),
    }

    def written(name: str, value: Any) -> str:
        if pd.isna(value):
            return "-"
        if not isinstance(value, (int, float)):
            return clean.line(str(value))
        if name in COSTS and abs(value) >= LARGE:
            return f"{value:.6g}"
        if name == EXCESS_LEFT and abs(value) >= LARGE:
            return f"{100 * value:.3g}%"
        return formats.get(name, "{:.6g}" if isinstance(value, float) else "{}").format(value)

    return {
        str(name): [written(str(name), value) for value in table[name]] for name in table.columns
    }


def is_words(name: str, table: pd.DataFrame) -> bool:
    """Return whether a column holds words, which stand to the left; numbers stand to the right."""
    return name not in NUMBERS and not pd.api.types.is_numeric_dtype(table[name])


def _escaped(cell: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    # In text these three would be set as other marks.
    special |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
    special |= {mark: f"\\{mark}" for mark in "&%$#_{}"}
    return "".join(special.get(mark, mark) for mark in cell)
