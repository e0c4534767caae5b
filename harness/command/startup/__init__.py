"""What is set before numpy is imported: the kernels of matrix products."""
