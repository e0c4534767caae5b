"""The glossary of the output, one sentence a term, for `normbench results words`."""

import textwrap

from normbench import names

GLOSSARY = {
    "cost": "the mean over the training points of what gradient descent minimizes",
    "least cost": "the lowest cost that any weights reach; a second-order solver finds it",
    "excess cost": "the cost minus the least cost: how far descent still has to go",
    "excess cost left": "the share left of that at zero weights, over the scheme's own least cost",
    "history": "the excess cost left over the iterations, on a logarithmic scale",
    "best step": "the step size that ends with the lowest cost; of equal ones the fastest",
    names.CONVERGED: "over half of the excess cost is gone, and the cost hardly changes any more",
    names.NOT_CONVERGED: "the cost still changes, or has come to rest too high",
    names.CYCLING: "the cost goes up and down without a new low",
    names.DIVERGED: "the cost grew without bounds, or to over ten times the starting excess cost",
    names.BY_ROUNDING: "a start moved by a ten-billionth of the way ends elsewhere",
    "converges up to": "the largest step size that converged; >= if no larger one failed",
    "always falls up to": "the largest step size up to which the cost fell in every iteration",
    "L": "the largest curvature of the cost: how fast its slope can change",
    "2/L": "theory promises that with any smaller step size the cost falls",
    "2/L at the end": "the same by the curvature at the last weights, instead of everywhere",
    "seen / promised": "the step size where the cost stops falling, over 2/L: between two numbers",
    "condition number": "the largest curvature over the smallest: 1 is a bowl, 1e6 a narrow valley",
    "direction": "an axis of that bowl or valley; along each, descent has its own speed",
    "layer": "a direction as a figure draws it, as thick as the excess cost along it",
    "cost in own units": "the cost of predictions in the target's own units, under a target_scheme",
    "RMS error": "the root of the mean squared error, in those units",
    "misclassified": "training points on the wrong side; a score of exactly 0 counts",
    "1 % of the excess cost": "met from the first iteration on after which no more is left",
    "split": "one way to divide the points into those to train on and those held out",
    "scheme": "what is done to the features before descent, with its settings",
    "job": "one data set, cost, scheme and optimizer, with all step sizes",
    "comparison": "all jobs of one command; normbench results list shows their ids",
}


def text(columns: int) -> str:
    """Return every term with its sentence, a paragraph each.

    Args:
        columns: The width of a line in characters.
    """
    # The sentences start in one column, two blanks behind the longest term.
    width = 2 + max(map(len, GLOSSARY))
    return "\n".join(
        textwrap.fill(f"{term:{width}}{meaning}", columns, subsequent_indent=" " * width)
        for term, meaning in GLOSSARY.items()
    )
