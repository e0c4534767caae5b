"""Tables, predictions, and the answer of a comparison."""

__all__ = ["closing", "tables", "theory_table"]
