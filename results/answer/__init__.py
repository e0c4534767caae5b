"""Tables, predictions, and the answer of a comparison."""

__all__ = ["cause", "closing", "fastest", "headline", "tables", "theory_table"]
