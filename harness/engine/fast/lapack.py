"""LAPACK's own routines, called without Python's lock, so that threads run them at once.

scipy's wrappers of `tpqrt` and `tpmqrt` keep the lock; its `cython_lapack` has their addresses.
"""

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from normbench.engine.problem import Array

PANEL = 16  # rows that are reflected at once: 8 to 32 take the same time


def make(triangle: Array, rows: Array) -> Array:
    """Reflect the features of rows (K, n) into those of a triangle (K, K), both in place.

    The rows become the reflections. Return what is needed to apply them, `(K, panel)`. Fortran sees
    a row of an array as a column.
    """
    count, size = rows.shape
    panel = min(PANEL, count)
    turns, work = np.zeros((count, panel)), np.empty(panel * count)
    given = [size, count, 0, panel, triangle, count, rows, size, turns, panel, work]
    _call("dtpqrt", given)
    return turns


def apply(way: bytes, reflections: Array, turns: Array, heads: Array, rows: Array) -> None:
    """Reflect heads (r, K) and rows (r, n) in place, by what `make` made; way: b"T", back b"N"."""
    (count, panel), (number, size) = turns.shape, rows.shape
    work = np.empty(panel * number)
    given = [b"L", way, size, number, count, 0, panel, reflections, size, turns, panel]
    _call("dtpmqrt", [*given, heads, count, rows, size, work])


def _call(name: str, given: list[Any]) -> None:
    failed = ctypes.c_int64(0)
    _routine(name)(*map(_place, given), ctypes.byref(failed))
    assert not failed.value


def _place(part: Any) -> Any:
    """Return what Fortran takes, an address; a number of four bytes is the lower half of eight."""
    if isinstance(part, np.ndarray):
        assert part.flags.c_contiguous, part.strides
        assert part.dtype == np.float64, part.dtype
        return part.ctypes.data_as(ctypes.c_void_p)
    return part if isinstance(part, bytes) else ctypes.byref(ctypes.c_int64(part))


@lru_cache(maxsize=2)
def _routine(name: str) -> Any:
    from scipy.linalg import cython_lapack

    capsule = cython_lapack.__pyx_capi__[name]
    kind, python = ctypes.py_object, ctypes.pythonapi
    signature = ctypes.PYFUNCTYPE(ctypes.c_char_p, kind)(("PyCapsule_GetName", python))
    address = ctypes.PYFUNCTYPE(ctypes.c_void_p, kind, ctypes.c_char_p)
    place = address(("PyCapsule_GetPointer", python))(capsule, signature(capsule))
    return ctypes.CFUNCTYPE(None)(place)  # of this kind of function ctypes frees the lock
