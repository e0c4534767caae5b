"""Statistics over runs: problems, targets, pairs, ranks, held-out points."""
