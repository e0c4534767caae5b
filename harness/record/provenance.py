"""The code and the libraries that a comparison is run with, as tags of its run."""

import hashlib
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from threadpoolctl import threadpool_info

from normbench import names

SOURCE_FOLDER = Path(__file__).resolve().parents[2]  # of a checkout
HARNESS = Path(__file__).resolve().parents[1]  # the folder of the package, when it is installed
# Where its modules are; in a checkout some rooms are beside it.
PLACES = (HARNESS, SOURCE_FOLDER) if (SOURCE_FOLDER / "pyproject.toml").is_file() else (HARNESS,)
ROOMS = ("", "costs", "datasets", "optimizers", "results")  # the folders of the package
CODE_SUFFIXES = (".py", ".js", ".jinja")

RECORDED_LIBRARIES = (
    "numpy",
    "scipy",
    "autograd",
    "scikit-learn",
    "hydra-core",
    "mlflow",
    "matplotlib",
)


def provenance_tags() -> dict[str, str]:
    """Return the versions of Python and the libraries, the commit, and the digest of the code."""
    return {**_versions(), **_commit(), names.CODE.key: code_digest()}


@cache
def code_digest() -> str:
    """Return a digest of the code of this project, and of the versions of its libraries."""
    digest = hashlib.sha256(repr(sorted(_versions().items())).encode())
    folders = [place / room for place in PLACES for room in ROOMS]
    for folder in folders:
        if folder != SOURCE_FOLDER:
            for file in sorted(folder.rglob("*")):
                if file.suffix in CODE_SUFFIXES:
                    digest.update(file.read_bytes())
    return digest.hexdigest()


def describe_blas() -> str:
    """Return the libraries of matrix products, such as `openblas 0.3.31 SkylakeX, 2 threads`."""
    libraries = {
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}, "
        f"{pool['num_threads']} threads"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    return "; ".join(sorted(libraries))


def installed_version() -> str:
    """Return the installed version of normbench; `unknown` in a checkout that is not installed."""
    try:
        return version("normbench")
    except PackageNotFoundError:
        return "unknown"


def _versions() -> dict[str, str]:
    """Return the versions of Python and the libraries as tags."""
    versions = {names.version(name).key: version(name) for name in RECORDED_LIBRARIES}
    python = {names.version("python").key: sys.version.split()[0]}
    return {**python, names.version("normbench").key: installed_version(), **versions}


def _commit() -> dict[str, str]:
    """Return as tags the commit of the code, and whether the tree was changed since.

    Empty outside a checkout, and where git cannot be run.
    """

    def git(*arguments: str) -> str:
        """Return what a command of git prints in the checkout."""
        command, quiet = ["git", *arguments], subprocess.DEVNULL
        return subprocess.check_output(command, cwd=SOURCE_FOLDER, stderr=quiet, text=True).strip()

    try:
        # Installed in an environment inside the user's own repository, git would tell of that one.
        if Path(git("rev-parse", "--show-toplevel")) != SOURCE_FOLDER:
            return {}
        commit = git("rev-parse", "HEAD")
        dirty = bool(git("status", "--porcelain"))
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {names.COMMIT.key: commit, names.GIT_DIRTY.key: str(dirty).lower()}
