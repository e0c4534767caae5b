"""The report: one self-contained HTML file with a whole comparison."""

import base64
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pandas as pd

from normbench import names
from normbench.results.answer import cause, fastest, headline, scheme_faults, tables
from normbench.results.answer import closing as answer
from normbench.results.answer import theory_table as theory
from normbench.results.answer.race import race_target
from normbench.results.answer.ranking import by_problem
from normbench.results.compare import comparisons, heldout, passes, problems
from normbench.results.compare.merging import merged
from normbench.results.compare.reached import compares_counts, excess_shown, finds_own_steps
from normbench.results.figures import NAMES, PHOTOGRAPHIC_FIGURES, SWEEP_FIGURES, drawing
from normbench.results.figures.base import output
from normbench.results.report import captions, explorer, inline, profile
from normbench.results.safe import clean
from normbench.results.store import comparison_files
from normbench.results.store.errors import unwritable
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.words import headings, reasons
from normbench.results.words.reasons import SchemeRecord

if TYPE_CHECKING:
    from jinja2 import Template

REPORT_FILE = "report.html"
PAGE_TEMPLATE = Path(__file__).with_name("report.html.jinja")
LEADING_FIGURES = ("melt",)  # the figures above the tables
MAX_SVG_LENGTH = 300_000  # characters; a longer figure is embedded as PNG
Files = Mapping[str, Sequence[Path]]
Table = dict[str, Any]  # see `_table`


def write(
    sweep: Sweep, folder: Path, drawn: Files | None = None, is_complete: bool = False
) -> Path:
    """Write the report of a sweep into a folder.

    Args:
        sweep: The runs.
        folder: Where the report is written.
        drawn: The figures' files by experiment; they are drawn if this is None.
        is_complete: See `render`.

    Returns:
        The file.

    Raises:
        ResultsError: The folder cannot be written.
    """
    file = folder / REPORT_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(render(sweep, drawn, is_complete), encoding="utf-8")
    except OSError as error:
        raise unwritable(folder, error) from error
    return file


def render(sweep: Sweep, drawn: Files | None = None, is_complete: bool = False) -> str:
    """Return the report of a sweep as HTML.

    Args:
        sweep: The runs.
        drawn: The figures' files by experiment; they are drawn if this is None.
        is_complete: Whether all jobs are done, as the sweep itself knows, whose run in the store
            ends only after its report. Otherwise the page says what the store knows.

    Returns:
        The page.
    """
    if drawn is None:  # the page embeds the figures, so that their files need not be kept
        with TemporaryDirectory() as folder:
            files = drawing.write(sweep, Path(folder), file_formats=("svg",))
            return render(sweep, files, is_complete)
    sections = [
        _section(f"s{number}", sweep, experiment, drawn.get(experiment, ()))
        for number, experiment in enumerate(sweep.experiments, 1)
    ]
    first = sweep.experiments[0]
    return template().render(
        title=sections[0]["question"] if len(sections) == 1 else _title(sweep),
        answer=headline.headline(sweep),
        cause=cause.cause(sweep, first) if len(sections) == 1 else "",
        state="" if is_complete else " ".join(comparison_files.sentences(sweep.comparisons)),
        overview=_pictures("all", sweep, first, drawn.get(first, ()), SWEEP_FIGURES),
        sections=sections,
        pairs=_pairs(sweep),
        sweep_id=sweep.sweep_id,
        which_step=sweep.which_step(),
        started=_started(sweep),
        command=sweep.command,
        environment=_environment(sweep),
        script=explorer.SCRIPT,
        script_hash=explorer.SCRIPT_HASH,
        verdicts=names.VERDICTS,
        inverted=inline.DARK_BLEND,
    )


