"""A comparison as one HTML file, in the terminal, and in a notebook."""
