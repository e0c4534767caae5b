"""The lowest versions that `pyproject.toml` allows, as constraints: `python -m tests.lowest`."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOUND = re.compile(r"([\w.-]+)(?:\[\w+\])?>=([\w.]+)")


def constraints() -> list[str]:
    """Return `name==version` for each requirement, of the package and its tests, with a bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    found = (BOUND.match(requirement) for requirement in wanted)
    return [f"{match[1]}=={match[2]}" for match in found if match]


if __name__ == "__main__":
    print("\n".join(constraints()))
