"""What Linux says of the processor."""

from pathlib import Path

FILE = Path("/proc/cpuinfo")


def described(field: str) -> str:
    """Return a field of the processor's description, such as `vendor_id`; empty without it."""
    try:
        for line in FILE.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == field:
                return value.strip()
    except OSError:
        pass
    return ""
