"""The Markdown descriptions on MLflow's pages: answer, question, table and links."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from normbench import names
from normbench.results.answer import cause, headline, scheme_faults, tables
from normbench.results.answer import closing as answer
from normbench.results.compare.reached import step_text
from normbench.results.pages import dashboard
from normbench.results.safe import clean
from normbench.results.store.runs import Sweep

SIGNED = "Written by normbench"  # a description without it is a user's, and is kept
MAX_DESCRIPTION_LENGTH = 4900  # MLflow stores 5,000 characters of an experiment's description


def write(sweep: Sweep, experiment: str, picture: str = "") -> str:
    """Return the description of an experiment and of its sweep run.

    Args:
        sweep: The runs.
        experiment: The experiment.
        picture: The name of the sweep run's artifact that shows the answer; empty for none.

    Returns:
        The Markdown. A text that is too long for MLflow is without the table of the schemes.
    """
    experiment_sweep = sweep.only(experiment)
    sentences = (
        headline.headline(experiment_sweep, experiment),
        cause.cause(experiment_sweep, experiment),
        *scheme_faults.remarks(experiment_sweep, experiment),
    )
    # A sentence may be empty, and is then left out.
    answers = [clean.markdown(sentence) for sentence in sentences if sentence]
    answers += map(clean.markdown, answer.targets(experiment_sweep))
    head = [  # the answer first: MLflow shows two lines until the description is unfolded
        *answers[:1],
        f"Comparison {clean.markdown(sweep.sweep_id)}: "
        f"**{clean.markdown(answer.question(sweep, experiment))}**",
        *answers[1:],
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
    if len(text) <= MAX_DESCRIPTION_LENGTH:
        return text
    return _cut([*head, *foot])


def of_scheme(row: Mapping[Any, Any]) -> str:
    """Return the description of a scheme's run: its verdict and theory's explanation.

    Args:
        row: The run's row in a table of runs.

    Returns:
        The Markdown.
    """
    step, explanation = step_text(row), row.get(names.EXPLANATION.column)
    at_step = f" at step size {step}" if step else ""
    scheme = f"**{clean.markdown(row['label'])}** on {clean.markdown(row['experiment'])}: "
    verdict = row["verdict"] or "no descent"
    sweep_id = row[names.SWEEP_ID.column]
    paragraphs = [scheme + clean.markdown(f"{verdict}{at_step}, in comparison {sweep_id}.")]
    paragraphs += [clean.markdown(explanation)] if isinstance(explanation, str) else []
    if isinstance(target := row.get(names.TARGET_SUMMARY.column), str):
        paragraphs.append(clean.markdown(f"target: {target}"))
    return _cut([*paragraphs, f"*{SIGNED}.*"])


def _cut(paragraphs: Sequence[str]) -> str:
    """Return paragraphs as Markdown, cut before the last one, which is the signature.

    A description without the signature counts as the user's, and is not written anew.
    """
    signature = f"\n\n{paragraphs[-1]}"
    return "\n\n".join(paragraphs[:-1])[: MAX_DESCRIPTION_LENGTH - len(signature)] + signature


def _file_path(experiment_sweep: Sweep, name: str) -> str:
    """Return the address of a sweep run's artifact, relative to MLflow's page."""
    run_id = experiment_sweep.of_role(names.SWEEP).iloc[0]["run_id"]
    return f"get-artifact?path={quote(name)}&run_uuid={run_id}"


def report_path(sweep: Sweep, experiment: str) -> str:
    """Return the address of the report on MLflow's page, without the server's address.

    Args:
        sweep: The sweep.
        experiment: The name of the experiment, whose sweep run has the report.

    Returns:
        The part of the address from `#` on.
    """
    row = sweep.of_role(names.SWEEP, experiment).iloc[0]
    return (
        f"#/experiments/{row['experiment_id']}/runs/{row['run_id']}/artifacts/report.html"
        "?workflowType=machine_learning"
    )
