"""The wheel, built from a copy: a build leaves files in its folder, and takes up stale ones."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("conf", "costs", "datasets", "harness", "optimizers", "results")
FILES = ("pyproject.toml", "README.md", "LICENSE")


def copy(folder: Path) -> Path:
    """Copy what the package is made of into a folder; return it."""
    for name in FOLDERS:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    return folder


def build(folder: Path) -> Path:
    """Build the wheel in a folder of its own below a folder; return its file."""
    source = folder / "source"
    source.mkdir()
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(copy(source))], check=True)
    (wheel,) = folder.glob("normbench-*.whl")
    return wheel
