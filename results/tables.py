"""Tables that a terminal shows."""

from typing import Any

import pandas as pd

from results.runs import Sweep


def summary(sweep: Sweep) -> pd.DataFrame:
    """Return one row a scheme: its best step, final cost and misclassifications, and the counts.

    Seconds are those of fitting the scheme and of descending the whole grid.
    """
    rows = []
    several = len(sweep.experiments) > 1
    for row in sweep.of_role("scheme").to_dict("records"):
        entry: dict[str, Any] = {"experiment": row["experiment"]} if several else {}
        failed = row["verdict"] == "failed"
        entry |= {
            "scheme": row["label"],
            "verdict": row["verdict"],
            "best step": row.get("tags.step_size"),
            "cost": row.get("metrics.final/train_cost"),
            "misclassified": row.get("metrics.final/train_misclassifications"),
            "test cost": row.get("metrics.final/test_cost"),
            "test misclassified": row.get("metrics.final/test_misclassifications"),
            "steps": None if failed else row.get("metrics.final/steps_tried"),
            "diverged": None if failed else row.get("metrics.final/steps_diverged"),
            "seconds": row.get("metrics.time/fit_seconds", float("nan"))
            + row.get("metrics.time/descent_seconds", float("nan")),
        }
        rows.append(entry)
    table = pd.DataFrame(rows)
    optional = ["misclassified", "test cost", "test misclassified"]
    empty = [name for name in optional if name in table and table[name].isna().all()]
    return table.drop(columns=empty)


def text(table: pd.DataFrame) -> str:
    """Return a table as aligned lines for a terminal, numbers to the right, `-` for nothing."""
    formats = {
        "cost": "{:.6f}",
        "test cost": "{:.6f}",
        "seconds": "{:.2f}",
        "misclassified": "{:g}",
        "test misclassified": "{:g}",
        "steps": "{:.0f}",
        "diverged": "{:.0f}",
    }
    words = ("experiment", "scheme", "verdict", "sweep", "status", "command")
    columns = []
    for name in table.columns:
        shape = formats.get(name, "{}")
        cells = ["-" if pd.isna(value) else shape.format(value) for value in table[name]]
        width = max(map(len, [name, *cells]))
        align = "<" if name in words else ">"
        columns.append([f"{cell:{align}{width}}" for cell in [name, *cells]])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))
