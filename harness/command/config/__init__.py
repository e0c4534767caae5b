"""Compose, check and build: Hydra's config and the jobs built from it."""

__all__ = ["compose", "errors", "grid", "help", "hydra_settings", "mistyped", "resolvers", "study"]
