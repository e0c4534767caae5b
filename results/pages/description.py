"""The Markdown descriptions on MLflow's pages: answer, question, table and links."""

from collections.abc import Mapping, Sequence
from typing import Any

from normbench import names
from normbench.results.answer import cause, headline, scheme_faults, tables
from normbench.results.answer import closing as answer
from normbench.results.compare.reached import step_text
from normbench.results.pages.views import Page
from normbench.results.safe import clean
from normbench.results.store.runs import Sweep

SIGNED = "Written by normbench"  # a description without it is a user's, and is kept
MAX_DESCRIPTION_LENGTH = 4900  # MLflow stores 5,000 characters of an experiment's description


def write(sweep: Sweep, experiment: str, page: Page, picture: str = "") -> str:
    """Return the description of an experiment and of a comparison's run in it.

    Args:
        sweep: The runs.
        experiment: The experiment.
        page: The addresses of the comparison.
        picture: The name of the comparison's file that shows the answer; empty for none.

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
        f"Comparison {clean.markdown(page.comparison_id)}: "
        f"**{clean.markdown(answer.question(sweep, experiment))}**",
        *answers[1:],
        *([f"![What each step size leaves]({page.file(picture)})"] if picture else []),
    ]
    table = tables.markdown(tables.summary(experiment_sweep))
    foot = [
        f"Again: {clean.code(sweep.command)}",
        f"[Charts of the schemes]({page.charts()}), "
        f"[of every step size]({page.charts(names.STEP)}), [the report]({page.report}).",
        f"*{SIGNED}.*",
    ]
    text = "\n\n".join([*head, table, *foot])
    return text if len(text) <= MAX_DESCRIPTION_LENGTH else _cut([*head, *foot])


def of_scheme(row: Mapping[Any, Any], comparison_id: str) -> str:
    """Return the description of a scheme's run: its verdict and theory's explanation.

    Args:
        row: The run's row in a table of runs.
        comparison_id: The id of the comparison that wrote the run.

    Returns:
        The Markdown.
    """
    step, explanation = step_text(row), row.get(names.EXPLANATION.column)
    at_step = f" at step size {step}" if step else ""
    scheme = f"**{clean.markdown(row['label'])}** on {clean.markdown(row['experiment'])}: "
    verdict = row["verdict"] or "no descent"
    paragraphs = [scheme + clean.markdown(f"{verdict}{at_step}, in comparison {comparison_id}.")]
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
