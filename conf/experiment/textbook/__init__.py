"""The textbook's studies."""
