"""Compose, check and build: Hydra's config and the jobs built from it."""
