"""Tables, predictions, and the answer of a comparison."""

__all__ = ["closing", "fastest", "tables", "theory_table"]
