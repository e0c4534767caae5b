"""Equivalent implementations that only make a descent faster; the numbers agree to rounding."""
