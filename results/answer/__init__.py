"""The answer of a comparison: sentences, summary tables, and theory against observation."""
