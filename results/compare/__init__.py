"""Statistics over runs: problems, targets, pairs, ranks, held-out points."""

__all__ = [
    "batch_gains",
    "comparisons",
    "directions",
    "evidence",
    "heldout",
    "merging",
    "passes",
    "problems",
    "reached",
]
