"""Sentences from templates with their conditions."""

__all__ = ["glossary", "reasons", "sentences"]
