"""Compose, check and build: Hydra's config and what is made of it."""

__all__ = ["compose", "errors", "grid", "help", "hydra_settings", "mistyped", "resolvers", "study"]
