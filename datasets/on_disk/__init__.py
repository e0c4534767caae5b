"""Points that stay on disk: read by blocks, larger than memory."""
