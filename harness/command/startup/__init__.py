"""Settings of the process before numpy is imported: the kernels of matrix products."""
