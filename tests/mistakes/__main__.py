"""The table of mistakes: what each is, how it is answered, and how long that takes."""

import sys
import tempfile
from pathlib import Path

from tests.mistakes import files, programs, schemes, settings, stores
from tests.mistakes.bench import ask, emptied


def main() -> int:
    """Print a row a mistake; return how many were answered wrongly."""
    wrong = 0
    print("| mistake | seconds | answer |\n|---|---|---|")
    usual = (*programs.CASES, *schemes.CASES, *settings.CASES, *files.CASES, *stores.CASES)
    for case in (*usual, *files.SLOW):
        top = Path(tempfile.mkdtemp())
        told = ask(case, top)
        emptied(top)
        complaints = told.complaints(case.fragments)
        wrong += bool(complaints)
        line = " ".join(" ".join((*complaints, told.err)).split()).replace(str(top), "")
        shown = line.replace("|", "\\|")[:400]
        print(f"| {case.kind[:60]} | {told.seconds:.1f} | {shown} |", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
