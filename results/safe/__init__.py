"""Texts sanitized: no control characters, and no password of a URI. Regular files alone."""
