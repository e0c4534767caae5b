"""Theory that a descent is compared with: spectra, predictions, the least cost."""

__all__ = ["analysis", "budget", "directions", "minimum", "shared", "spectra"]
