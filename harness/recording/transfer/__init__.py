"""Export of recorded sweeps to an archive, and import from it."""
