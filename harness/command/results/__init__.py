"""The commands after `normbench results`."""
