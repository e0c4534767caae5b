"""The answer of a comparison: sentences, summary tables, and theory against observation."""

__all__ = [
    "cause",
    "closing",
    "fastest",
    "headline",
    "race",
    "ranking",
    "scheme_faults",
    "seconds",
    "tables",
    "theory_table",
]
