"""Reuse of recorded jobs: the identity of a job, its lookup, and judging it again."""
