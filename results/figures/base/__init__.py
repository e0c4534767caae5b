"""What all figures share: style, labels, the material they draw, output."""

__all__ = ["followed", "labels", "material", "output", "shown", "style", "ticks"]
