"""Theory that a descent is compared with: spectra, predictions, the least cost."""
