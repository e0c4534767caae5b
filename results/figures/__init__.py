"""Figures: a table in, a matplotlib `Figure` out, one module each, no global state."""
