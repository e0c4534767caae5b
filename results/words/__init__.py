"""Sentences from templates with their conditions."""

__all__ = ["glossary", "headings", "reasons", "sentences"]
