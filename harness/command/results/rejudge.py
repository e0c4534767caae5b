"""`normbench results rejudge`: judge a comparison by other rules, as a comparison of its own.

The recorded one stays unchanged. The new one's id depends on the old one's and the rules, so that
the same command completes what was interrupted.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from normbench import names
from normbench.datasets import UserError
from normbench.record.identity import Keys, job_digest
from normbench.record.outcome import RecordHeader
from normbench.record.provenance import code_digest
from normbench.record.rejudge import RULE_PREFIX, literal, rejudge, rules_of
from normbench.results.figures import NAMES
from normbench.results.report import files
from normbench.results.report.terminal import present
from normbench.results.store import comparison_files
from normbench.results.store.comparison_files import Comparison, JobEntry, record_file
from normbench.results.store.errors import ResultsError
from normbench.results.store.job_records import JobRecord, is_finished
from normbench.results.store.runs import Sweep, load
from normbench.verdicts.convergence import Rules

RULE_NAMES = tuple(f"{RULE_PREFIX}{field.name}" for field in fields(Rules))
# The tags that a record copies from the old one.
JOB_TAGS = (names.DATASET, names.COST, names.NORMALIZER, names.OPTIMIZER, names.MODEL)


def run(old: Sweep, rules: Mapping[str, Any], folder: Path | None) -> int:
    """Judge a comparison's jobs by rules as a new comparison, and print it; return 0.

    Args:
        old: The recorded comparison.
        rules: The rules by their settings, from `parse_rules`.
        folder: Where figures and report go; None for the folder of the new comparison.

    Raises:
        ResultsError: The comparison is still running.
    """
    (source,) = old.comparisons
    if source.is_running:
        raise ResultsError(f"comparison {source.id}: {source.predicate}; wait for it")
    text = " ".join(f"{key}={value}" for key, value in rules.items())
    new_id = f"{source.id}.{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    jobs = []
    for key in filter(old.records.get, source.keys):
        new_key = _judge(source.home, key, old.records[key], rules)
        jobs.append(JobEntry(old.records[key].experiment, new_key, reused=new_key == key))
    command = f"normbench results rejudge {source.id} {text}"
    tags = {**source.tags, names.REJUDGED.key: text}
    new = Comparison(source.home / new_id, command, "", jobs, tags)  # without a copy in MLflow
    new.end(comparison_files.FINISHED)
    sweep = load(new.home, new_id)
    folder = folder or new.folder.absolute()
    written = present(sweep, partial(files.write, sweep, folder, is_complete=True))
    if folder == new.folder.absolute():
        new.keep_drawn(code_digest(), NAMES, written)
        new.write()
    return 0


def _judge(home: Path, key: str, job: JobRecord, rules: Mapping[str, Any]) -> str:
    """Judge a job by rules unless it is recorded; return the key of its record.

    A job that failed, or has no descent, stays as it is.

    Args:
        home: The folder of comparisons and their records.
        key: Its key.
        job: Its record.
        rules: The rules by their settings.
    """
    params, descent = {**job.params, **rules}, job.scheme.tags[names.DESCENT.key]
    keys = Keys(descent, job_digest(descent, params))
    if is_finished(record_file(home, keys.key)):
        return keys.key
    copied = {tag.key: job.scheme.tags[tag.key] for tag in JOB_TAGS if tag.key in job.scheme.tags}
    tags = {**copied, names.FINGERPRINT.key: keys.job, names.DESCENT.key: descent}
    record = rejudge(job, RecordHeader(job.experiment, params, tags))
    if record is None:
        return key
    record.save(record_file(home, keys.key))
    return keys.key


def parse_rules(assignments: Sequence[str]) -> dict[str, Any]:
    """Return rules by their settings, sorted: the new comparison's id depends on their order.

    Args:
        assignments: The rules as typed, such as `rules.tail=0.2`.

    Raises:
        UserError: An argument is no rule, or a value is out of its range.
    """
    rules = {}
    for assignment in assignments:
        key, separator, text = assignment.partition("=")
        if not separator or key not in RULE_NAMES:
            raise UserError(
                f"{assignment}: is no rule; give some of {', '.join(RULE_NAMES)} with a value, "
                "such as rules.tail=0.2"
            )
        rules[key] = literal(text)
    rules_of(rules)
    return dict(sorted(rules.items()))
