"""The request of a job: all that its record follows from, told without its data or its scheme.

Equal requests have equal identities, so a job whose request is recorded is found again without
scikit-learn. It is stricter than the identity: any change of the code, or of a library, makes
another request, and the job is then found, or not, by its identity.
"""

import hashlib
import json
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

OURS = "normbench.datasets."
MADE = ("bundled", "gaussian", "broken", "shapes")  # the modules whose data no file changes
LIBRARIES = ("numpy", "scipy", "scikit-learn", "autograd")
# The options of schemes, too: chains and preconditioned optimizers name them.
CODE = ("", "costs", "datasets", "optimizers", "conf.normalizer")
NO_NUMBER = ("tracking", "reuse", "checkpoint", "packages", "study", "figures")


def digest(plain: Mapping[str, Any], tags: Mapping[str, str]) -> str | None:
    """Return the digest of a job's settings, code and libraries; tags: the names of its choices.

    None for a job on data that may have changed meanwhile, or by code of the user's own.
    """
    module = str(plain["dataset"].get("_target_")).removeprefix(OURS).split(".")[0]
    if plain["packages"] or module not in MADE:
        return None
    settings = {key: value for key, value in plain.items() if key not in NO_NUMBER}
    words = json.dumps([settings, dict(tags), _code()], sort_keys=True, default=str)
    return hashlib.sha256(words.encode()).hexdigest()


@cache
def _code() -> list[str]:
    """Return a digest of the code that a record follows from, and the versions of libraries."""
    found = hashlib.sha256()
    for name in CODE:
        spec = find_spec(f"normbench.{name}" if name else "normbench")  # which loads none of it
        folder = Path(spec.origin).parent if spec and spec.origin else Path()
        files = (file for file in folder.rglob("*") if file.suffix in (".py", ".yaml"))
        for file in sorted(files):
            found.update(f"{name}/{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return [found.hexdigest(), sys.version, *(version(name) for name in LIBRARIES)]
