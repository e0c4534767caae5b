"""What is already recorded: the identity of a job, and recorded jobs judged again."""

__all__ = ["identity", "lookup", "recorded", "rejudge", "request"]
