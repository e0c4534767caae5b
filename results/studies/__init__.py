"""Studies: what their sources expect, and what was measured."""

__all__ = ["expected", "study_table"]
