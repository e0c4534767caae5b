"""Studies after a course's lecture on principal component analysis."""
