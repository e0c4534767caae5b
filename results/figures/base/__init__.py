"""What all figures share: style, labels, the material they draw, output."""
