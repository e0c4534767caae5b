"""What the textbook asks of its reader, as studies."""
