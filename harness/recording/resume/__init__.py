"""Checkpoints of descents, and recovery after a crash."""
