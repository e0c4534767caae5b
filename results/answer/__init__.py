"""The answer of a comparison: sentences, summary tables, and theory against observation."""

__all__ = ["cause", "closing", "fastest", "headline", "ranking", "tables", "theory_table"]
