"""Reuse of recorded jobs: the identity of a job, its lookup, and judging it again."""

__all__ = ["identity", "lookup", "recorded", "rejudge", "request"]
