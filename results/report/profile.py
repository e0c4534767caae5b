"""The output of `normbench results profile`: schemes compared over any set of sweeps."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.answer import theory_table as theory
from normbench.results.compare import comparisons, passes, problems, reached
from normbench.results.compare.merging import merged
from normbench.results.report import screen, screen_table
from normbench.results.store import comparison_files, state
from normbench.results.store.errors import ResultsError, unwritable
from normbench.results.store.rows import as_rows
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
PAIRS_TITLE = "pairs; ratio: how many times longer the other scheme takes"
EXTREMES = ", inf where it never gets there, 0 where the first scheme never does"
NOT_ALL = "no problem on which every scheme was run; name the comparisons that share their schemes"


def print_profile(
    home: Path,
    sweep_ids: Sequence[str],
    target: str,
    measure: str,
    folder: Path | None = None,
    shape: "style.Shape | None" = None,
) -> None:
    """Print the leaderboard, predictions, pairs, ranks and profiles of sweeps.

    Args:
        home: The folder of comparisons and their records.
        sweep_ids: The sweeps; without any, the last one.
        target: The share of the excess that is to be reached, one of `comparisons.TARGET_NAMES`.
        measure: What is counted until then, one of `names.MEASURES`.
        folder: Where the figure of the profiles is written; None for no figure.
        shape: The figure's size.

    Raises:
        ResultsError: A sweep, the target or the measure does not exist, the folder cannot be
            written, or there is no problem to draw.
    """
    # The options `--target` and `--by` of the command.
    for name, value, choices in (
        ("target", target, comparisons.TARGET_NAMES),
        ("by", measure, names.MEASURES),
    ):
        if value not in choices:
            raise ResultsError(f"--{name} {value}: choose one of {', '.join(choices)}")
    # Without ids, the last sweep is read. Notes on the state of several sweeps are made jointly.
    first_sweep, state_notes = state.read(home, sweep_ids[:1])
    loaded = [first_sweep, *(state.read(home, [sweep_id])[0] for sweep_id in sweep_ids[1:])]
    if len(loaded) > 1:
        # Sentences on runs that could not be read, then on the states of all sweeps.
        state_notes = [note for sweep in loaded for note in sweep.left_out]
        state_notes += comparison_files.sentences(
            comparison for sweep in loaded for comparison in sweep.comparisons
        )
    table = reached.time_to_target(loaded, target, measure)
    goal = f"{100 * float(target):g} % of the excess cost is left"
    jobs = pd.concat([sweep.of_role(names.SCHEME) for sweep in loaded])
    unit = passes.unit(jobs).many if measure == "iterations" else measure
    sample = problems.sample_name(problems.scheme_runs(loaded))
    rule = "each scheme at its best step size for that on each split; of several starts, the median"
    _print_paragraph(f"{unit} until {goal}, and no more later; {rule}")
    for note in (*state_notes, *notes(loaded)):
        _print_paragraph(note)
    board = comparisons.leaderboard(table)  # the answer; the tables below it explain it
    _show(f"leaderboard{_sample_sizes(board, sample)}", board, NOT_ALL, MEDIAN_NOTE)
    _show(headings.PREDICTIONS, _predictions(loaded), NO_PROBLEM)
    spread = comparisons.spread(table)
    _show(f"median and quartiles over {sample}", spread, NO_PROBLEM, RANGE_NOTE)
    pairs = comparisons.compare_pairs(table)
    assurance = comparisons.assurance(pairs, sample) if len(pairs) else ""
    has_extremes = bool(pairs["ratio"].isin([0.0, np.inf]).any())
    title = f"{PAIRS_TITLE}{EXTREMES if has_extremes else ''}"
    _show(title, _without_bounds(pairs), NO_PAIR, assurance)
    _show(
        "mean rank by experiment",
        comparisons.mean_ranks(table).reset_index(),
        NOT_ALL,
        UNREACHED_NOTE,
    )
    count, every = comparisons.unsolved(table)
    profile_title = "performance profile: share of problems within a factor of the fastest"
    unsolved_note = f"on {count} of {every} {sample} no scheme reaches it" if count else ""
    _show(profile_title, profiles_at_factors(table), NO_SCHEME if count else NOT_ALL, unsolved_note)
    if folder is not None:
        title = f"{unit} until {goal}{_sample_sizes(board, sample)}"
        # It is empty where no scheme reaches the target on a problem that all were run on.
        if not (profile_table := comparisons.profile(table)).empty:
            ids = ", ".join(sweep.sweep_id for sweep in loaded)
            _draw(profile_table, title, folder, shape, {"sweep": ids})
            return
        raise ResultsError(f"--out {folder}: nothing to draw; {NO_SCHEME if count else NOT_ALL}")


def _sample_sizes(board: pd.DataFrame, sample: str) -> str:
    """Return the suffix of a title with the numbers of problems and splits of a leaderboard.

    Args:
        board: A table from `comparisons.leaderboard`.
        sample: What its splits are, from `problems.sample_name`.

    Returns:
        Such as `, n = 3 problems, 12 splits`; without the splits where each problem has one, and
        empty for an empty table.
    """
    if board.empty:
        return ""
    count, splits = int(board["problems"].max()), int(board["splits"].max())
    problem_count = f", n = {count} problem{'s' * (count > 1)}"
    return problem_count + (f", {splits} {sample}" if splits > count else "")


def notes(loaded: Sequence[Sweep]) -> list[str]:
    """Return sentences that a reader needs before comparing the schemes of loaded sweeps.

    They name seeds without effect, comparisons by misclassified points instead of cost, starts that
    differ between schemes, limits of networks, and penalties that make costs incomparable.

    Args:
        loaded: The sweeps, not merged.

    Returns:
        The sentences; none where nothing needs a note.
    """
    schemes = pd.concat([sweep.of_role(names.SCHEME) for sweep in loaded])
    # Penalties on transformed weights: each scheme minimizes another function.
    has_own_functions = any(
        problems.minimize_different_functions(sweep.of_role(names.SCHEME)) for sweep in loaded
    )
    sentences = [
        *_counts(schemes),
        *_starts(schemes),
        *_converged_above_zero(loaded),
        *(sentence for sweep in loaded for sentence in _networks(sweep)),
        *([make_sentence("own_functions")] if has_own_functions else []),
    ]
    return [*problems.idle_seeds(loaded), *(sentence.text for sentence in sentences)]


def _counts(schemes: pd.DataFrame) -> list[Sentence]:
    """Return the sentence that names the experiments in which misclassified points are compared."""
    counted = schemes[reached.compares_counts(schemes)]
    experiments = ", ".join(dict.fromkeys(counted["experiment"]))
    return [make_sentence("counts", experiments=experiments)] if experiments else []


def _converged_above_zero(loaded: Sequence[Sweep]) -> list[Sentence]:
    """Return the sentence on schemes with a converged run that ends above the cost of zero weights.

    A run that starts far above zero weights may come to rest above them.
    """
    # Dictionaries serve as ordered sets.
    labels: dict[str, None] = {}
    experiments: dict[str, None] = {}
    for sweep in loaded:
        jobs = {row["run_id"]: row for row in as_rows(sweep.of_role(names.SCHEME))}
        for step in as_rows(sweep.of_role(names.STEP)):
            job = jobs.get(step["parent"])
            if (
                job is None
                or step["verdict"] != names.CONVERGED
                or reached.compared_metric(job) is not names.TRAIN_COST
            ):
                continue
            if reached.excess_left(step, job) > 1 + names.TIED:
                labels[job["label"]] = experiments[job["experiment"]] = None
    if not labels:
        return []
    fields = {"schemes": join_phrases(list(labels)), "experiments": ", ".join(experiments)}
    return [make_sentence("above_zero", **fields)]


def _starts(schemes: pd.DataFrame) -> list[Sentence]:
    """Return sentences on whether the schemes of each experiment start at the same function.

    Experiments of one scheme need none, except for networks, whose drawn starts are named.

    Zero weights make the same function under every scheme, so that they need no sentence.
    Experiments with the same answer share a sentence.
    """
    start = names.setting("start")
    if start not in schemes:
        return []
    experiments_by_choice: dict[tuple[str, ...], list[str]] = {}  # by template and labels
    for experiment, rows in schemes.groupby("experiment", sort=False):
        # A network has a label for each scheme inside it, under the same normalizer of its inputs.
        is_network = problems.has_networks(rows)
        has_several = rows["normalizer" if is_network else "label"].nunique() > 1
        if has_several or is_network:
            # The template's name and the labels of schemes in it.
            choice = _choose_start_template(rows.groupby(start, sort=False))
            # `start=same_function` is no remedy for a network, so its sentences do not propose it.
            if choice == ("other_functions",) and is_network:
                choice = ("other_networks",) if has_several else ("drawn_networks",)
            experiments_by_choice.setdefault(choice, []).append(str(experiment))
    return [
        make_sentence(
            template, experiments=", ".join(experiments), **dict(zip(("same", "others"), labels))
        )
        for (template, *labels), experiments in experiments_by_choice.items()
        if template  # empty: the starts need no sentence
    ]


def _networks(sweep: Sweep) -> list[Sentence]:
    """Return sentences on a sweep's networks.

    They say that best runs converged only over their own job's lowest cost, and that the setting
    `refine` has no effect.
    """
    sentences, unrefined = [], []
    for experiment in sweep.experiments:
        rows = sweep.of_role(names.SCHEME, experiment)
        if not problems.has_networks(rows):
            continue
        if (rows.get(names.setting("refine"), pd.Series(dtype=str)) == "True").any():
            unrefined.append(experiment)
        # Best runs that would not count as converged over the lowest cost of the comparison.
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

    Args:
        rows_by_start: The scheme runs, grouped by the setting `start`.

    Returns:
        The name of the template, then the labels of schemes that it needs. The name is empty where
        the starts need no sentence, such as those at zero weights.
    """
    labels = {start: "; ".join(dict.fromkeys(rows["label"])) for start, rows in rows_by_start}
    # Under `same_function`, schemes that cannot make that function are recorded with `normal`.
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
    """Draw the performance profiles into a folder and print the names of the files.

    Args:
        table: The profiles, from `comparisons.profile`.
        title: The title of the figure.
        folder: The folder, which is made if it does not exist.
        shape: The figure's size; None for that of a screen.
        facts: What the files name as their origin, such as the ids of the sweeps.

    Raises:
        ResultsError: The folder cannot be written.
    """
    from normbench.results.figures import settings
    from normbench.results.figures.base import output, style

    figure = settings.draw_profiles(table, title, shape=shape or style.SCREEN)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = output.save(figure, folder / PROFILES_FILE, facts)
    except OSError as error:
        raise unwritable(folder, error) from error
    for file in files:
        print(f"{'figure':10} {file}")


