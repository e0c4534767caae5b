"""The commands after `normbench results`."""

__all__ = ["commands"]
