"""Statistics over runs: problems, targets, pairs, ranks, held-out points."""

__all__ = ["comparisons", "evidence", "heldout", "merging", "problems", "reached"]
