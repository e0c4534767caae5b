"""Statistics over runs: problems, targets, pairs, ranks, held-out points."""

__all__ = ["comparisons", "directions", "evidence", "heldout", "merging", "problems", "reached"]
