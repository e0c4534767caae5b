"""The records that are kept: a file of JSON a scene, a line a value, so that a diff can be read."""

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "records"


def write(record: dict[str, Any], name: str, folder: Path = FOLDER) -> None:
    """Write the record of a scene."""
    text = json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False)
    (folder / f"{name}.json").write_text(_joined(text) + "\n")


def _joined(text: str) -> str:
    """Return JSON with each list of numbers on one line."""
    numbers = re.compile(r"\[\s+(-?\d[-\d.e+]*(?:,\s+-?\d[-\d.e+]*)*)\s+\]")
    return numbers.sub(lambda match: "[" + re.sub(r"\s+", " ", match[1]) + "]", text)


def read(name: str, folder: Path = FOLDER) -> dict[str, Any]:
    """Return the record of a scene."""
    return json.loads((folder / f"{name}.json").read_text())
