"""A scheme applied to points: fitted, probed, folded into the weights."""
