"""A comparison as one HTML file, in the terminal, and in a notebook."""

__all__ = ["notebook", "page", "profile", "screen", "screen_table", "terminal"]
