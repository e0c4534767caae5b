"""What MLflow's page says of a comparison, in Markdown: question, answer, table, links."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from normbench import names
from normbench.results.answer import cause, headline, tables
from normbench.results.answer import closing as answer
from normbench.results.pages import dashboard
from normbench.results.safe import clean
from normbench.results.store.runs import Sweep

SIGNED = "Written by normbench"  # a description without it is somebody's own, and stays
MAX_LENGTH = 4900  # MLflow keeps 5,000 characters of an experiment's description


def write(sweep: Sweep, experiment: str, picture: str = "") -> str:
    """Return the description of one experiment of a sweep, and of its sweep run.

    picture: the name of a file of the sweep run, which shows the answer.
    """
    experiment_sweep = sweep.only(experiment)
    sentences = (
        headline.headline(experiment_sweep, experiment),
        cause.cause(experiment_sweep, experiment),
    )
    head = [
        f"Comparison {clean.markdown(sweep.sweep_id)}: "
        f"**{clean.markdown(answer.question(sweep, experiment))}**",
        *(clean.markdown(sentence) for sentence in sentences if sentence),
        *(
            [f"![What each step size leaves]({_file_path(experiment_sweep, picture)})"]
            if picture
            else []
        ),
    ]
    table = tables.markdown(tables.summary(experiment_sweep))
    foot = [
        f"Again: {clean.code(sweep.command)}",
        f"[Charts of the schemes]({dashboard.path(sweep, experiment)}), "
        f"[of every step size]({dashboard.path(sweep, experiment, 'step')}), "
        f"[the report]({report_path(sweep, experiment)}).",
        f"*{SIGNED}.*",
    ]
    text = "\n\n".join([*head, table, *foot])
    return text if len(text) <= MAX_LENGTH else "\n\n".join([*head, *foot])[:MAX_LENGTH]


def of_scheme(row: Mapping[Any, Any]) -> str:
    """Return the description of a scheme's run, a row of a sweep's runs."""
    step, explanation = row.get(names.STEP_TAG.column), row.get(names.EXPLANATION.column)
    at = f" at step size {step}" if isinstance(step, str) else ""
    paragraphs = [f"**{clean.markdown(row['label'])}** on {clean.markdown(row['experiment'])}: "]
    verdict = row["verdict"] or "no descent"
    paragraphs[0] += clean.markdown(f"{verdict}{at}, in comparison {row[names.SWEEP_ID.column]}.")
    paragraphs += [clean.markdown(explanation)] if isinstance(explanation, str) else []
    return "\n\n".join([*paragraphs, f"*{SIGNED}.*"])[:MAX_LENGTH]


def _file_path(experiment_sweep: Sweep, name: str) -> str:
    """Return where MLflow's server has a file of a sweep run, from its page."""
    run_id = experiment_sweep.of_role(names.SWEEP).iloc[0]["run_id"]
    return f"get-artifact?path={quote(name)}&run_uuid={run_id}"


def report_path(sweep: Sweep, experiment: str) -> str:
    """Return where MLflow's page shows the report, without the server's address."""
    row = sweep.of_role(names.SWEEP, experiment).iloc[0]
    return (
        f"#/experiments/{row['experiment_id']}/runs/{row['run_id']}/artifacts/report.html"
        "?workflowType=machine_learning"
    )
