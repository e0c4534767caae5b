"""Phrase the question of a comparison, and its answer: the ranking of schemes by final cost."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.answer.ranking import (
    FINAL_COST,
    FINAL_COUNT,
    MAX_LISTED_SCHEMES,
    by_problem,
    labels_of,
    names_or_count,
    rank_rows,
    ranking_criterion,
    with_final_cost,
)
from normbench.results.compare import batch_gains, passes, problems
from normbench.results.compare.merging import (
    REPEATS,
    distinct_repeats,
    every_job,
    merged,
    unmerged,
)
from normbench.results.compare.reached import (
    compares_counts,
    excess_left,
    start_excess,
    step_size,
    step_text,
    thresholds_that_hold,
)
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.words.sentences import (
    CLAUSES,
    Sentence,
    agree,
    join_phrases,
    make_sentence,
    paragraph,
)

FEWEST_POINTS = "fewest misclassified points"


def targets(sweep: Sweep) -> list[str]:
    """Return what the targets were taken for: one line, or one for each of several.

    Of the jobs of an experiment with the same classes, such as its splits, the first counts.
    """
    schemes = sweep.of_role(names.SCHEME)
    if names.TARGET_SUMMARY.column not in schemes:  # they were recorded by an earlier version
        return []
    columns = ["experiment", names.setting("dataset.encoding"), names.TARGET_SUMMARY.column]
    jobs = schemes.reindex(columns=columns).dropna(subset=columns[-1:])
    experiments: dict[str, list[str]] = {}  # by the text of a target
    for (experiment, _), targets_of_classes in jobs.groupby(columns[:2], sort=False, dropna=False)[
        columns[-1]
    ]:
        text = targets_of_classes.iloc[0]
        text += " (of the first training set)" if targets_of_classes.nunique() > 1 else ""
        experiments.setdefault(text, []).append(experiment)
    if len(experiments) == 1:
        return [f"target: {text}" for text in experiments]
    return [
        f"target of {join_phrases(experiments_of_text)}: {text}"
        for text, experiments_of_text in experiments.items()
    ]


def question(sweep: Sweep, experiment: str) -> str:
    """Return the question that one experiment of a sweep asks.

    Args:
        sweep: The sweep.
        experiment: The name of the experiment.

    Returns:
        A sentence that names the schemes, the experiment and the budget of iterations. Its form
        depends on whether there is a descent, on what is compared, and on the number of schemes.
    """
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    # The labels of `by_problem` lack the settings of the problem, so that a scheme has one label.
    labels = {label: None for rows in by_problem(schemes) for label in rows["label"]}
    labels_text, is_single = names_or_count(list(labels)), len(labels) == 1
    if problems.without_descent(schemes).all():
        auxiliary = "does" if is_single else "do"
        return f"What {auxiliary} {labels_text} make of the points of {experiment}?"
    budget_text = passes.budget(schemes)
    budget_text = f" {budget_text}" if budget_text else ""
    if compares_counts(schemes).any():
        if is_single:
            scheme_clause = f"does {labels_text} leave misclassified{budget_text}"
            return f"How few points of {experiment} {scheme_clause}?"
        fewest = f"leaves the fewest points of {experiment} misclassified"
        return f"Which of {labels_text} {fewest}{budget_text}?"
    if is_single:
        return f"How far does {labels_text} lower the cost of {experiment}{budget_text}?"
    return f"Which of {labels_text} lowers the cost of {experiment} furthest{budget_text}?"


def ranking_paragraph(sweep: Sweep, experiment: str) -> str:
    """Return the answer of an experiment: its schemes in the order of their final cost.

    Where counts are compared, the order is by misclassified points; where a penalty makes each
    scheme minimize another function, by the share of its own excess that remains. Schemes with
    equal costs up to rounding share a rank. The value of a scheme is the median over its splits,
    seeds and starts. Over several problems the answer is how often each scheme has the lowest
    cost, and its mean rank.

    Args:
        sweep: The sweep.
        experiment: The name of the experiment.

    Returns:
        The answer, followed by sentences on diverged and failed jobs and on rounding. Where no
        scheme has a final cost, the answer is the reason.
    """
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    groups = by_problem(schemes)
    if len(groups) > 1:
        return _count_wins(groups, sweep, experiment)
    finite_schemes = with_final_cost(schemes)
    if finite_schemes.empty:
        return _no_answer(sweep, experiment)
    criterion, ranks = ranking_criterion(finite_schemes), rank_rows(finite_schemes)
    # `in 100 iterations` becomes `After 100 iterations`.
    end_text = passes.budget(schemes).replace("in ", "After ", 1) or "At the end"
    excess_owner = "its own" if _minima_differ(finite_schemes) else "the"
    ranking_text = "; ".join(_rank_text(rows, criterion, excess_owner) for rows in ranks)
    name = f"by_{criterion}" if len(ranks) > 1 else "one_place"  # one rank has no order
    answer = make_sentence(
        name, after=end_text, places=ranking_text, medians=medians_note(finite_schemes)
    )
    return paragraph([answer, *_exclusions(sweep, experiment)])


def batch_and_exclusion_remarks(sweep: Sweep, experiment: str) -> list[str]:
    """Return sentences on batches, on runs that diverged or that rounding decides, on failures.

    Args:
        sweep: The sweep.
        experiment: The name of the experiment.

    Returns:
        The sentences, each a text; none where nothing is to be remarked.
    """
    sentences = [*_batches(sweep, experiment), *_exclusions(sweep, experiment)]
    return [remark.text for remark in sentences]


def _batches(sweep: Sweep, experiment: str) -> list[Sentence]:
    """Return a sentence on the batch of each scheme beyond which larger batches gain little.

    There is none where no scheme has such a batch, and where the experiment has several problems
    that differ in more than the batch.
    """
    table = batch_gains.batch_table(sweep, experiment)
    # Two rows of one scheme and batch belong to different problems.
    if table.duplicated(["scheme", "batch"]).any():
        return []
    batches = batch_gains.saturated_batches(table)
    if not batches:
        return []
    (first, batch), *rest = batches.items()
    others = "".join(f"; under {scheme}, {size:g}" for scheme, size in rest)
    return [make_sentence("saturating", scheme=first, batch=batch, others=others)]


def overall_ranking(sweep: Sweep) -> str:
    """Return how often each scheme has the lowest cost over all experiments of a sweep.

    The answer on a single experiment is its `ranking_paragraph`.
    """
    if len(sweep.experiments) == 1:
        return ranking_paragraph(sweep, sweep.experiments[0])
    schemes = merged(sweep)
    groups = [by_problem(schemes.of_role(names.SCHEME, name)) for name in sweep.experiments]
    return _count_wins([rows for group in groups for rows in group], sweep)


def _count_wins(groups: Sequence[pd.DataFrame], sweep: Sweep, experiment: str | None = None) -> str:
    """Return how often each scheme has the lowest cost, and its mean rank, over problems.

    Args:
        groups: The scheme runs of each problem.
        sweep: The sweep.
        experiment: The experiment that all problems belong to; None for several experiments.

    Returns:
        The answer, with sentences on diverged and failed jobs; where no scheme of any problem has a
        final cost, the reason.
    """
    labels = list(dict.fromkeys(label for rows in groups for label in rows["label"]))
    wins = dict.fromkeys(labels, 0)
    ranks: dict[str, list[float]] = {label: [] for label in labels}
    problem_count = 0
    for rows in groups:
        finite_schemes = with_final_cost(rows)
        if finite_schemes.empty:
            continue  # nobody wins this problem, and it is not counted
        problem_count += 1
        labels_by_rank = [labels_of(tied) for tied in rank_rows(finite_schemes)]
        for label in labels_by_rank[0]:
            wins[label] += 1
        # Tied schemes share the mean of their ranks; schemes without a final cost tie for the last.
        better_count = 0
        for tied in (*labels_by_rank, {*rows["label"]} - {*finite_schemes["label"]}):
            for label in tied:
                ranks[label].append(better_count + (len(tied) + 1) / 2)
            better_count += len(tied)
    if not problem_count:
        return _no_answer(sweep, experiment)
    # Rounded, so that equal means are grouped as equal.
    means = {
        label: round(float(np.mean(label_ranks)), 9)
        for label, label_ranks in ranks.items()
        if label_ranks
    }
    order = sorted(means, key=lambda label: (means[label], -wins[label]))
    win_counts = [
        f"{' = '.join(tied_labels)} {won} ({mean:.3g})"
        for (won, mean), tied_labels in groupby(
            order, key=lambda label: (wins[label], means[label])
        )
    ]
    is_counted = compares_counts(pd.concat(groups))
    # Problems may be compared by cost, by count, or some by each.
    best_value_text = (
        "lowest cost"
        if not is_counted.any()
        else FEWEST_POINTS
        if is_counted.all()
        else f"lowest cost or {FEWEST_POINTS}"
    )
    step_adjective = sweep.which_step()
    fields = {"lowest": best_value_text, "wins": ", ".join(win_counts), "which": step_adjective}
    fields |= agree(problem_count, "problems")
    answer = make_sentence("counted", count=problem_count, **fields)
    return paragraph([answer, *_exclusions(sweep, experiment)])


def medians_note(schemes: pd.DataFrame) -> str:
    """Return what the costs are medians of, as ` (medians of 4 splits)`; empty for single runs.

    Args:
        schemes: The scheme runs of a merged sweep.
    """
    # Schemes of which jobs failed have fewer splits or seeds than the others.
    repeats = " or ".join(distinct_repeats(schemes))
    starts = max((problems.starts_of(row) for row in as_rows(schemes)), default=1)
    counts = [*([repeats] if repeats else []), *([f"{starts} starts"] if starts > 1 else [])]
    return f" (medians of {' x '.join(counts)})" if counts else ""


def _no_answer(sweep: Sweep, experiment: str | None) -> str:
    """Return why no scheme is ranked: there is no descent, or no run has a final cost."""
    no_descent = problems.without_descent(sweep.of_role(names.SCHEME, experiment)).all()
    reason = make_sentence("no_descent" if no_descent else "no_cost")
    return paragraph([reason, *_exclusions(sweep, experiment)])


def _all_above(sweep: Sweep, experiment: str | None) -> list[Sentence]:
    """Return a sentence on the schemes whose 2/L is below all step sizes that were tried.

    The sentence proposes a grid of smaller step sizes. Of several splits, the largest 2/L of a
    scheme counts. There is no sentence for several experiments, which may have different grids.
    """
    jobs = thresholds_that_hold(every_job(sweep, experiment))
    sizes = [step_size(step) for step in as_rows(unmerged(sweep).of_role(names.STEP, experiment))]
    if names.THRESHOLD.column not in jobs or not sizes or jobs["experiment"].nunique() > 1:
        return []
    limits = jobs.groupby("label", sort=False)[names.THRESHOLD.column].max().astype(float)
    limits = limits[limits < min(sizes)]
    if limits.empty:
        return []
    # The grid that is proposed ends a decade above the largest 2/L.
    return [grid_above(limits, int(np.ceil(np.log10(limits.max()))) + 1)]


def grid_above(limits: "pd.Series[float]", last: int) -> Sentence:
    """Return the sentence that the whole grid is above 2/L, with a grid of smaller step sizes.

    That grid begins two decades below the smallest 2/L.

    Args:
        limits: 2/L of the schemes that the sentence names, by label; at least one.
        last: The last power of ten of the grid that is proposed.
    """
    first = int(np.floor(np.log10(limits.min()))) - 2
    schemes = join_phrases([str(label) for label in limits.index])
    return make_sentence("grid_above", schemes=schemes, first=first, last=last)


def _exclusions(sweep: Sweep, experiment: str | None) -> list[Sentence]:
    """Return sentences on jobs that diverged or failed, and on rounding.

    Diverged schemes are named if they are few, of one experiment, and diverged on all splits;
    otherwise their jobs are counted. Schemes whose best step size diverged on some splits alone
    have their own sentence.

    Args:
        sweep: The sweep.
        experiment: The experiment; None for all of them.
    """
    jobs = every_job(sweep, experiment)
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    has_diverged = jobs["verdict"] == names.DIVERGED
    count = int(has_diverged.sum())
    on_all_splits = has_diverged.groupby(jobs["label"], sort=False).transform("all")
    labels = list(dict.fromkeys(jobs.loc[on_all_splits, "label"]))
    too_many = jobs["experiment"].nunique() > 1 or len(labels) > MAX_LISTED_SCHEMES
    # Schemes are named only if none of them diverged on some of its splits alone.
    is_named = not too_many and (has_diverged == on_all_splits).all()
    subject = join_phrases(labels) if is_named else f"{count} of {len(jobs)} jobs"
    failed_count = int((jobs["verdict"] == names.FAILED).sum())
    sentences = [make_sentence("all_diverged", who=subject)] if count else []
    # Where no scheme has a final cost, the grid may lie above 2/L as a whole.
    sentences += _all_above(sweep, experiment) if count and with_final_cost(schemes).empty else []
    sentences += _some_diverged(schemes)
    if failed_count:
        sentences.append(make_sentence("some_failed", failed=failed_count, jobs=len(jobs)))
    return sentences + _by_rounding(unmerged(sweep), experiment)


def _some_diverged(schemes: pd.DataFrame) -> list[Sentence]:
    """Return a sentence on schemes whose best step size diverged on some of their splits alone.

    They are named if they are few and of one experiment; otherwise they are counted.

    Args:
        schemes: The scheme runs of a merged sweep.
    """
    # A run that is merged of several has a reason where their verdicts differ.
    rows = [
        row
        for row in as_rows(schemes)
        if row["verdict"] == names.DIVERGED and row.get(REPEATS) and row["reason"]
    ]
    if not rows:
        return []
    is_named = schemes["experiment"].nunique() == 1 and len(rows) <= MAX_LISTED_SCHEMES
    fields = {
        "repeats": " or ".join(dict.fromkeys(row[REPEATS] for row in rows)),
        "who": join_phrases(labels_of(rows))
        if is_named
        else f"{len(rows)} of {len(schemes)} schemes",
    }
    return [make_sentence("some_diverged", **fields, **agree(len(rows), "have"))]


def _by_rounding(sweep: Sweep, experiment: str | None) -> list[Sentence]:
    """Return a sentence on the number of runs that rounding decides, where there are any.

    A job finds such runs by repeating its descents from starts that are perturbed by rounding
    (shadows). Where a job was run without shadows, another sentence says so.
    """
    steps = sweep.of_role(names.STEP, experiment)
    schemes = sweep.of_role(names.SCHEME, experiment)
    count = int((steps["verdict"] == names.BY_ROUNDING).sum())
    verb = agree(count, "are", "them")
    sentences = (
        [make_sentence("by_rounding", count=count, runs=len(steps), **verb)] if count else []
    )
    shadows_off = schemes.get(names.setting("shadows"), pd.Series(dtype=str)) == "False"
    return sentences + ([make_sentence("no_shadows")] if shadows_off.any() else [])


def _minima_differ(schemes: pd.DataFrame) -> bool:
    """Return whether least costs differ between schemes, as with a scheme that drops directions.

    They differ if they are apart by more than a thousandth of the largest starting excess. Only
    least costs that a job solved for are compared.

    Args:
        schemes: The scheme runs of one problem.
    """
    rows = as_rows(schemes)
    solved_rows = [row for row in rows if row.get(names.MINIMUM_REACHED.column) == "true"]
    minima = [row[names.MINIMUM.column] for row in solved_rows]
    return len(minima) > 1 and max(minima) - min(minima) > 1e-3 * max(
        map(start_excess, solved_rows)
    )


def _rank_text(rows: Sequence[Mapping[Any, Any]], criterion: str, excess_owner: str) -> str:
    """Return the text on the schemes of one rank: labels, value, step sizes, verdicts and excess.

    Args:
        rows: The scheme runs that share the rank; the value of the first one is given.
        criterion: The criterion of the ranking: `cost`, `excess` or `count`.
        excess_owner: The words before `excess cost`: `its own` or `the`.
    """
    no_descent = rows[0].get(names.setting("iterations")) == "0"
    tags = [] if no_descent else [step_text(row) for row in rows]
    sizes = [size for size in dict.fromkeys(tags) if size]
    at_step = f" at step size{'s' if len(sizes) > 1 else ''} {join_phrases(sizes)}" if sizes else ""
    distinct_verdicts = list(dict.fromkeys(row["verdict"] for row in rows))
    verdicts = "no step" if no_descent else join_phrases(distinct_verdicts)
    remaining_excess = excess_left(rows[0], rows[0])
    # Whether the least cost was solved for, so that the excess is known.
    is_solved = rows[0].get(names.MINIMUM_REACHED.column) == "true" and np.isfinite(
        remaining_excess
    )
    fields = {"labels": " = ".join(labels_of(rows)), "at": at_step, "told": verdicts}
    if criterion == "count":
        return CLAUSES[criterion].format(**fields, count=rows[0][FINAL_COUNT])
    excess = f"excess cost{_excess_reference(rows[0])} left"
    if criterion == "excess":
        known_excess = f"{format_share(remaining_excess)} of its {excess}"
        excess_text = known_excess if is_solved else "of an unknown excess cost"
        return CLAUSES[criterion].format(**fields, left=excess_text)
    if is_solved:
        fields["told"] = f"{verdicts}, {format_share(remaining_excess)} of {excess_owner} {excess}"
    cost, tied_cost = rows[0][FINAL_COST], names.TIED * start_excess(rows[0])
    # A cost that is 0 up to rounding is only bounded.
    name = "low" if abs(cost) < tied_cost else criterion
    return CLAUSES[name].format(**fields, cost=tied_cost if name == "low" else cost)


def _excess_reference(scheme: Mapping[Any, Any]) -> str:
    """Return ` of zero weights` unless runs start there: the excess that shares are taken of.

    Args:
        scheme: The scheme run, whose setting `start` is missing or None for zero weights.
    """
    start = scheme.get(names.setting("start"), "zeros")
    return "" if start in ("zeros", "None", None) else " of zero weights"


def format_share(excess_share: float) -> str:
    """Return a share of the excess in percent; a share below `names.TIED` is only bounded."""
    if abs(excess_share) < names.TIED:
        return f"under {100 * names.TIED:.4f}%"
    percent = 100 * excess_share
    # Two digits would write 99.5 and more as 1e+02.
    return f"{percent:.2g}%" if percent < 99.5 else f"{percent:.0f}%"
