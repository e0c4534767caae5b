"""Plan and run the jobs of a command, on this machine or by a launcher."""

__all__ = ["line", "printing", "progress"]
