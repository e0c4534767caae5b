"""normbench's engine: what a normalization scheme does to gradient descent.

`compare` is loaded when it is asked for, so that `python -m harness --help` stays quick.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.comparison import compare

__all__ = ["compare"]


def __getattr__(name: str) -> Any:
    if name == "compare":
        from harness.comparison import compare

        return compare
    raise AttributeError(f"module 'harness' has no attribute {name!r}")
