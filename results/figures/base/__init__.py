"""The parts that all figures share: style, labels, ticks, landmarks, inputs, output."""

__all__ = ["followed", "labels", "material", "output", "shown", "style", "ticks"]
