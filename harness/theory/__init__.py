"""What a descent can be held against: spectra, predictions, the least cost."""
