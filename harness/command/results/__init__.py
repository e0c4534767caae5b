"""The words after `normbench results`."""

__all__ = ["commands"]
