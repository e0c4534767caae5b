"""Sentences from templates with their conditions."""

__all__ = ["reasons", "sentences"]
