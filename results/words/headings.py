"""The captions of tables, and the line below a table that points to the glossary."""

GLOSSARY_LINE = (
    "excess cost: the cost minus the least possible cost (all words: normbench results words)"
)
MORE_TABLES = "normbench results theory has the tables behind the answer"
PREDICTIONS = "Largest safe step size: what theory promises (2/L) and what was seen"
RATIO_CAPTION = (
    "; seen / promised: the largest step size with which the cost always fell, and the next one "
    "tried, both over 2/L (or the critical step size over 2/L)"
)
TEST_POINTS = (
    "Test points after the last iteration; best: the lowest of all iterations, chosen on these "
    "points"
)
CROSS_VALIDATION = (
    "Cross-validation after the last iteration; low to high (from 6 seeds on): where the median "
    "over seeds of these points lies, not the error on new points"
)
# Of iterations until a share of the excess cost is left.
# With the name of the sample: splits, or orders of the batches.
TUNED_ONCE = "each scheme with one step size for all {sample}"
PAIRS = (
    "each scheme with its best step size for each of the {sample}, in pairs; ratio: how many times "
    "longer the other scheme takes"
)
SECONDS = (
    "Seconds: of a scheme's fit, of {unit} of one run (its share of the whole grid's "
    "descent), and with the fit until {share:g} % of the excess cost is left"
)
TEST_PAIRS = "Test points after the last iteration, in pairs of schemes"


def iterations_to(unit: str, target: str, caption: str) -> str:
    """Return the caption of a table of iterations to a target.

    Args:
        unit: The plural of what an iteration is, see `passes.unit`.
        target: The share of the excess that is left, such as `1e-2`.
        caption: The rest of the caption.

    Returns:
        One line.
    """
    share = f"{100 * float(target):g} %"
    return f"{unit.capitalize()} until {share} of the excess cost is left, {caption}"
