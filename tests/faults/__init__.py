"""Faults on purpose: what is struck, what the next command makes of it."""
