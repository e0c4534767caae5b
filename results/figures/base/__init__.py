"""The parts that all figures share: style, labels, ticks, landmarks, inputs, output, processes."""

__all__ = ["forks", "inline", "labels", "landmarks", "material", "output", "style", "ticks"]
