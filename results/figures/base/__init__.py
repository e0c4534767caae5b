"""The parts that all figures share: style, labels, ticks, landmarks, inputs, output."""

__all__ = ["inline", "labels", "landmarks", "material", "output", "style", "ticks"]
