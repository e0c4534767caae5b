"""Compare the step sizes that theory promises with those that were observed to work."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from normbench import names
from normbench.results.compare import problems
from normbench.results.compare.merging import every_job, merged
from normbench.results.compare.reached import excess_left, finds_own_steps, step_size
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep
from normbench.results.words import reasons, sentences


def predictions(sweep: Sweep) -> pd.DataFrame:
    """Return the predicted and the observed largest step sizes of each scheme.

    Args:
        sweep: The sweep.

    Returns:
        One row a scheme that did not fail. Columns that are empty for all schemes are left out,
        except those on step sizes up to which the cost falls or converges.

        - largest curvature L: the curvature from which 2/L is computed;
        - 2/L: from the global bound of the curvature; from the curvature at the start where the
          cost has no bound;
        - 2/L at the end: from the curvature at the last weights of the best step size, unless the
          weights go to infinity;
        - always falls up to: the largest step size of the grid up to which the cost falls in every
          iteration;
        - converges up to: the largest step size that converges, `>=` where no larger one failed;
        - critical step: where it was searched for;
        - seen / promised: for plain gradient descent, the critical step over 2/L; where it was not
          searched for, the interval over 2/L between the last step size that falls and the next;
        - condition number: `>` and a lower bound where rounding hides the exact value.
    """
    rows = []
    runs = merged(sweep)
    several_experiments = len(sweep.experiments) > 1
    for row in as_rows(runs.of_role(names.SCHEME)):
        if row["verdict"] == names.FAILED:
            continue
        critical = row.get(names.CRITICAL.column)
        table_row = {"experiment": row["experiment"]} if several_experiments else {}
        table_row |= {
            "scheme": row["label"],
            "largest curvature L": row.get(names.LIPSCHITZ.column),
            "2/L": row.get(names.THRESHOLD.column),
            "2/L at the end": None
            if _has_vanishing_curvature(row)
            else row.get(names.THRESHOLD_BEST.column),
            "always falls up to": None
            if finds_own_steps(row)
            else format_bound(
                row.get(names.LARGEST_FALLING.column), row.get(names.CENSORED_FALLING.column)
            ),
            "converges up to": converges_up_to(row),
            "critical step": format_bound(critical, row.get(names.CENSORED_CRITICAL.column)),
            "seen / promised": _seen_ratio(runs, row),
            "condition number": _condition_text(row),
        }
        rows.append(table_row)
    table = pd.DataFrame(rows)
    required_columns = ("experiment", "scheme", "always falls up to", "converges up to")
    empty_columns = [
        name for name in table if name not in required_columns and table[name].isna().all()
    ]
    return table.drop(columns=empty_columns)


def _has_vanishing_curvature(row: Mapping[Any, Any]) -> bool:
    """Return whether the curvature at the last weights of a scheme run is 0 but for rounding.

    The curvature vanishes where the final cost equals, up to `names.TIED` of the excess, a least
    cost that no weights attain: the weights go to infinity, and the curvature goes to 0.
    """
    return row.get(names.AT_INFINITY.column) == "true" and excess_left(row, row) <= names.TIED


def _seen_ratio(runs: Sweep, row: Mapping[Any, Any]) -> str | None:
    """Return the column `seen / promised` of a scheme: where its cost stops falling, over 2/L.

    Args:
        runs: The merged sweep.
        row: The scheme run.

    Returns:
        The critical step over 2/L where it was searched for. Else, from the step sizes of the grid:
        `a to b` between the largest one that falls and the next, `<b` if none falls, `>=a` if no
        larger one failed; each over 2/L. None without a 2/L or a descent, and for other optimizers
        than plain gradient descent.
    """
    threshold = number_in(row, names.THRESHOLD.column)
    no_descent = row.get(names.setting("iterations")) == "0"
    # `not >` instead of `<=`, so that a missing threshold, NaN, counts as none.
    if not threshold > 0 or row.get(names.PLAIN.column) == "false" or no_descent:
        return None
    critical_step, largest_falling = (
        number_in(row, metric.column) for metric in (names.CRITICAL, names.LARGEST_FALLING)
    )
    if pd.notna(critical_step):
        return format_bound(critical_step / threshold, row.get(names.CENSORED_CRITICAL.column))
    # No critical step was searched for: the grid gives an interval.
    steps = runs.of_role(names.STEP, row["experiment"])
    scheme_steps = steps[steps["parent"] == row["run_id"]]
    sizes = sorted(step_size(step) for step in as_rows(scheme_steps))
    if pd.isna(largest_falling):
        # A step size of 0 leaves the cost as it is, and gives no bound.
        nonzero_sizes = [size for size in sizes if size > 0]
        return f"<{nonzero_sizes[0] / threshold:.3g}" if nonzero_sizes else None
    if row.get(names.CENSORED_FALLING.column) == "true":
        return f">={largest_falling / threshold:.3g}"
    # The factor leaves out the largest falling step size itself, which may differ by rounding.
    larger_sizes = [size for size in sizes if size > largest_falling * (1 + 1e-9)]
    return (
        f"{largest_falling / threshold:.3g} to {larger_sizes[0] / threshold:.3g}"
        if larger_sizes
        else None
    )


def _condition_text(row: dict[Any, Any]) -> str | None:
    """Return the condition number as text: `>1e30` where rounding hides its exact value.

    It is None where neither the number nor a lower bound is recorded.
    """
    condition_number, limit = (
        number_in(row, metric.column) for metric in (names.CONDITION, names.CONDITION_LIMIT)
    )
    if pd.notna(condition_number):
        return f"{condition_number:.4g}"
    return None if pd.isna(limit) else f">{limit:.2g}"


def converges_up_to(row: Mapping[Any, Any]) -> str | None:
    """Return a scheme's largest convergent step size as text.

    Args:
        row: The scheme run.

    Returns:
        None where none converged, and for an optimizer that finds its own step sizes.
    """
    if finds_own_steps(row):
        return None
    return format_bound(row.get(names.LARGEST_CONVERGENT.column), row.get(names.CENSORED.column))


def format_bound(value: float | None, censored: str | None) -> str | None:
    """Return a step size as text.

    Args:
        value: The step size; None or NaN for none.
        censored: The recorded tag: `true` where no larger step size that was tried fails, so that
            the value is a lower bound.

    Returns:
        Four digits, such as `0.1`, or `>=0.1` for a lower bound; None for none.
    """
    if value is None or pd.isna(value):
        return None
    return f"{'>=' if censored == 'true' else ''}{value:.4g}"


def explanation(sweep: Sweep, experiment: str) -> str:
    """Return what theory says of one experiment, scheme against scheme, with `notes`.

    Args:
        sweep: The sweep.
        experiment: The name of the experiment.

    Returns:
        The paragraph below the table of theory; a single sentence where every job failed or none
        has a descent.
    """
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    if len(schemes) and (schemes["verdict"] == names.FAILED).all():
        return sentences.make_sentence("none_ran").text
    if problems.without_descent(schemes).all():
        return sentences.make_sentence("no_step").text
    records = [(row["label"], reasons.SchemeRecord.from_row(row)) for row in as_rows(schemes)]
    # A merged scheme has no convergent step size if none converged on one of its splits.
    jobs, largest = every_job(sweep, experiment), names.LARGEST_CONVERGENT.column
    on_some_split = largest in jobs and bool(jobs[largest].notna().any())
    explanations = reasons.explain_comparison(records, on_some_split)
    return " ".join([sentences.paragraph(explanations), *notes(sweep, experiment)])


def notes(sweep: Sweep, experiment: str) -> list[str]:
    """Return notes on missing theory, and on records that were dropped by judging jobs again.

    Notes on theory are those of merged schemes; dropped records are those of the sweep as given.

    Args:
        sweep: The sweep.
        experiment: The name of the experiment.

    Returns:
        The sentences; none where nothing is missing.
    """
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    return [
        *_missing_theory_notes(schemes),
        *_dropped_record_notes(sweep.of_role(names.SCHEME, experiment)),
    ]


def _missing_theory_notes(schemes: pd.DataFrame) -> list[str]:
    """Return a sentence for each recorded note on missing theory.

    The sentence names its schemes where the note is not recorded for all of them.
    """
    note_texts = []
    for note, rows in (
        schemes.groupby(names.NOTE.column, sort=False) if names.NOTE.column in schemes else ()
    ):
        prefix = "" if len(rows) == len(schemes) else f"{'; '.join(rows['label'])}: "
        note_texts.append(sentences.make_sentence("note", of=prefix, note=note).text)
    return note_texts


def _dropped_record_notes(schemes: pd.DataFrame) -> list[str]:
    """Return notes on the records that schemes lost when they were judged by other rules.

    A job that is judged again, by other rules or at another step size, is not descended again. The
    records that only a new descent could give are dropped; a tag lists their keys, with commas.
    """
    again_column = names.DESCEND_AGAIN.column
    notices = []
    for keys, rows in schemes.groupby(again_column) if again_column in schemes else ():
        labels = dict.fromkeys(names.label_of(key) for key in str(keys).split(","))
        fields = {"schemes": "; ".join(rows["label"]), "what": ", ".join(labels)}
        notices.append(sentences.make_sentence("judged_again", **fields).text)
    return notices
