"""What is found out about a finished job: numbers, series and arrays."""
