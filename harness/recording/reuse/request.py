"""The request of a job: a digest of all that determines its record, without loading its data.

Equal requests have equal identities, so that a recorded job is found without scikit-learn. A
request is stricter than the identity: any change of the code or of a library changes the request,
and the identity then decides whether the job is recorded.
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

DATASETS_PREFIX = "normbench.datasets."
SELF_CONTAINED = ("bundled", "made")  # modules whose data depend on no file
REQUEST_LIBRARIES = ("numpy", "scipy", "scikit-learn", "autograd")
# The options of schemes, too: chains and preconditioned optimizers name them.
CODE_ROOMS = ("", "costs", "datasets", "optimizers", "conf.normalizer")
UNRELATED_SETTINGS = ("tracking", "reuse", "checkpoint", "packages", "study", "figures")


def digest(plain: Mapping[str, Any], tags: Mapping[str, str]) -> str | None:
    """Return the digest of the settings, code and libraries of a job.

    Args:
        plain: The config of the job as plain values.
        tags: The names of its choices, such as the normalizer, by tag.

    Returns:
        The digest, 64 hexadecimal digits; None for a job on data from files, or with code of the
        user, because neither is read here.
    """
    loader = str(plain["dataset"].get("_target_"))
    loader_module = loader.removeprefix(DATASETS_PREFIX).split(".")[0]
    if plain["packages"] or loader_module not in SELF_CONTAINED:
        return None
    settings = {key: value for key, value in plain.items() if key not in UNRELATED_SETTINGS}
    text = json.dumps([settings, dict(tags), _code()], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _code() -> list[str]:
    """Return what determines a record beside its settings: a digest of code, and versions.

    Returns:
        The digest of the files of `CODE_ROOMS`, the version of Python, and that of each of
        `REQUEST_LIBRARIES`.
    """
    code_hash = hashlib.sha256()
    for name in CODE_ROOMS:  # an empty name: all of normbench
        spec = find_spec(f"normbench.{name}" if name else "normbench")  # without importing it
        assert spec
        assert spec.origin
        folder = Path(spec.origin).parent  # the origin is its __init__.py
        files = (file for file in folder.rglob("*") if file.suffix in (".py", ".yaml"))
        for file in sorted(files):
            code_hash.update(f"{name}/{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return [code_hash.hexdigest(), sys.version, *(version(name) for name in REQUEST_LIBRARIES)]
