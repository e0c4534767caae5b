"""Studies of the literature: the numbers that their sources state, and the measured ones."""
