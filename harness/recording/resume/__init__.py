"""Checkpoints of descents, and recovery after a crash."""

__all__ = ["checkpoints", "leftovers", "orphans", "recovery"]
