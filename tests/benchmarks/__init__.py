"""Benchmarks: both sides in turns, on the same work, checked to have computed the same."""
