"""The report: one HTML file that holds a whole comparison and asks nothing of any other place."""

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from normbench import names
from normbench.results.answer import cause, fastest, headline, tables
from normbench.results.answer import closing as answer
from normbench.results.answer import theory_table as theory
from normbench.results.answer.ranking import by_problem
from normbench.results.compare import comparisons, heldout, problems
from normbench.results.compare.merging import merged
from normbench.results.compare.reached import counts, excess_shown
from normbench.results.figures import NAMES, WHOLE, drawing
from normbench.results.figures.base import output
from normbench.results.report import captions, explorer, inline, profile
from normbench.results.safe import clean
from normbench.results.store import state
from normbench.results.store.errors import unwritable
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.words import headings, reasons
from normbench.results.words.reasons import Found

FILE = "report.html"
TEMPLATE = Path(__file__).with_name("report.html.jinja")
FIRST = ("melt",)  # the figures above the tables
# Figures that hold photographs, whose lightness is their content.
IMAGES = ("colours", "components", "exemplars", "reconstruction", "weighted")
LARGEST = 300_000  # characters: a figure of more points than that is embedded as a PNG
Files = Mapping[str, Sequence[Path]]
Table = dict[str, Any]  # see `_table`


def write(sweep: Sweep, folder: Path, drawn: Files | None = None) -> Path:
    """Write a sweep's report into a folder; return the file.

    drawn: the figures' files by experiment, where they are drawn already. Raises ResultsError
    where the folder cannot be written.
    """
    file = folder / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(render(sweep, drawn), encoding="utf-8")
    except OSError as error:
        raise unwritable(folder, error) from error
    return file


def render(sweep: Sweep, drawn: Files | None = None) -> str:
    """Return the report of a sweep as HTML; drawn as for `write`."""
    from jinja2 import Environment, StrictUndefined

    if drawn is None:
        with TemporaryDirectory() as folder:
            return render(sweep, drawing.write(sweep, Path(folder), kinds=("svg",)))
    sections = [
        _section(f"s{number}", sweep, experiment, drawn.get(experiment, ()))
        for number, experiment in enumerate(sweep.experiments, 1)
    ]
    first = sweep.experiments[0]
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_told,
    )
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        title=sections[0]["question"] if len(sections) == 1 else _title(sweep),
        answer=headline.headline(sweep),
        cause=cause.cause(sweep, first) if len(sections) == 1 else "",
        state=state.of(sweep).sentence,
        overview=_pictures("all", sweep, first, drawn.get(first, ()), WHOLE),
        sections=sections,
        pairs=_pairs(comparisons.repeated(sweep)),
        sweep_id=sweep.sweep_id,
        which_step=sweep.which_step(),
        started=_started(sweep),
        command=sweep.command,
        store=sweep.store,
        environment=_environment(sweep),
        script=explorer.SCRIPT,
        script_hash=explorer.HASH,
        verdicts=names.VERDICTS,
        inverted=inline.INVERTED,
    )


def _told(value: Any) -> Any:
    """Clean whatever the template prints."""
    return clean.shown(value) if type(value) is str else value


def _title(sweep: Sweep) -> str:
    """Return what a sweep of several experiments asks, with the problems that the answer counts."""
    schemes = merged(sweep)
    problems_of_all = [
        rows
        for name in sweep.experiments
        for rows in by_problem(schemes.of_role(names.SCHEME, name))
    ]
    every = pd.concat(problems_of_all)
    by_count = counts(every)
    verbs = [] if by_count.all() else ["lowers the cost furthest"]
    verbs += ["leaves the fewest points misclassified"] if by_count.any() else []
    return (
        f"Which of {every['label'].nunique()} normalization schemes {' or '.join(verbs)}, "
        f"over {len(problems_of_all)} problems?"
    )


