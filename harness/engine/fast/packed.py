"""Points that are packed once a descent: a product then copies nothing but the weights.

A matrix product copies both factors into panels before it multiplies. The points are the same at
every step, and under few rows of weights their copy is a good part of the product. Intel's oneMKL
makes it once, keeps it, and multiplies from it: `cblas_?gemm_pack` and `cblas_?gemm_compute` of its
C interface. That is used where the package `mkl` is installed, on Intel's processors: on AMD's of
the fourth generation the same calls read packed points from memory at a fraction of what it gives,
and are slower than numpy's own library, which has no such calls. The copies take twice the memory
of the points, so large points are not packed.
"""

import ctypes
import importlib.metadata
import os
import re
from ctypes import c_double, c_float, c_int, c_size_t, c_void_p
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.values import ARRAY_SHARE, available_bytes
from normbench.engine.fast import processor, threads

Array = NDArray[Any]
PACKAGE = "mkl"
MAKER = "GenuineIntel"  # of the processors that packed points are quicker on
# What the C interface calls them: rows after rows, a factor as it is, turned, packed; the second.
BY_ROWS, AS_IS, TURNED, PACKED, SECOND = 101, 111, 112, 151, 162
LP64, ONE_THREAD, SAME_BITS = 0, 1, 2
LINE = 64  # bytes, of which the packed points' place is a multiple
SCORES_BYTES = 1 << 22  # of a block's scores: the passes over them go through the cache
POINTS_BYTES = 1 << 26  # of a block's points, which are copied in between
COPIES_BYTES = 1 << 28  # at most: of larger points the memory is worth more
FEATURES = 128  # at least: with fewer, the passes over the scores take longer than the products
STEPS = 20  # at least: packing takes as long as several


class Packed:
    """A span of points as `[1 x]`, `(p, N + 1)`, packed for the two products of a step.

    rows: of weights, about as many as there will be. with_gradient: else for the scores alone.
    """

    def __init__(self, x: Array, span: slice, rows: int, with_gradient: bool) -> None:
        self.span, self.size, self.width = span, span.stop - span.start, x.shape[1] + 1
        self._dtype, self._calls = x.dtype, _calls(x.dtype.str)
        points = np.ones((self.size, self.width), x.dtype)
        points[:, 1:] = x[span]
        self._turned = self._pack(points, TURNED, rows, self.size, self.width)
        self._as_is = (
            self._pack(points, AS_IS, rows, self.width, self.size) if with_gradient else None
        )

    def _pack(self, points: Array, turn: int, rows: int, columns: int, inner: int) -> Array:
        shape = SECOND, rows, columns, inner
        room = np.empty(self._calls.size(*shape) + LINE, np.uint8)
        packed = room[-room.ctypes.data % LINE :]
        self._calls.pack(
            BY_ROWS, SECOND, turn, *shape[1:], 1, _place(points), self.width, _place(packed)
        )
        return packed

    def scores(self, weights: Array, out: Array) -> None:
        """Write the scores under weights `(k, N + 1)`, contiguous, to out `(k, p)`."""
        shape = len(weights), self.size, self.width
        self._multiply(shape, weights, self._turned, out, False)

    def gradient(self, derivative: Array, out: Array, scratch: Array, begun: bool) -> None:
        """Write a derivative `(k, p)` times the points to out `(k, N + 1)`; begun: add it."""
        shape = len(derivative), self.width, self.size
        assert self._as_is is not None
        self._multiply(shape, derivative, self._as_is, out, begun)

    def _multiply(
        self, shape: tuple[int, int, int], first: Array, packed: Array, out: Array, add: bool
    ) -> None:
        """Write the product of a factor with the packed one to out, of shape rows, columns, inner.

        Both are contiguous, so that their inner and outer sizes are the lengths of their rows.
        """
        rows, columns, inner = shape
        # The library reads and writes memory as it is told to.
        for array, length in ((first, inner), (out, columns)):
            assert array.shape == (rows, length)
            assert array.flags.c_contiguous
            assert array.dtype == self._dtype
        self._calls.compute(
            *(BY_ROWS, AS_IS, PACKED, *shape),
            *(_place(first), inner, _place(packed), columns, add, _place(out), columns),
        )


