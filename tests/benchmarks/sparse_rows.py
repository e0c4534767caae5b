"""Sparse points: a whole descent beside scikit-learn's classifiers, and its memory.

100,000 points of 50,000 features, 50 of them not 0. Both sides fit the same model to the same
points in one run: standardized with the mean in the weights and 100 iterations at one step size
here, 100 epochs or iterations there, on the points as they are.
"""

import tracemalloc
from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss

import normbench
from tests.benchmarks.turns import Row, in_turns, judged, ratio

POINTS, FEATURES, STORED = 100_000, 50_000, 50
ITERATIONS = 100
MAX_MEMORY = 4.0  # of a descent, over the arrays of the points
WORDS = "sparse, 100,000 x 50,000, 50 a row, 1 run, 100 iterations"
CLASSIFIERS = {
    "SGDClassifier": lambda: SGDClassifier(
        loss="log_loss", alpha=1e-9, max_iter=ITERATIONS, tol=None
    ),
    "LogisticRegression": lambda: LogisticRegression(C=1e5, max_iter=ITERATIONS),
}


def sparse_rows(turns: int, only: str) -> Iterator[Row]:
    """scikit-learn over ours in seconds, each with its training cost; memory over the arrays."""
    names = {classifier: f"{classifier} over ours, {WORDS}" for classifier in CLASSIFIERS}
    memory_name = f"memory over the points' arrays, {WORDS}"
    if not any(only in name for name in (*names.values(), memory_name)):
        return
    x, y = points()
    costs: dict[str, float] = {}

    def ours() -> None:
        costs["ours"] = descend(x, y)

    for classifier, name in names.items():
        if only not in name:
            continue

        def theirs(classifier: str = classifier) -> None:
            fitted = CLASSIFIERS[classifier]().fit(x, y)
            costs[classifier] = float(log_loss(y, fitted.predict_proba(x)))

        found = in_turns({"theirs": theirs, "ours": ours}, max(1, turns // 3))
        seconds = " and ".join(f"{median(found[side]):.1f}" for side in ("theirs", "ours"))
        both_costs = f"costs {costs[classifier]:.2g} and {costs['ours']:.2g}"
        yield judged(f"{name}; {seconds} s, {both_costs}", ratio(found["theirs"], found["ours"]))
    if only in memory_name:
        yield judged(memory_name, memory(x, y), "at most", MAX_MEMORY)


def points() -> tuple[Any, Any]:
    """Return drawn points (P, N) as a CSR array, and classes that a plane separates."""
    rng = np.random.default_rng(0)
    width = FEATURES // STORED
    columns = rng.integers(0, width, (POINTS, STORED)) + np.arange(STORED) * width
    indptr = np.arange(0, POINTS * STORED + 1, STORED, dtype=np.int32)
    arrays = rng.exponential(size=POINTS * STORED), columns.astype(np.int32).ravel(), indptr
    x = sparse.csr_array(arrays, shape=(POINTS, FEATURES))
    return x, (x @ rng.standard_normal(FEATURES) > 0).astype(int)


def descend(x: Any, y: Any) -> float:
    """Return the last training cost of a descent on points standardized in the weights."""
    found = normbench.compare(x, y, "softmax", "standard", step_sizes=[1.0], iterations=ITERATIONS)
    return float(found.frame.cost.iloc[-1])


def memory(x: Any, y: Any) -> float:
    """Return the largest memory of a descent, its points included, over that of their arrays."""
    arrays = sum(array.nbytes for array in (x.data, x.indices, x.indptr))
    tracemalloc.start()
    try:
        descend(x, y)
        return float((arrays + tracemalloc.get_traced_memory()[1]) / arrays)
    finally:
        tracemalloc.stop()
