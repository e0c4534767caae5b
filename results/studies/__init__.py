"""Studies of the literature: the numbers that their sources state, and the measured ones."""

__all__ = ["expected", "study_table"]
