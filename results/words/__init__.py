"""Sentences from templates with their conditions."""
