"""Texts sanitized: no control characters, and no password of a URI. Regular files alone."""

__all__ = ["clean", "files"]
