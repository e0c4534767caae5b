"""Tables of a sweep, the summary and the histories, as text, Markdown, CSV, LaTeX and Parquet."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from normbench import names
from normbench.results.answer.theory_table import converges_up_to
from normbench.results.compare.merging import REPEATS, merged
from normbench.results.compare.problems import without_descent
from normbench.results.compare.reached import compared_metric, excess_shown, step_text
from normbench.results.safe import clean
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import HISTORY_KEYS, QUARTILE_KEYS, Sweep

# Columns of numbers that may have a prefix, as in >=10; they are right-aligned.
NUMBER_COLUMNS = (
    *("best step", "shown step", "step", "step size", "critical step", "range"),
    *("always falls up to", "converges up to", "seen / promised", "condition number"),
)
OWN_UNIT_METRICS = {
    metric.label: metric
    for metric in (names.OWN_COST, names.OWN_TEST_COST, names.OWN_ERROR, names.OWN_TEST_ERROR)
}
COST_COLUMNS = ("cost", "cost q1", "cost q3", "test cost", "best test cost", *OWN_UNIT_METRICS)
EXCESS_LEFT = "excess cost left"
QUANTILE_COLUMNS = ("low", "high", "median", "q1", "q3")
LARGE_COST = 1e6  # a cost from which on six decimals say nothing
SMALL_COST = 1e-4  # a cost below which six decimals have fewer than three digits


def summary(sweep: Sweep) -> pd.DataFrame:
    """Return one row a scheme: its best step size, final cost, misclassifications and run counts.

    The splits and seeds of a scheme are merged into one row of medians; the column `medians of`
    names them, and quartiles of the cost are given. Columns that are empty for all schemes are
    left out.

    Args:
        sweep: The runs, as `normbench.results.store.runs.load` returns them.

    Returns:
        The table. The step size is in the column `shown step` where the setting `shown_step` chose
        it, else in `best step`; an optimizer that finds its own step sizes has none. `converges up
        to` is the largest step size that converges (`>=` where no larger one failed). `excess cost
        left` is the share of the excess at zero weights that remains, where the least cost is
        known. `seconds` is the time of fitting the scheme and of the descents of the whole grid.
    """
    rows = []
    runs = merged(sweep)
    step = f"{runs.which_step()} step"
    without_descents = without_descent(runs.of_role(names.SCHEME))
    several_experiments = len(sweep.experiments) > 1
    for row, no_descent in zip(as_rows(runs.of_role(names.SCHEME)), without_descents):
        summary_row: dict[str, Any] = (
            {"experiment": row["experiment"]} if several_experiments else {}
        )
        failed = row["verdict"] == names.FAILED
        # A job without a descent has no verdict; its row names the arrays that it recorded.
        array_names = str(row.get(names.RECORDED.column) or "").split(",") if no_descent else ()
        # The excess is known where costs are compared and the least cost was solved for.
        by_cost = compared_metric(row) is names.TRAIN_COST
        is_solved = by_cost and row.get(names.MINIMUM_REACHED.column) == "true"
        summary_row |= {
            "scheme": row["label"],
            "medians of": row.get(REPEATS) or None,
            "verdict": (row["verdict"] or None) if failed or not no_descent else None,
            names.RECORDED.key: ", ".join(
                array_name
                for array_name in array_names
                if array_name and array_name != names.DESCENT_ARRAYS
            )
            or None,
            step: None if no_descent else step_text(row),
            "converges up to": None if failed else converges_up_to(row),
            "cost": row.get(names.FINAL_COST.column),
            "cost q1": row.get(names.quartile(names.TRAIN_COST, "q1").column),
            "cost q3": row.get(names.quartile(names.TRAIN_COST, "q3").column),
            EXCESS_LEFT: excess_shown(row, row) if is_solved else None,
            "misclassified": row.get(names.FINAL_MISCLASSIFICATIONS.column),
            "test cost": row.get(names.FINAL_TEST_COST.column),
            "test misclassified": row.get(names.FINAL_TEST_MISCLASSIFICATIONS.column),
            **{label: row.get(metric.column) for label, metric in OWN_UNIT_METRICS.items()},
            "steps": None if failed or no_descent else row.get(names.STEPS_TRIED.column),
            names.DIVERGED: None if failed or no_descent else row.get(names.STEPS_DIVERGED.column),
            "seconds": row.get(names.FIT_SECONDS.column, float("nan"))
            + row.get(names.DESCENT_SECONDS.column, float("nan")),
        }
        rows.append(summary_row)
    if not rows:  # an empty table with the columns that callers read
        return pd.DataFrame({"scheme": pd.Series(dtype=str), "seconds": pd.Series(dtype=float)})
    table = pd.DataFrame(rows)
    # These columns stay even if they are empty for all schemes.
    required_columns: tuple[str, ...] = ("experiment", "scheme", "seconds")
    if not without_descents.all():
        required_columns += (step, "cost", "steps", names.DIVERGED)
    empty_columns = [
        name for name in table if name not in required_columns and table[name].isna().all()
    ]
    return table.drop(columns=empty_columns)


def histories(sweep: Sweep, role: str = names.SCHEME) -> pd.DataFrame:
    """Return the histories in long form: one row a run and iteration.

    Args:
        sweep: The runs.
        role: `scheme` for the best step size of each scheme, over its splits and seeds as in
            `summary`; `step` for every step size of every job.

    Returns:
        A table whose columns are the run's id, sweep, data set, cost, optimizer, experiment,
        scheme, label, step size and verdict, then the iteration and the metrics, with quartiles
        where there are several starts, splits or seeds.
    """
    # Merged histories have quartiles over splits and seeds; step runs are those of single jobs.
    sweep = merged(sweep) if role == names.SCHEME else sweep
    runs = sweep.of_role(role)
    table = sweep.histories(runs, (*HISTORY_KEYS, *QUARTILE_KEYS))
    runs_by_id = runs.set_index("run_id")
    for position, tag in enumerate((names.SWEEP_ID, names.DATASET, names.COST, names.OPTIMIZER)):
        column = runs_by_id.get(tag.column, pd.Series(dtype=str))
        table.insert(1 + position, tag.key, table["run_id"].map(column))
    size = names.STEP_SIZE.key
    table[size] = pd.to_numeric(table[size])
    return table


def text(table: pd.DataFrame) -> str:
    """Return a table as aligned text for a terminal; numbers are right-aligned, missing are `-`."""
    columns = []
    for name, column in format_cells(table).items():
        width = max(map(len, [name, *column]))
        align = "<" if holds_text(name, table) else ">"
        columns.append([f"{cell:{align}{width}}" for cell in [name, *column]])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def markdown(table: pd.DataFrame) -> str:
    """Return a table as Markdown with right-aligned numbers."""
    # The line below the head sets the alignment of each column.
    rule = [":--" if holds_text(str(name), table) else "--:" for name in table]
    columns = [
        list(map(clean.markdown, [name, *column])) for name, column in format_cells(table).items()
    ]
    head, *body = zip(*columns, strict=True)
    rows = [head, rule, *body]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def latex(table: pd.DataFrame) -> str:
    """Return a table as a LaTeX `tabular` with plain rules, which needs no package."""
    columns = format_cells(table)
    align = "".join("l" if holds_text(name, table) else "r" for name in columns)
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    lines = [" & ".join(_escape_latex(cell) for cell in row) + r" \\" for row in rows]
    body = [lines[0], r"\hline", *lines[1:]]
    return "\n".join(
        [rf"\begin{{tabular}}{{{align}}}", r"\hline", *body, r"\hline", r"\end{tabular}"]
    )


# The choices of `--format` for a table; Parquet is bytes, all others are text.
TABLE_FORMATS: dict[str, Callable[[pd.DataFrame], str | bytes]] = {
    "text": text,
    "markdown": markdown,
    "csv": lambda table: table.to_csv(index=False).rstrip("\n"),
    "latex": latex,
    "parquet": lambda table: table.to_parquet(index=False),
}


def format_cells(table: pd.DataFrame) -> dict[str, list[str]]:
    """Return the cells of each column as text, by the name of the column.

    The name of a column decides how its numbers are rounded; a missing value is `-`.
    """
    formats = {
        **dict.fromkeys(COST_COLUMNS, "{:.6f}"),
        EXCESS_LEFT: "{:.2%}",
        "seconds": "{:.2f}",
        **dict.fromkeys(("fit", "an iteration", "a pass", "seconds to target"), "{:.3g}"),
        **dict.fromkeys(("fit in iterations", "fit in passes"), "{:.0f}"),
        "misclassified": "{:g}",
        "test misclassified": "{:g}",
        "steps": "{:.0f}",
        names.DIVERGED: "{:.0f}",
        **dict.fromkeys(
            ("largest curvature L", "2/L", "2/L at the end", "ratio", *QUANTILE_COLUMNS),
            "{:.4g}",
        ),
        **dict.fromkeys(("step", "difference", "at iteration", "at pass"), "{:g}"),
        **dict.fromkeys(("train error, %", "test error, %", "best test error, %"), "{:.2f}"),
        **dict.fromkeys(("rank", "wins", "solved", "won"), "{:.2f}"),
    }

    def format_cell(name: str, value: Any) -> str:
        """Return a value of the column `name` as text: `-` for NaN or None."""
        if pd.isna(value):
            return "-"
        if not isinstance(value, (int, float)):
            return clean.line(str(value))
        # Digits after the point say nothing of numbers that large.
        if name in COST_COLUMNS and abs(value) >= LARGE_COST:
            return f"{value:.6g}"
        if name in COST_COLUMNS and 0 < abs(value) < SMALL_COST:
            return f"{value:.3e}"
        if name == EXCESS_LEFT and abs(value) >= LARGE_COST:
            return f"{100 * value:.3g}%"
        return formats.get(name, "{:.6g}" if isinstance(value, float) else "{}").format(value)

    return {
        str(name): [format_cell(str(name), value) for value in table[name]]
        for name in table.columns
    }


def holds_text(name: str, table: pd.DataFrame) -> bool:
    """Return whether a column holds text, which is left-aligned; numbers are right-aligned.

    Args:
        name: The name of the column.
        table: A table with that column.

    Returns:
        False also for `NUMBER_COLUMNS`, whose numbers are formatted as text.
    """
    return name not in NUMBER_COLUMNS and not pd.api.types.is_numeric_dtype(table[name])


def _escape_latex(cell: str) -> str:
    """Return the text of a cell with the special characters of LaTeX escaped."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    # LaTeX would set these three as other characters in text.
    special |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
    special |= {mark: f"\\{mark}" for mark in "&%$#_{}"}
    return "".join(special.get(mark, mark) for mark in cell)
