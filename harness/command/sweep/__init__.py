"""Plan and run the jobs of a command, on this machine or by a launcher."""
