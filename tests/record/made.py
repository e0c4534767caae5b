"""Comparisons whose records are made up, without a descent."""

import numpy as np

from normbench import names
from normbench.results.store.comparison_files import FINISHED, RUNNING, Comparison, JobEntry
from normbench.results.store.job_records import JobRecord, RunRecord

NAME = "two-softmax"  # the experiment


def record(scheme, failure="", step_sizes=(0.1, 1.0), points=3):
    """Return the record of a job without its descent; points: of a history."""
    shared = {"normalizer": scheme, "dataset": "two", "cost": "softmax"}
    costs = [(names.TRAIN_COST.key, 1.0 / (n + 1), n) for n in range(points)]
    final = [(names.FINAL_COST.key, costs[-1][1], 0), (names.LIPSCHITZ.key, 2.0, 0)]
    wrong = [
        (metric.key, 3.0, 0)
        for metric in (names.TRAIN_MISCLASSIFICATIONS, names.FINAL_MISCLASSIFICATIONS)
    ]
    best = {names.VERDICT.key: names.CONVERGED, names.STEP_TAG.key: "1"}
    steps = [
        RunRecord(
            f"{scheme}, step {size:g}",
            {**shared, **best, names.STEP_TAG.key: f"{size:g}"},
            [(names.STEP_SIZE.key, size, 0), *costs, *final, *wrong],
        )
        for size in step_sizes
    ]
    tags = {**shared, **best, names.RECORDED.key: names.DESCENT_ARRAYS}
    if failure:
        tags = {**shared, names.VERDICT.key: names.FAILED, names.REASON.key: "no reason"}
    return JobRecord(
        experiment=NAME,
        params={f"option.{n}": str(n) for n in range(120)} | {"normalizer": scheme},
        scheme=RunRecord(scheme, tags, [] if failure else [*costs, *final, *wrong]),
        steps=[] if failure else steps,
        dataset={"name": "two", "digest": "d", "source_type": "normbench", "source": "{}"},
        arrays={names.DESCENT_ARRAYS: {"train_cost": np.arange(6.0).reshape(2, 3)}},
        failure=failure,
    )


def compare(home, comparison_id, schemes, state=FINISHED, written=None):
    """Write a comparison of schemes; a scheme is the key of its job. written: those with a record.

    The scheme `broken` fails.
    """
    started = f"2026-01-0{ord(comparison_id) - 64}T00:00:00+00:00"
    for scheme in schemes if written is None else written:
        failure = "Traceback: no reason" if scheme == "broken" else ""
        record(scheme, failure).save(home / "records" / f"{key(scheme)}.npz")
    comparison = Comparison(
        home / comparison_id,
        "normbench x",
        "",
        [JobEntry(NAME, key(scheme)) for scheme in schemes],
        {"git_dirty": "true"},
        state,
        started,
        "" if state == RUNNING else started,
        files={NAME: ["melt.png", "report.html"]},
    )
    comparison.write()
    for name in ("melt.png", "report.html"):
        (comparison.folder / name).write_text(name)
    return comparison


def key(scheme):
    return scheme.encode().hex().ljust(64, "0")
