"""Write golden commands anew, or compare two commits.

python -m tests.shell [SCENE ...] [--into FOLDER]: plays the scenes (all of them by default), and
writes what is seen to `tests/shell/records`, or with every picture to a folder. `--diff BEFORE
AFTER` prints what differs between two such folders, pictures by their pixels.
"""

import argparse
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from tests.shell.differences import of_records
from tests.shell.golden import FOLDER, read, write
from tests.shell.record import empty_folder, play
from tests.shell.scenes import SCENES

PROCESSES = 2


def keep(name: str, into: Path, pictures: bool) -> str:
    """Play a scene, and write what is seen to a folder, with its pictures if they are asked for."""
    with empty_folder() as folder:
        write(play(name, Path(folder)), name, into)
        for file in sorted(Path(folder, "work").rglob("*.png")) if pictures else []:
            if "mlartifacts" not in file.parts:
                number = len(list(into.glob(f"{name}.*.png")))
                shutil.copy(file, into / f"{name}.{number:03}.{file.name}")
    return name


def compare(before: Path, after: Path) -> bool:
    """Print what differs between two folders, and return whether anything does."""
    lines = []
    for name in sorted({file.stem for folder in (before, after) for file in folder.glob("*.json")}):
        records = [read(name, folder) for folder in (before, after)]
        lines += [f"{name}{line}" for line in of_records(*records)]
    files = {file.name for folder in (before, after) for file in folder.glob("*.png")}
    lines += [
        f"{name}: other pixels" for name in sorted(files) if not same_pixels(name, before, after)
    ]
    print(*lines, sep="\n")
    return bool(lines)


def same_pixels(name: str, *folders: Path) -> bool:
    """Return whether a picture of two folders is the same."""
    from PIL import Image

    if not all((folder / name).exists() for folder in folders):
        return False
    return np.array_equal(*(np.asarray(Image.open(folder / name)) for folder in folders))


def main() -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.shell", description=__doc__)
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help="by default all")
    parser.add_argument("--into", type=Path, help="the folder that records and pictures go to")
    parser.add_argument("--diff", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    options = parser.parse_args()
    if options.diff:
        return int(compare(*options.diff))
    into = options.into or FOLDER
    into.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(PROCESSES) as pool:
        job = partial(keep, into=into, pictures=options.into is not None)
        for name in pool.map(job, options.scenes or SCENES):
            print(name, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
