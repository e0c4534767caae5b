"""The parts that all figures share: style, labels, ticks, landmarks, inputs, output, processes."""
