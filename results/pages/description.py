"""The Markdown descriptions on MLflow's pages: answer, question, table and links."""

from normbench import names
from normbench.results.answer import cause, headline, scheme_faults, tables
from normbench.results.answer import closing as answer
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
    ]
    signature = f"\n\n*{SIGNED}.*"
    text = "\n\n".join([*head, table, *foot]) + signature
    if len(text) > MAX_DESCRIPTION_LENGTH:
        longest = MAX_DESCRIPTION_LENGTH - len(signature)
        text = "\n\n".join([*head, *foot])[:longest] + signature
    return text
