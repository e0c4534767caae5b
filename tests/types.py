"""Types are checked on the package as it is installed: `python -m tests.types`.

mypy does not follow an editable install, and on the bare folders it finds no `normbench`.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.wheel import ROOT, build


def main() -> int:
    """Check an unpacked wheel; return mypy's exit code."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        target = Path(folder) / "installed"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
        subprocess.run([*pip, str(target), str(wheel)], check=True)
        settings = ["--config-file", str(ROOT / "pyproject.toml")]
        cache = ["--cache-dir", str(ROOT / ".mypy_cache")]
        done = subprocess.run(
            [sys.executable, "-m", "mypy", *settings, *cache, "-p", "normbench"],
            cwd=target,
            env={**os.environ, "MYPYPATH": str(target)},
        )
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
