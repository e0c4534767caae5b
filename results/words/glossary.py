"""The words of the output, each explained in a sentence: `normbench results words`."""

from normbench import names

GLOSSARY = {
    "cost": "the mean over the training points of what is minimized",
    "least cost": "the lowest cost that any weights reach, from a second-order solver",
    "excess": "the cost minus the least cost: how far there still is to go",
    "excess left": "the share of the excess at the start that is left after the last iteration",
    "best step": "the step size that comes lowest and stays there, and of equal ones the first",
    names.LEVELLED: "over half of the excess is gone, and the cost hardly changes any more",
    names.UNSETTLED: "the cost is finite, still changes, and does not go up and down",
    names.CYCLING: "the cost goes up and down without a new low",
    names.DIVERGED: "the cost grew beyond ten times the excess at the start, or beyond all numbers",
    names.BY_ROUNDING: "a start moved by a ten-billionth of the way ends elsewhere",
    "levels up to": "the largest step size with which the cost levels; >= if none above it fails",
    "falls up to": "the largest step size with which the cost falls at every iteration",
    "L": "the largest curvature of the cost: how fast its slope can change",
    "2/L": "up to this step size theory promises that the cost falls",
    "2/L best": "2/L by the curvature where the best step size ends, and not everywhere",
    "ratio": "where the cost stops falling, divided by 2/L: [a, b) means between a and b times",
    "condition": "the largest curvature over the smallest: 1 is a round bowl, 1e6 a narrow valley",
    "misclassified": "training points on the wrong side; a score of exactly 0 counts",
    "1e-2 of the excess": "the iteration from which at most one percent of the excess is left",
    "split": "one way to divide the points into those to train on and those held out",
    "scheme": "a normalizer with its settings",
    "job": "one data set, cost, scheme and optimizer with all of its step sizes",
    "sweep": "all jobs of one command, with an id by which normbench results finds them",
}


def text() -> str:
    """Return every word with its sentence, one line each."""
    return "\n".join(f"{word:20} {meaning}" for word, meaning in GLOSSARY.items())
