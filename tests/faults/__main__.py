"""The fault table: `python -m tests.faults [WORD ...]`, all faults or those with a word in them.

Each fault strikes the command in a folder of its own; the same command then runs again. Prints
how both ended, how many jobs were recorded after each, and whether anything was lost or doubled.
Exits 1 where anything was.
"""

import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.faults.bench import Told
from tests.faults.cases import FAULTS

AT_ONCE = 2


def row(name: str) -> Told | str:
    """Return the row of a fault, or why there is none."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            return FAULTS[name](Path(folder))
        except PermissionError as error:
            return f"left out: {error}"


def main() -> int:
    """Run the faults and print the table."""
    words = sys.argv[1:]
    names = [name for name in FAULTS if not words or any(word in name for word in words)]
    started = time.monotonic()
    titles = ("fault", "exit", "jobs", "again", "jobs", "nothing lost or doubled")
    print(f"{titles[0]:44}{titles[1]:>5}{titles[2]:>6}{titles[3]:>7}{titles[4]:>6}  {titles[5]}")
    bad = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, found in zip(names, pool.map(row, names)):
            if isinstance(found, str):
                print(f"{name:44}{found}", flush=True)
                continue
            word = "no" if found.complaints else "yes"
            bad += word == "no"
            print(
                f"{found.fault:44}{found.first.code:5}{found.before:6}{found.again.code:7}"
                f"{found.after:6}  {word}",
                *found.complaints,
                sep="\n  " if found.complaints else "",
                flush=True,
            )
    print(f"{len(names)} faults, {bad} bad, in {time.monotonic() - started:.0f} s")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
