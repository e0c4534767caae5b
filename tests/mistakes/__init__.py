"""Mistakes and attacks that a command answers in one line."""