def _predictions(loaded: list[Sweep]) -> pd.DataFrame:
    """Return the tables of `theory_table.predictions` of several sweeps as one, without duplicates.

    The column `setting` names the settings that vary; it is left out where none does.
    """
    placed = problems.scheme_runs_with_groups(loaded)
    settings = dict(zip(placed["run_id"], placed["setting"]))
    frames = []
    for sweep in loaded:
        predictions = theory.predictions(sweep)
        if predictions.empty:
            continue
        if "experiment" not in predictions:  # a sweep of one experiment does not name it
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


def profiles_at_factors(table: pd.DataFrame) -> pd.DataFrame:
    """Return the performance profiles at `FACTORS` as texts, one row a scheme.

    Args:
        table: One row a problem, split and scheme, from `time_to_target`.

    Returns:
        The column `scheme` and a column for each factor, such as `x2`; the infinite one is
        `at all`, the share of problems that the scheme solves.
    """
    long_table = comparisons.profile(table)
    shares = {}
    for factor in FACTORS:
        # Shares grow with the factor, so that the largest one is that at the factor.
        is_within = long_table["factor"] <= factor
        name = f"x{factor:g}" if np.isfinite(factor) else "at all"
        shares[name] = long_table[is_within].groupby("scheme", sort=False)["share"].max()
    return pd.DataFrame(shares).map("{:.2f}".format).reset_index()


def _without_bounds(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return a table of pairs without `low` and `high` where no pair has an interval."""
    bounds = ["low", "high"]
    return pairs.drop(columns=bounds) if pairs[bounds].isna().all(axis=None) else pairs


def _print_paragraph(*texts: str) -> None:
    """Print texts, each wrapped to the width of the terminal, and an empty line."""
    terminal = screen.console()
    screen.print_lines(terminal, *texts)
    terminal.print()


def _show(title: str, table: pd.DataFrame, nothing: str, note: str = "") -> None:
    """Print a table under its title and a note, or why it is empty.

    Args:
        title: The title.
        table: The table.
        nothing: The reason that is printed for an empty table.
        note: Printed in parentheses below the title; empty for none.
    """
    if table.empty:
        _print_paragraph(f"{title}: nothing to compare ({nothing})")
        return
    terminal = screen.console()
    screen.print_lines(terminal, title, *([f"({note})"] if note else []))
    screen_table.print_table(terminal, table)
    terminal.print()
