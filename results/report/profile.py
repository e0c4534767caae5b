"""The output of `normbench results profile`: schemes compared over any set of sweeps."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.answer import tables
from normbench.results.answer import theory_table as theory
from normbench.results.compare import comparisons, problems, reached
from normbench.results.compare.merging import merged
from normbench.results.store import state
from normbench.results.store.errors import ResultsError, unwritable
from normbench.results.store.runs import Sweep
from normbench.results.words import headings
from normbench.results.words.sentences import Sentence, join_phrases, make_sentence

if TYPE_CHECKING:
    from normbench.results.figures.base import style

FACTORS = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0, float("inf"))
PROFILES_FILE = "profiles"  # of the figure, without its suffix
NO_PROBLEM = "no job with a descent"
NO_PAIR = "no problem on which two schemes were run"
NO_SCHEME = "no scheme reaches the target on any problem that every scheme was run on"
RANGE_NOTE = "range: the first number is what a step size between those tried might take at best"
UNREACHED_NOTE = "schemes that do not reach the target are ranked by the excess cost they end with"
MEDIAN_NOTE = "low to high: an interval of the median rank"
NOT_ALL = "no problem on which every scheme was run; name the comparisons that share their schemes"


def tell(
    store: str,
    sweep_ids: Sequence[str],
    target: str,
    measure: str,
    folder: Path | None = None,
    shape: "style.Shape | None" = None,
) -> None:
    """Print the leaderboard, predictions, pairs, ranks and profiles of sweeps.

    Args:
        store: An MLflow store or server.
        sweep_ids: The sweeps; without any, the last one.
        target: The share of the excess that is to be reached, one of `comparisons.TARGET_NAMES`.
        measure: What is counted until then, one of `names.MEASURES`.
        folder: Where the figure of the profiles is written; None for no figure.
        shape: The figure's size.

    Raises:
        ResultsError: A sweep, the target or the measure does not exist, the folder cannot be
            written, or there is no problem to draw.
    """
    for name, value, choices in (
        ("target", target, comparisons.TARGET_NAMES),
        ("by", measure, names.MEASURES),
    ):
        if value not in choices:
            raise ResultsError(f"--{name} {value}: choose one of {', '.join(choices)}")
    first_sweep, state_notes = state.read(store, sweep_ids[:1])
    loaded = [first_sweep, *(state.read(store, [sweep_id])[0] for sweep_id in sweep_ids[1:])]
    if len(loaded) > 1:
        state_notes = [note for sweep in loaded for note in sweep.left_out]
        state_notes += state.sentences([state.state_of(sweep) for sweep in loaded])
    table = reached.reached(loaded, target, measure)
    goal = f"{100 * float(target):g} % of the excess cost is left"
    print(f"{measure} until {goal}, and no more later; each scheme at its best step size for")
    print("that on each split; of several starts, the median\n")
    for note in (*state_notes, *notes(loaded)):
        print(f"{note}\n")
    board = comparisons.leaderboard(table)  # the answer; the tables below it explain it
    _show(f"leaderboard{_over(board)}", board, NOT_ALL, MEDIAN_NOTE)
    _show(headings.PREDICTIONS, _predictions(loaded), NO_PROBLEM)
    spread = comparisons.spread(table)
    _show("median and quartiles over splits", spread, NO_PROBLEM, RANGE_NOTE)
    pairs = comparisons.paired(table)
    assurance = comparisons.assurance(pairs) if len(pairs) else ""
    _show("pairs; ratio: how many times longer the other scheme takes", pairs, NO_PAIR, assurance)
    _show(
        "mean rank by experiment", comparisons.ranks(table).reset_index(), NOT_ALL, UNREACHED_NOTE
    )
    count, every = comparisons.unsolved(table)
    profile_title = "performance profile: share of problems within a factor of the fastest"
    unsolved_note = f"on {count} of {every} splits no scheme reaches it" if count else ""
    _show(profile_title, wide(table), NO_SCHEME if count else NOT_ALL, unsolved_note)
    if folder is not None:
        title = f"{measure} until {goal}{_over(board)}"
        if not (profile_table := comparisons.profile(table)).empty:
            ids = ", ".join(sweep.sweep_id for sweep in loaded)
            _draw(profile_table, title, folder, shape, {"sweep": ids})
            return
        raise ResultsError(f"--out {folder}: nothing to draw; {NO_SCHEME if count else NOT_ALL}")


def _over(board: pd.DataFrame) -> str:
    """Return the numbers of problems and splits of a leaderboard, as a suffix of a title."""
    if board.empty:
        return ""
    count, splits = int(board["problems"].max()), int(board["splits"].max())
    counts = [f"{count} problem{'s' * (count > 1)}", f"{splits} split{'s' * (splits > 1)}"]
    return f", n = {counts[0]}" + (f", {counts[1]}" if splits > count else "")


def notes(loaded: Sequence[Sweep]) -> list[str]:
    """Return sentences that a reader needs before comparing the schemes of loaded sweeps."""
    schemes = pd.concat([sweep.of_role(names.SCHEME) for sweep in loaded])
    has_own_functions = any(problems.own_functions(sweep.of_role(names.SCHEME)) for sweep in loaded)
    sentences = [
        *_counts(schemes),
        *_starts(schemes),
        *(sentence for sweep in loaded for sentence in _networks(sweep)),
        *([make_sentence("own_functions")] if has_own_functions else []),
    ]
    return [*problems.idle_seeds(loaded), *(sentence.text for sentence in sentences)]


def _counts(schemes: pd.DataFrame) -> list[Sentence]:
    """Say in which experiments misclassified points are compared, and why."""
    counted = schemes[reached.counts(schemes)]
    experiments = ", ".join(dict.fromkeys(counted["experiment"]))
    return [make_sentence("counts", experiments=experiments)] if experiments else []


def _starts(schemes: pd.DataFrame) -> list[Sentence]:
    """Return sentences on whether the schemes of each experiment start at the same function."""
    start = names.setting("start")
    if start not in schemes:
        return []
    experiments_by_choice: dict[tuple[str, ...], list[str]] = {}  # by template and labels
    for experiment, rows in schemes.groupby("experiment", sort=False):
        # A network has a label for each scheme inside it, under the same normalizer of its inputs.
        is_network = problems.has_networks(rows)
        has_several = rows["normalizer" if is_network else "label"].nunique() > 1
        if has_several or is_network:
            choice = _choose_start_template(rows.groupby(start, sort=False))
            if choice == ("other_functions",) and is_network:
                choice = ("other_networks",) if has_several else ("drawn_networks",)
            experiments_by_choice.setdefault(choice, []).append(str(experiment))
    return [
        make_sentence(
            template, experiments=", ".join(experiments), **dict(zip(("same", "others"), labels))
        )
        for (template, *labels), experiments in experiments_by_choice.items()
        if template
    ]


def _networks(sweep: Sweep) -> list[Sentence]:
    """Return sentences on networks: they are not refined, and may rest above the lowest cost."""
    sentences, unrefined = [], []
    for experiment in sweep.experiments:
        rows = sweep.of_role(names.SCHEME, experiment)
        if not problems.has_networks(rows):
            continue
        if (rows.get(names.setting("refine"), pd.Series(dtype=str)) == "True").any():
            unrefined.append(experiment)
        rests = reached.resting_above_lowest(sweep, rows)
        if len(rests):
            labels = join_phrases(list(dict.fromkeys(rests["label"])))
            minimum = float(rests[names.MINIMUM.column].min())
            sentences.append(make_sentence("own_lowest", schemes=labels, minimum=minimum))
    if unrefined:
        sentences.append(make_sentence("unrefined", experiments=", ".join(unrefined)))
    return sentences


def _choose_start_template(rows_by_start: Any) -> tuple[str, ...]:
    """Return the template of the sentence on an experiment's starts, and the labels in it.

    The template is empty where the starts need no sentence. rows_by_start: the scheme runs, grouped
    by the setting `start`.
    """
    labels = {start: "; ".join(dict.fromkeys(rows["label"])) for start, rows in rows_by_start}
    if set(labels) == {"same_function", "normal"}:
        return "few_functions", labels["same_function"], labels["normal"]
    if set(labels) == {"same_function"}:
        return ("one_function",)
    if set(labels) == {"normal"}:
        return ("other_functions",)
    return ("",)


def _draw(
    table: pd.DataFrame,
    title: str,
    folder: Path,
    shape: "style.Shape | None",
    facts: dict[str, str],
) -> None:
    """Draw the profiles into a folder and print the names of the files."""
    from normbench.results.figures import profiles
    from normbench.results.figures.base import output, style

    figure = profiles.draw(table, title, shape=shape or style.SCREEN)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = output.save(figure, folder / PROFILES_FILE, facts)
    except OSError as error:
        raise unwritable(folder, error) from error
    for file in files:
        print(f"{'figure':10} {file}")


def _predictions(loaded: list[Sweep]) -> pd.DataFrame:
    """Return theory and observation of each scheme, with the setting where there are several."""
    placed = problems.placed(loaded)
    settings = dict(zip(placed["run_id"], placed["setting"]))
    frames = []
    for sweep in loaded:
        predictions = theory.predictions(sweep)
        if predictions.empty:
            continue
        if "experiment" not in predictions:
            predictions.insert(0, "experiment", sweep.experiments[0])
        rows = merged(sweep).of_role(names.SCHEME)
        run_ids = rows.loc[
            rows["verdict"] != names.FAILED, "run_id"
        ]  # the rows of `predictions`, in order
        predictions.insert(1, "setting", [settings.get(run, "") for run in run_ids])
        frames.append(predictions)
    if not frames:
        return pd.DataFrame()
    table = pd.concat(frames, ignore_index=True).drop_duplicates(ignore_index=True)
    return table if table["setting"].any() else table.drop(columns="setting")


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """Return the performance profiles at a few factors, one row a scheme."""
    tidy = comparisons.profile(table)
    shares = {}
    for factor in FACTORS:
        within = tidy[tidy["factor"] <= factor].groupby("scheme", sort=False)["share"].max()
        shares[f"x{factor:g}" if np.isfinite(factor) else "at all"] = within
    return pd.DataFrame(shares).map("{:.2f}".format).reset_index()


def _show(title: str, table: pd.DataFrame, nothing: str, note: str = "") -> None:
    """Print a table under its title and a note, or the reason why it is empty."""
    if table.empty:
        print(f"{title}: nothing to compare ({nothing})\n")
        return
    print("\n".join([title, *([f"({note})"] if note else []), tables.text(table)]), end="\n\n")
