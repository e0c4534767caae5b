"""What only makes a descent faster; without it the numbers are the same to rounding."""

__all__ = ["blocked", "packed", "processor", "span", "threads", "triangle", "wrappers"]
