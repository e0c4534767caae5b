"""What a descent can be held against: spectra, predictions, the least cost."""

__all__ = ["analysis", "budget", "directions", "minimum", "shared", "spectra"]
