"""The captions of tables, and the line below a table that points to the glossary."""

GLOSSARY_LINE = (
    "excess cost: the cost minus the least possible cost (all words: normbench results words)"
)
MORE_TABLES = "normbench results theory has the tables behind the answer"
PREDICTIONS = "Largest safe step size: what theory promises (2/L) and what was seen"
RATIO = (
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
ITERATIONS_TO_TARGET = "Iterations until 1 % of the excess cost is left"
TUNED_ONCE = f"{ITERATIONS_TO_TARGET}, each scheme with one step size for all splits"
PAIRS = (
    f"{ITERATIONS_TO_TARGET}, each scheme with its best step size for each split, in pairs; "
    "ratio: how many times longer the other scheme takes"
)
TEST_PAIRS = "Test points after the last iteration, in pairs of schemes"
