"""The words after `normbench results`."""
