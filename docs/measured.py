"""Write what the studies measured: `python docs/measured.py HOME`, see `make measured`.

The file stands in the repository, so that `make docs` shows measured numbers without running forty
studies. Tests run the studies and compare (`tests/test_gallery.py`, `tests/test_studies.py`,
`tests/test_docs.py`).
"""

import sys
from pathlib import Path
from typing import Any

import yaml

from normbench.results.store.errors import ResultsError
from normbench.results.store.rows import as_rows
from normbench.results.studies import study_table

FILE = Path(__file__).resolve().parent / "measured.yaml"
STUDY_FOLDERS = ("textbook", "exercises", "lecture", "notes", "research")
HEAD = (
    "# What each study measured, written by `make measured`; tests run the studies and compare.\n"
)


def measured(home: Path, folder: str) -> dict[str, list[dict[str, str]]]:
    """Return what the recorded studies of a folder measured, by `FOLDER/STUDY`.

    A row a number that the study expects; of a study without such numbers, a row a scheme.
    """
    sweeps, _ = study_table.last_sweeps(home, folder)
    numbers: dict[str, list[dict[str, str]]] = {}
    for name, sweep in sorted(sweeps.items()):
        rows: list[dict[Any, Any]] = as_rows(
            study_table.compare_with_sources({name: sweep}, folder)
        )
        keys = ("what", "measured", "verdict")
        if not rows:
            rows = as_rows(study_table.table({name: sweep}))
            keys = ("scheme", "the source says", "measured")
        numbers[f"{folder}/{name}"] = [{key: str(row[key]) for key in keys} for row in rows]
    return numbers


def main(home: Path) -> None:
    """Write the file anew; studies that the home lacks keep what they have."""
    studies = yaml.safe_load(FILE.read_text()) if FILE.exists() else {}
    for folder in STUDY_FOLDERS:
        try:
            studies |= measured(home, folder)
        except ResultsError as error:
            print(error, file=sys.stderr)
    text = yaml.safe_dump(studies, width=200, allow_unicode=True, default_flow_style=None)
    FILE.write_text(HEAD + text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
