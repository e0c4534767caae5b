"""No secret and no control character leaves the program: texts sanitized, secrets blotted."""

__all__ = ["clean", "files", "secrets"]
