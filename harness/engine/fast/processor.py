"""Read Linux's description of the processor."""

from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


def read_field(field: str) -> str:
    """Return a field of the processor's description, such as `vendor_id`.

    It is empty where there is no such field, or no description, as outside Linux.
    """
    try:
        for line in CPUINFO.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == field:
                return value.strip()
    except OSError:
        pass
    return ""
