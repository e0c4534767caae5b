"""Compose, check and build: Hydra's config and what is made of it."""