@cache
def template() -> "Template":
    """Return the template of the page, compiled once a process."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_sanitize,
    )
    return environment.from_string(PAGE_TEMPLATE.read_text(encoding="utf-8"))


def _sanitize(value: Any) -> Any:
    """Sanitize a value that the template prints; text marked as safe markup is left as it is."""
    return clean.sanitize(value) if type(value) is str else value


def _title(sweep: Sweep) -> str:
    """Return the title of a report on several experiments: the question that it answers.

    It names the quantity that is compared: the cost, the misclassified points, or both.
    """
    runs = merged(sweep)
    schemes_by_problem = [
        schemes
        for experiment in sweep.experiments
        for schemes in by_problem(runs.of_role(names.SCHEME, experiment))
    ]
    schemes = pd.concat(schemes_by_problem)
    by_count, labels = compares_counts(schemes), list(dict.fromkeys(schemes["label"]))
    over = f"over {len(schemes_by_problem)} problems"
    if len(labels) == 1:
        quantities = [] if by_count.all() else ["the cost"]
        quantities += ["the number of misclassified points"] if by_count.any() else []
        return f"How far does {labels[0]} lower {' or '.join(quantities)}, {over}?"
    verbs = [] if by_count.all() else ["lowers the cost furthest"]
    verbs += ["leaves the fewest points misclassified"] if by_count.any() else []
    return f"Which of {len(labels)} normalization schemes {' or '.join(verbs)}, {over}?"


def _started(sweep: Sweep) -> str:
    """Return when the sweep started, in UTC."""
    first = _sweep_runs(sweep)["started"].min() / 1000
    return datetime.fromtimestamp(first, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _sweep_runs(sweep: Sweep) -> pd.DataFrame:
    """Return the sweep run, which has the facts of the whole command, as a table.

    It has several rows if sweeps are shown together.
    """
    return sweep.of_role(names.SWEEP)


def _section(
    section_id: str, sweep: Sweep, experiment: str, files: Sequence[Path]
) -> dict[str, Any]:
    """Return the variables of the template for the section of one experiment.

    Args:
        section_id: The id of the section on the page, from which the ids of its figures are made.
        sweep: The runs.
        experiment: The experiment.
        files: The files of the experiment's figures.

    Returns:
        The variables by name, as `report.html.jinja` uses them; None for a table without rows.
    """
    experiment_sweep = sweep.only(experiment)
    schemes = merged(experiment_sweep).of_role(names.SCHEME)
    splits = heldout.by_split(sweep)
    splits = splits[splits["experiment"] == experiment]
    budget = passes.budget(schemes)
    ranking = answer.ranking_paragraph(experiment_sweep, experiment)
    shared, varied = _settings(schemes)
    data = schemes["data"][schemes["data"] != ""]
    return {
        "id": section_id,
        "experiment": experiment,
        "question": answer.question(experiment_sweep, experiment),
        "answer": headline.headline(experiment_sweep, experiment),
        "cause": cause.cause(experiment_sweep, experiment),
        "ranking": ranking,
        "answers": [
            *profile.notes([experiment_sweep]),
            *scheme_faults.remarks(experiment_sweep, experiment),
            *fastest.answers(experiment_sweep, experiment, splits),
            # The ranking has those on exclusions.
            *(
                line
                for line in answer.batch_and_exclusion_remarks(experiment_sweep, experiment)
                if line not in ranking
            ),
            *answer.targets(experiment_sweep),
        ],
        "summary": _table(
            ", ".join(
                filter(
                    None, [f"Each scheme at its {experiment_sweep.which_step()} step size", budget]
                )
            ),
            tables.summary(experiment_sweep),
        ),
        "held_out": _held_out(
            splits, heldout.cross_validated(experiment_sweep), passes.unit(schemes)
        ),
        "first": _pictures(section_id, experiment_sweep, experiment, files, LEADING_FIGURES),
        "pictures": _pictures(
            section_id,
            experiment_sweep,
            experiment,
            files,
            [n for n in NAMES if n not in (*SWEEP_FIGURES, *LEADING_FIGURES)],
        ),
        "which_step": experiment_sweep.which_step(),
        "explored": explorer.data(experiment_sweep, experiment),
        "iterations": passes.unit(schemes).many,
        "theory": theory.explanation(experiment_sweep, experiment),
        "explanations": _explanations(schemes),
        "predictions": _predictions(experiment_sweep),
        "data": list(dict.fromkeys(data)),
        "shared": shared,
        "varied": varied,
        "lost": _failed_runs(experiment_sweep),
        "steps": _steps(experiment_sweep),
    }


def _table(caption: str, frame: pd.DataFrame) -> Table:
    """Return a table for the template: caption, columns, and rows of formatted cells.

    The key `words` has for each column whether it holds text, which is aligned to the left. The
    first column holds the rows' headings.
    """
    cells = tables.format_cells(frame)
    rows = list(zip(*cells.values(), strict=True))
    holds_text = [tables.holds_text(name, frame) for name in cells]
    return {"caption": caption, "columns": list(cells), "words": holds_text, "rows": rows}


def _predictions(experiment_sweep: Sweep) -> Table | None:
    """Return the table of theory's predictions, None where no theory was recorded."""
    # `predictions` leaves out the column 2/L where no scheme has one.
    caption, table = headings.PREDICTIONS, theory.predictions(experiment_sweep)
    return _table(caption, table) if "2/L" in table else None


