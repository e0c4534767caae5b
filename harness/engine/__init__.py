"""Descend the cost of stacked models on points, all runs of a grid at once."""
