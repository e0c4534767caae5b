"""Theory that a descent is compared with: spectra, predictions, the least cost."""

__all__ = ["analysis", "batches", "budget", "directions", "minimum", "shared", "spectra"]
