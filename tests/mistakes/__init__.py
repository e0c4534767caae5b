"""Mistakes and attacks that a command answers in one line; as a table: python -m tests.mistakes."""
