"""Studies: what their sources expect, and what was measured."""