def _held_out(
    splits: pd.DataFrame, folds: pd.DataFrame, unit: passes.Unit = passes.ITERATION_UNIT
) -> list[Table]:
    """Return the tables of held-out points: of the schemes, and of pairs if there are splits.

    Without test points it is the table of cross-validation, if there is one.

    Args:
        splits: One row a scheme and split, from `heldout.by_split`.
        folds: One row a scheme, from `heldout.cross_validated`.
        unit: What an iteration is, see `passes.unit`.
    """
    if splits.empty:
        caption = headings.CROSS_VALIDATION
        return [] if folds.empty else [_table(caption, folds)]
    caption = headings.TEST_POINTS
    pairs = heldout.compare_pairs(splits)
    tables_of_splits = [_table(caption, heldout.summary(splits, unit))]
    # Pairs that share a single split have no conclusion.
    if len(pairs) and pairs["splits"].max() > 1:
        caption = f"{headings.TEST_PAIRS}; {heldout.difference_caption(splits)}"
        caption += f" ({comparisons.assurance(pairs)}); {heldout.CLAIMS}"
        tables_of_splits.append(_table(caption, pairs))
    return tables_of_splits


def _explanations(schemes: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return the label, the short and the full explanation of each scheme that has one."""
    column = names.EXPLANATION.column
    if column not in schemes:
        return []
    explained = schemes[schemes[column].notna()]
    return [
        (row["label"], reasons.explain_briefly(SchemeRecord.from_row(row)), row[column])
        for row in as_rows(explained)
    ]


def _settings(schemes: pd.DataFrame) -> tuple[list[tuple[str, str]], Table | None]:
    """Return the settings of an experiment.

    Args:
        schemes: The scheme runs.

    Returns:
        The names and values of the settings that all schemes share, and a table of the settings
        that differ; None where none differs.
    """
    frame = schemes[[name for name in schemes if name.startswith(names.PARAMS)]]
    frame = frame.rename(columns=lambda name: name.removeprefix(names.PARAMS))
    # Parameters that no scheme has are no settings of this experiment.
    frame = frame.dropna(axis="columns", how="all").astype(object)
    frame = frame.map(names.as_typed, na_action="ignore")
    shared_names = [name for name in frame if frame[name].nunique(dropna=False) == 1]
    home = f"{Path.home()}{os.sep}"  # a report may be sent to others
    values = {name: str(frame[name].iloc[0]) for name in sorted(shared_names)}
    shared = [(name, re.sub(f"^{re.escape(home)}", "~/", value)) for name, value in values.items()]
    differing = frame.drop(columns=shared_names)
    if differing.empty:
        return shared, None
    differing = differing.where(differing.notna(), None)  # printed as `-`
    differing.insert(0, "scheme", schemes["label"])
    return shared, _table("Settings that differ between the schemes", differing)


def _failed_runs(experiment_sweep: Sweep) -> Table | None:
    """Return the table of failed, diverged and undecided runs with their reasons.

    Failed runs are jobs, without a step size; diverged and undecided ones, which rounding decides,
    are runs of one step size. None where there are no such runs.
    """
    rows = []
    for row in as_rows(experiment_sweep.of_role(names.SCHEME)):
        if row["verdict"] == names.FAILED:
            rows.append((row["label"], None, row["verdict"], row["reason"]))
    for row in as_rows(experiment_sweep.of_role(names.STEP)):
        if row["verdict"] in names.UNRANKED:
            size = row.get(names.STEP_TAG.column)
            rows.append((row["label"], size, row["verdict"], row["reason"]))
    if not rows:
        return None
    frame = pd.DataFrame(rows, columns=["scheme", "step size", "verdict", "reason"])
    return _table("Failed and diverged runs, and those that rounding decides", frame)


def _steps(experiment_sweep: Sweep) -> Table | None:
    """Return the table of all step sizes, which gives the figures' content to screen readers.

    None for jobs without a descent.
    """
    schemes = merged(experiment_sweep).of_role(names.SCHEME).set_index("label").to_dict("index")
    steps = merged(experiment_sweep).of_role(names.STEP)
    if steps.empty:
        return None
    rows = [
        {
            "scheme": row["label"],
            "step size": None
            if finds_own_steps(schemes[row["label"]])
            else row.get(names.STEP_TAG.column),
            "verdict": row["verdict"],
            "cost": row.get(names.FINAL_COST.column),
            # Over the lowest cost that was seen, the run that saw it has nothing left.
            tables.EXCESS_LEFT: None
            if schemes[row["label"]].get(names.MINIMUM_REACHED.column) == "false"
            else excess_shown(row, schemes[row["label"]]),
            "misclassified": row.get(names.FINAL_MISCLASSIFICATIONS.column),
        }
        for row in as_rows(steps)
        if row["label"] in schemes  # a step run without its scheme run has no excess
    ]
    frame = pd.DataFrame(rows)
    diverged = frame["verdict"] == names.DIVERGED  # a diverged run has no final cost
    frame[["cost", "misclassified"]] = frame[["cost", "misclassified"]].mask(diverged)
    return _table("Every step size", frame.dropna(axis="columns", how="all"))


def _pairs(sweep: Sweep) -> Table | None:
    """Return the table that compares each two schemes by the iterations to the race's target.

    Its caption says how sure its conclusions are, and of which sample. The table is None where no
    two schemes share two splits.
    """
    target = race_target(sweep)
    pairs = comparisons.compare_pairs_over_splits(sweep, target)
    if pairs.empty:
        return None
    unit = passes.unit(sweep.of_role(names.SCHEME)).many
    sample = problems.sample_name(problems.scheme_runs([sweep]))
    caption = headings.iterations_to(unit, target, headings.PAIRS.format(sample=sample))
    return _table(f"{caption} ({comparisons.assurance(pairs, sample)})", pairs)


def _environment(sweep: Sweep) -> list[tuple[str, str]]:
    """Return the names and versions of the libraries and of the code that ran the sweep."""
    row = _sweep_runs(sweep).iloc[0].dropna()  # of several sweeps, the first
    versions = names.version("").column
    version_rows = [
        (name.removeprefix(versions), str(row[name]))
        for name in row.index
        if name.startswith(versions)
    ]
    if names.BLAS.column in row:
        version_rows.append(("linear algebra", str(row[names.BLAS.column])))
    if names.COMMIT.column in row:
        dirty = ", with changes" if row.get(names.GIT_DIRTY.column) == "true" else ""
        version_rows.append(("commit", f"{row[names.COMMIT.column]}{dirty}"))
    return version_rows


def _pictures(
    section: str,
    experiment_sweep: Sweep,
    experiment: str,
    files: Sequence[Path],
    figure_names: Sequence[str],
) -> list[dict[str, Any]]:
    """Return those of the named figures that have a file, for the template.

    Args:
        section: The id of the section, from which the ids of the figures are made.
        experiment_sweep: The runs.
        experiment: The experiment.
        files: The files of its figures, named `FIGURE-EXPERIMENT`.
        figure_names: The names of the figures, in the order of the result.
    """
    by_name = {file.stem.removesuffix(f"-{clean.name(experiment)}"): file for file in files}
    return [
        _picture(section, experiment_sweep, experiment, name, by_name[name])
        for name in figure_names
        if name in by_name
    ]


def _picture(
    section: str, experiment_sweep: Sweep, experiment: str, name: str, file: Path
) -> dict[str, Any]:
    """Return a figure for the template.

    Args:
        section: The id of the section, from which the ids inside the figure are made.
        experiment_sweep: The runs.
        experiment: The experiment.
        name: The name of the figure.
        file: A file of the figure; the file beside it with the suffix `.svg` is read.

    Returns:
        `caption`; `words`, the text alternative; `plot`, whether dark mode inverts its colours; and
        `svg`, an element, or for a long one `png`, a data URL.
    """
    description = NAMES[name]
    # Without the remarks in parentheses.
    caption = description[0].upper() + description[1:].split(" (")[0]
    finding = captions.describe_figure(experiment_sweep, experiment, name)
    text_alternative = (
        f"Figure: {finding or f'{caption}, {experiment}.'} The numbers stand in the tables."
    )
    caption = f"{finding} ({caption}.)" if finding else f"{caption}."
    prefix = f"{section}-{list(NAMES).index(name)}-"
    picture = {
        "caption": caption,
        "words": text_alternative,
        "plot": name not in PHOTOGRAPHIC_FIGURES,
    }
    svg = file.with_suffix(".svg").read_text(encoding="utf-8")
    if len(svg) <= MAX_SVG_LENGTH:
        return {**picture, "svg": inline.element(svg, prefix)}
    return {**picture, "png": _png(experiment_sweep, experiment, name)}


def _png(experiment_sweep: Sweep, experiment: str, name: str) -> str:
    """Return a figure as a data URL of a PNG."""
    figure = drawing.figure(experiment_sweep, experiment, name)
    assert figure is not None  # it was drawn as SVG before
    with TemporaryDirectory() as folder:
        (file,) = output.save(figure, Path(folder) / name, {}, ("png",))
        data = base64.b64encode(file.read_bytes()).decode()
    return f"data:image/png;base64,{data}"
