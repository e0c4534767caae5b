"""normbench: what a normalization scheme does to gradient descent, and why.

The public names are imported on first access, so that `normbench --help` stays quick.
"""

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from normbench.comparison import compare
    from normbench.results.report.notebook import load

    __version__: str

__all__ = ["__version__", "compare", "load"]

CHECKOUT = Path(__file__).resolve().parent.parent
if (CHECKOUT / "pyproject.toml").is_file():
    # In a checkout, `normbench.costs` and the others are neighbours of this folder.
    __path__.append(str(CHECKOUT))

if __name__ == "harness" and "normbench" not in sys.modules:
    # `python -m harness` in a checkout: its own code runs, not an installed normbench.
    _spec = importlib.util.spec_from_file_location(
        "normbench", __file__, submodule_search_locations=[str(Path(__file__).parent)]
    )
    assert _spec is not None
    assert _spec.loader is not None
    sys.modules["normbench"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["normbench"])


def __getattr__(name: str) -> Any:
    """Import a public name on first access."""
    if name == "compare":
        from normbench.comparison import compare

        return compare
    if name == "load":
        from normbench.results.report.notebook import load

        return load
    if name == "__version__":
        from normbench.record.provenance import installed_version

        return installed_version()
    raise AttributeError(f"module 'normbench' has no attribute {name!r}")
