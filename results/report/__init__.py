"""A comparison as one HTML file, in the terminal, and in a notebook."""

__all__ = ["files", "notebook", "page", "profile", "screen", "screen_table", "terminal"]
