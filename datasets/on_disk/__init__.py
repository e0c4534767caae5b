"""Points that stay on disk and are read by blocks, for data larger than memory."""
