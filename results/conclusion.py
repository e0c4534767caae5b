"""What a sweep ends in: one table on the terminal, the figure on disk, and where everything is."""

from pathlib import Path

from results import dashboard, tables
from results.figures import histories, style
from results.runs import Sweep, load


def conclude(store: str, sweep_id: str, folder: Path) -> dict[str, list[Path]]:
    """Print a sweep's table and draw its figures into a folder; return the files by experiment."""
    sweep = load(store, sweep_id)
    table = tables.summary(sweep)
    print(f"\n{tables.text(table)}\n")
    _print_failures(sweep)
    written = {name: _draw(sweep, name, folder) for name in sweep.experiments}
    for file in [file for files in written.values() for file in files]:
        print(f"figure     {file}")
    for name in sweep.experiments:
        print(f"dashboard  {dashboard.link(sweep, name)}  (make dashboard serves it)")
    print(f"store      {store}")
    return written


def _print_failures(sweep: Sweep) -> None:
    schemes = sweep.of_role("scheme")
    failed = schemes[schemes["verdict"] == "failed"]
    if failed.empty:
        return
    print(f"{len(failed)} of {len(schemes)} jobs failed:")
    for row in failed.to_dict("records"):
        print(f"  {row['experiment']}, {row['label']}: {row['reason']}")
    print()


def _draw(sweep: Sweep, experiment: str, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    schemes = sweep.of_role("scheme", experiment)
    schemes = schemes[schemes["verdict"] != "failed"]
    drawn = schemes[schemes["verdict"] != "diverged"]
    facts = {"sweep": sweep.sweep_id, "command": sweep.of_role("sweep")["tags.command"].iloc[0]}
    figure = histories.draw(sweep.histories(drawn), drawn, experiment)
    several = len(sweep.experiments) > 1
    stem = f"histories-{experiment}" if several else "histories"
    return style.save(figure, folder / stem, facts)