def _started(sweep: Sweep) -> str:
    first = _own(sweep)["started"].min() / 1000
    return datetime.fromtimestamp(first, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _own(sweep: Sweep) -> pd.DataFrame:
    """Return the sweep's own runs; where they were deleted, those of its jobs."""
    own = sweep.of_role(names.SWEEP)
    return own if len(own) else sweep.of_role(names.SCHEME)


def _section(name: str, sweep: Sweep, experiment: str, files: Sequence[Path]) -> dict[str, Any]:
    """Return what the template says of one experiment, by its name there."""
    part = sweep.only(experiment)
    schemes = merged(part).of_role(names.SCHEME)
    splits = heldout.by_split(sweep)
    splits = splits[splits["experiment"] == experiment]
    within = problems.budget(schemes)
    shared, varied = _settings(schemes)
    data = schemes["data"][schemes["data"] != ""]
    return {
        "id": name,
        "experiment": experiment,
        "question": answer.question(part, experiment),
        "answer": headline.headline(part, experiment),
        "cause": cause.cause(part, experiment),
        "ranking": answer.sentence(part, experiment),
        "answers": [*profile.notes([part]), *fastest.answers(part, experiment, splits)],
        "summary": _table(
            ", ".join(filter(None, [f"Each scheme at its {part.which_step()} step size", within])),
            tables.summary(part),
        ),
        "held_out": _held_out(splits, heldout.cross_validated(part)),
        "first": _pictures(name, part, experiment, files, FIRST),
        "pictures": _pictures(
            name, part, experiment, files, [n for n in NAMES if n not in (*WHOLE, *FIRST)]
        ),
        "which_step": part.which_step(),
        "explored": explorer.data(part, experiment),
        "theory": theory.explanation(part, experiment),
        "explanations": _explanations(schemes),
        "predictions": _predictions(part),
        "data": list(dict.fromkeys(data)),
        "shared": shared,
        "varied": varied,
        "lost": _lost(part),
        "steps": _steps(part),
    }


def _table(caption: str, frame: pd.DataFrame) -> Table:
    """Return a table for reading: its caption, its columns, and its rows of cells, numbers rounded.

    words: of each column, whether it holds words, which stand to the left. The first column
    names its row.
    """
    cells = tables.cells(frame)
    rows = list(zip(*cells.values(), strict=True))
    words = [tables.is_words(name, frame) for name in cells]
    return {"caption": caption, "columns": list(cells), "words": words, "rows": rows}


def _predictions(part: Sweep) -> Table | None:
    caption, table = headings.PREDICTIONS, theory.predictions(part)
    return _table(caption, table) if "2/L" in table else None


def _held_out(splits: pd.DataFrame, folds: pd.DataFrame) -> list[Table]:
    """Return the tables of the points held out: every scheme, and pairs where there are splits."""
    if splits.empty:
        caption = headings.FOLDS
        return [] if folds.empty else [_table(caption, folds)]
    caption = headings.TEST_POINTS
    pairs = heldout.paired(splits)
    found = [_table(caption, heldout.summary(splits))]
    if len(pairs) and pairs["splits"].max() > 1:
        caption = f"{headings.TEST_PAIRS}; {heldout.unit(splits)}"
        caption += f" ({comparisons.assurance(pairs)}); {heldout.CLAIMS}"
        found.append(_table(caption, pairs))
    return found


def _explanations(schemes: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return each scheme's label, theory in three sentences, and all of it, where it has one."""
    said = names.EXPLANATION.column
    if said not in schemes:
        return []
    known = schemes[schemes[said].notna()]
    return [
        (row["label"], reasons.in_short(Found.of_row(row)), row[said]) for row in as_rows(known)
    ]


def _settings(schemes: pd.DataFrame) -> tuple[list[tuple[str, str]], Table | None]:
    """Return the settings that all schemes share, and a table of those that they do not."""
    frame = schemes[[name for name in schemes if name.startswith(names.PARAMS)]]
    frame = frame.rename(columns=lambda name: name.removeprefix(names.PARAMS))
    frame = frame.dropna(axis="columns", how="all").astype(object)
    frame = frame.map(names.typed, na_action="ignore")
    same = [name for name in frame if frame[name].nunique(dropna=False) == 1]
    shared = [(name, str(frame[name].iloc[0])) for name in sorted(same)]
    own = frame.drop(columns=same)
    if own.empty:
        return shared, None
    own = own.where(own.notna(), None)
    own.insert(0, "scheme", schemes["label"])
    return shared, _table("Settings that differ between the schemes", own)


def _lost(part: Sweep) -> Table | None:
    """Return every failed, diverged or unfinished run, or one of rounding, with its reason."""
    rows = []
    for row in as_rows(part.of_role(names.SCHEME)):
        if row["verdict"] == names.FAILED or (not row["verdict"] and row["status"] != "FINISHED"):
            reason = row["reason"] or f"the job ended as {row['status']}"
            rows.append((row["label"], None, row["verdict"] or "unfinished", reason))
    for row in as_rows(part.of_role(names.STEP)):
        if row["verdict"] in names.UNRANKED:
            size = row.get(names.STEP_TAG.column)
            rows.append((row["label"], size, row["verdict"], row["reason"]))
    if not rows:
        return None
    frame = pd.DataFrame(rows, columns=["scheme", "step size", "verdict", "reason"])
    return _table("Failed and diverged runs, and those that rounding decides", frame)


def _steps(part: Sweep) -> Table | None:
    """Return what every step size of every scheme came to: the figures, for those who hear them."""
    schemes = merged(part).of_role(names.SCHEME).set_index("label").to_dict("index")
    steps = merged(part).of_role(names.STEP)
    if steps.empty:
        return None
    rows = [
        {
            "scheme": row["label"],
            "step size": row.get(names.STEP_TAG.column),
            "verdict": row["verdict"],
            "cost": row.get(names.FINAL_COST.column),
            tables.EXCESS_LEFT: excess_shown(row, schemes[row["label"]]),
            "misclassified": row.get(names.FINAL_MISCLASSIFICATIONS.column),
        }
        for row in as_rows(steps)
        if row["label"] in schemes
    ]
    frame = pd.DataFrame(rows)
    diverged = frame["verdict"] == names.DIVERGED  # which have no final cost
    frame[["cost", "misclassified"]] = frame[["cost", "misclassified"]].mask(diverged)
    return _table("Every step size", frame.dropna(axis="columns", how="all"))


def _pairs(pairs: pd.DataFrame) -> Table | None:
    if pairs.empty:
        return None
    caption = headings.PAIRS
    return _table(f"{caption} ({comparisons.assurance(pairs)})", pairs)


def _environment(sweep: Sweep) -> list[tuple[str, str]]:
    """Return the versions and the code that made the sweep."""
    row = _own(sweep).iloc[0].dropna()
    versions = names.version("").column
    found = [
        (name.removeprefix(versions), str(row[name]))
        for name in row.index
        if name.startswith(versions)
    ]
    if names.BLAS.column in row:
        found.append(("linear algebra", str(row[names.BLAS.column])))
    if names.COMMIT.column in row:
        dirty = ", with changes" if row.get(names.GIT_DIRTY.column) == "true" else ""
        found.append(("commit", f"{row[names.COMMIT.column]}{dirty}"))
    return found


def _pictures(
    section: str, part: Sweep, experiment: str, files: Sequence[Path], wanted: Sequence[str]
) -> list[dict[str, Any]]:
    """Return those of the wanted figures that have a file."""
    by_name = {file.stem.removesuffix(f"-{clean.name(experiment)}"): file for file in files}
    return [
        _picture(section, part, experiment, name, by_name[name])
        for name in wanted
        if name in by_name
    ]


def _picture(section: str, part: Sweep, experiment: str, name: str, file: Path) -> dict[str, Any]:
    """Return a figure as it is drawn in its file, its caption, and it in words."""
    what = NAMES[name]
    caption = what[0].upper() + what[1:].split(" (")[0]
    found = captions.finding(part, experiment, name)
    words = f"Figure: {found or f'{caption}, {experiment}.'} The numbers stand in the tables."
    caption = f"{found} ({caption}.)" if found else f"{caption}."
    prefix = f"{section}-{list(NAMES).index(name)}-"
    shown = {"caption": caption, "words": words, "plot": name not in IMAGES}
    svg = file.with_suffix(".svg").read_text(encoding="utf-8")
    if len(svg) <= LARGEST:
        return {**shown, "svg": inline.element(svg, prefix)}
    return {**shown, "png": _png(part, experiment, name)}


def _png(part: Sweep, experiment: str, name: str) -> str:
    """Return the address of a figure as PNG data."""
    figure = drawing.figure(part, experiment, name)
    assert figure is not None
    with TemporaryDirectory() as folder:
        (file,) = output.save(figure, Path(folder) / name, {}, ("png",))
        data = base64.b64encode(file.read_bytes()).decode()
    return f"data:image/png;base64,{data}"