def blocks(x: Array, spans: list[slice], rows: int, with_gradient: bool) -> tuple[Packed, ...]:
    """Return spans of points x (P, N), packed."""
    return tuple(Packed(x, span, rows, with_gradient) for span in spans)


def most(rows: int, features: int, itemsize: int) -> int:
    """Return how many points a block has at most, under so many rows of scores."""
    scores, points = SCORES_BYTES // (itemsize * rows), POINTS_BYTES // (itemsize * (features + 1))
    return max(1, min(scores, points))


def pays(x: Array, rows: int, steps: int, with_gradient: bool) -> bool:
    """Return whether points x (P, N) are packed for so many steps under so many rows of weights.

    One row is a product with a vector, which copies nothing. The copies may take a quarter of the
    free memory; of jobs side by side, which share the cores, as large a share of it.
    """
    share = ARRAY_SHARE * min(1, threads.available() / len(os.sched_getaffinity(0)))
    fits = (1 + with_gradient) * x.nbytes <= min(COPIES_BYTES, share * available_bytes())
    return rows > 1 and x.shape[1] >= FEATURES and steps >= STEPS and fits and used()


@lru_cache(maxsize=1)
def used() -> bool:
    """Return whether points are packed on this machine: oneMKL is there, its processor as well."""
    return processor.described("vendor_id") == MAKER and installed()


def installed() -> bool:
    """Return whether oneMKL is there and can be loaded."""
    return _library() is not None


def _place(array: Array) -> int:
    return int(array.ctypes.data)


class _Calls:
    """The three calls of the C interface, for one type of numbers."""

    def __init__(self, library: ctypes.CDLL, letter: str, number: Any) -> None:
        self.size = getattr(library, f"cblas_{letter}gemm_pack_get_size")
        self.size.argtypes, self.size.restype = [c_int] * 4, c_size_t
        self.pack = getattr(library, f"cblas_{letter}gemm_pack")
        self.pack.argtypes = [*[c_int] * 6, number, c_void_p, c_int, c_void_p]
        self.pack.restype = None
        self.compute = getattr(library, f"cblas_{letter}gemm_compute")
        self.compute.argtypes = [
            *[c_int] * 6,
            *[c_void_p, c_int, c_void_p, c_int],
            *[number, c_void_p, c_int],
        ]
        self.compute.restype = None


@lru_cache
def _calls(dtype: str) -> _Calls:
    library = _library()
    assert library is not None
    kinds = {np.dtype(np.float32).str: ("s", c_float), np.dtype(np.float64).str: ("d", c_double)}
    return _Calls(library, *kinds[dtype])


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL | None:
    """Return oneMKL, set to one thread a call: the threads are ours. None where it is not there."""
    if path() is None:
        return None
    try:
        library = ctypes.CDLL(str(path()))
        library.MKL_Set_Interface_Layer(LP64)
        library.MKL_Set_Threading_Layer(ONE_THREAD)
        library.MKL_CBWR_Set(SAME_BITS)  # wherever the factors lie in memory
        _Calls(library, "d", c_double)  # which old ones do not have
    except (OSError, AttributeError):
        return None
    return library


def version() -> str:
    """Return oneMKL's version, empty where it is not installed."""
    return importlib.metadata.version(PACKAGE) if path() else ""


@lru_cache(maxsize=1)
def path() -> Path | None:
    """Return where the package's library is, None where it is not installed."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = [file for file in files if re.match(r"(lib)?mkl_rt\b", file.name)]
    return Path(str(found[0].locate())).resolve() if found else None
