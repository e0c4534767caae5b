"""Pack the points once per descent, so that a product copies nothing but the weights.

A matrix product copies both factors into panels before it multiplies. The points are the same at
every step, and with few rows of weights their copy is a large part of the product. Intel's oneMKL
copies them once and multiplies from the copy: `cblas_?gemm_pack` and `cblas_?gemm_compute` of its C
interface. That is used where the package `mkl` is installed, on Intel's processors: on AMD's of the
fourth generation the same calls read packed points from memory at a fraction of its bandwidth, and
are slower than numpy's own library, which has no such calls. The copies take twice the memory of
the points, so large points are not packed.
"""

import ctypes
import importlib.metadata
import re
from ctypes import c_double, c_float, c_int, c_size_t, c_void_p
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.values import ARRAY_SHARE, available_bytes, available_cores
from normbench.engine.fast import processor, threads

Array = NDArray[Any]
PACKAGE = "mkl"
VENDOR = "GenuineIntel"  # of the processors that packed points are quicker on
# Constants of the C interface: CblasRowMajor; of a factor CblasNoTrans, CblasTrans and CblasPacked;
# and CblasBMatrix, the second factor.
BY_ROWS, AS_IS, TRANSPOSED, PACKED, SECOND = 101, 111, 112, 151, 162
# MKL_INTERFACE_LP64, MKL_THREADING_SEQUENTIAL and MKL_CBWR_AUTO.
LP64, ONE_THREAD, SAME_BITS = 0, 1, 2
CACHE_LINE_BYTES = 64  # bytes: the address of packed points is a multiple of them
SCORES_BYTES = 1 << 22  # of a block's scores: the passes over them go through the cache
POINTS_BYTES = 1 << 26  # of a block's points, which are copied in between
MAX_COPIES_BYTES = 1 << 28  # at most: of larger points the memory is worth more
MIN_FEATURES = 128  # at least: with fewer, the passes over the scores take longer than the products
MIN_STEPS = 20  # at least: packing takes as long as several


class Packed:
    """A span of points as `[1 x]`, `(p, N + 1)`, packed for the two products of a step.

    x: all points (P, N). span: those that are packed. rows: the number of rows of weights that will
    multiply the points; an estimate suffices. with_gradient: False packs for the scores alone.
    """

    def __init__(self, x: Array, span: slice, rows: int, with_gradient: bool) -> None:
        self.span, self.point_count, self.weights_per_score = (
            span,
            span.stop - span.start,
            x.shape[1] + 1,
        )
        self._dtype, self._calls = x.dtype, _find_calls(x.dtype.str)
        # Weights are multiplied with the transposed points, derivatives with the points as they
        # are: each product has a packed copy of its own.
        points = np.ones((self.point_count, self.weights_per_score), x.dtype)
        points[:, 1:] = x[span]
        self._transposed = self._pack(
            points, TRANSPOSED, rows, self.point_count, self.weights_per_score
        )
        self._as_is = (
            self._pack(points, AS_IS, rows, self.weights_per_score, self.point_count)
            if with_gradient
            else None
        )

    def _pack(self, points: Array, orientation: int, rows: int, columns: int, inner: int) -> Array:
        """Return the points, packed, at an address that is a multiple of a cache line.

        Args:
            points: `[1 x]`, `(p, N + 1)`.
            orientation: `TRANSPOSED` to be multiplied with weights, `AS_IS` with derivatives.
            rows: The number of rows of the product that the points are packed for.
            columns: The number of columns of that product.
            inner: The length that the product sums over.

        Returns:
            Bytes in the library's own format.
        """
        shape = SECOND, rows, columns, inner
        # A cache line to spare, for the bytes before the first address that is a multiple.
        buffer = np.empty(self._calls.size(*shape) + CACHE_LINE_BYTES, np.uint8)
        packed = buffer[-buffer.ctypes.data % CACHE_LINE_BYTES :]
        # layout, factor, orientation, m, n, k, scale, source and its row length, destination.
        self._calls.pack(
            BY_ROWS,
            SECOND,
            orientation,
            *shape[1:],
            1,
            _address(points),
            self.weights_per_score,
            _address(packed),
        )
        return packed

    def scores(self, weights: Array, out: Array) -> None:
        """Write the scores of the points.

        Args:
            weights: `(k, N + 1)`, bias first, contiguous.
            out: `(k, p)`, contiguous, which is overwritten.
        """
        shape = len(weights), self.point_count, self.weights_per_score
        self._multiply(shape, weights, self._transposed, out, False)

    def gradient(self, derivative: Array, out: Array, scratch: Array, has_begun: bool) -> None:
        """Write, or add, a derivative times the points.

        Args:
            derivative: With respect to the scores, `(k, p)`, contiguous.
            out: `(k, N + 1)`, contiguous.
            scratch: Not used: the product adds to `out` itself.
            has_begun: Whether the product is added to `out`; otherwise it replaces it.
        """
        shape = len(derivative), self.weights_per_score, self.point_count
        assert self._as_is is not None
        self._multiply(shape, derivative, self._as_is, out, has_begun)

    def _multiply(
        self, shape: tuple[int, int, int], first: Array, packed: Array, out: Array, add: bool
    ) -> None:
        """Write the product of `first` with packed points to `out`, or add it.

        Args:
            shape: The product's rows and columns, and the inner length that it sums over.
            first: `(rows, inner)`, contiguous.
            packed: From `_pack`.
            out: `(rows, columns)`, contiguous.
            add: Whether the product is added to `out`; otherwise it replaces it.
        """
        rows, columns, inner = shape
        # The library gets addresses alone, and checks neither shapes nor types.
        for array, length in ((first, inner), (out, columns)):
            assert array.shape == (rows, length)
            assert array.flags.c_contiguous
            assert array.dtype == self._dtype
        # layout, orientations of both factors, m, n, k, the factors, `add` and the product; each
        # array is followed by the length of its rows. `add`, 0 or 1, multiplies `out` beforehand.
        self._calls.compute(
            *(BY_ROWS, AS_IS, PACKED, *shape),
            *(_address(first), inner, _address(packed), columns, add, _address(out), columns),
        )


def blocks(x: Array, spans: list[slice], rows: int, with_gradient: bool) -> tuple[Packed, ...]:
    """Return spans of points, packed.

    Args:
        x: Points (P, N).
        spans: The spans of the points, one a block.
        rows: The number of rows of weights, approximately: packing depends on it.
        with_gradient: False packs for the scores alone, in half the memory.

    Returns:
        A packed copy of each span.
    """
    return tuple(Packed(x, span, rows, with_gradient) for span in spans)


def points_per_block(rows: int, features: int, itemsize: int) -> int:
    """Return the largest number of points of a block.

    Args:
        rows: The number of rows of scores.
        features: The number of features N.
        itemsize: Bytes of a number.

    Returns:
        As many as keep the block's scores and its points within their shares of the cache; 1 at
        least.
    """
    scores, points = SCORES_BYTES // (itemsize * rows), POINTS_BYTES // (itemsize * (features + 1))
    return max(1, min(scores, points))


def pays_off(x: Array, rows: int, steps: int, with_gradient: bool) -> bool:
    """Return whether packing points saves time.

    One row is a product with a vector, which copies nothing. The copies may take a quarter of the
    free memory, and jobs side by side, which share the cores, that quarter's share.

    Args:
        x: Points (P, N).
        rows: The number of rows of weights.
        steps: The number of steps that the packed points are used for, approximately.
        with_gradient: Whether both products of a step are packed for.

    Returns:
        True where the library packs, the copies fit, and there are enough rows, features and steps.
    """
    share = ARRAY_SHARE * min(1, threads.available_threads() / available_cores())
    # One copy of the points for each product.
    fits = (1 + with_gradient) * x.nbytes <= min(MAX_COPIES_BYTES, share * available_bytes())
    return rows > 1 and x.shape[1] >= MIN_FEATURES and steps >= MIN_STEPS and fits and is_used()


@lru_cache(maxsize=1)
def is_used() -> bool:
    """Return whether this machine packs points: oneMKL is installed on an Intel processor."""
    return processor.read_field("vendor_id") == VENDOR and is_installed()


def is_installed() -> bool:
    """Return whether oneMKL is installed and can be loaded."""
    return _library() is not None


def _address(array: Array) -> int:
    """Return the address of an array's memory."""
    return int(array.ctypes.data)


class _GemmCalls:
    """The three calls of the C interface, for one floating-point type.

    size: returns the bytes of a packed factor. pack: packs a factor. compute: multiplies by it.
    letter: the letter of the type in the calls' names, `s` for float32, `d` for float64. number:
    the same type, as ctypes names it.
    """

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
def _find_calls(dtype: str) -> _GemmCalls:
    """Return the calls for a floating-point type, by its numpy name such as `<f8`."""
    library = _library()
    assert library is not None
    letter_and_type = {
        np.dtype(np.float32).str: ("s", c_float),
        np.dtype(np.float64).str: ("d", c_double),
    }
    return _GemmCalls(library, *letter_and_type[dtype])


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL | None:
    """Return oneMKL, set to one thread a call, None where it cannot be loaded."""
    if find_library() is None:
        return None
    try:
        library = ctypes.CDLL(str(find_library()))
        library.MKL_Set_Interface_Layer(LP64)
        library.MKL_Set_Threading_Layer(ONE_THREAD)
        library.MKL_CBWR_Set(SAME_BITS)  # wherever the factors lie in memory
        _GemmCalls(library, "d", c_double)  # raises for an old version, which lacks these calls
    except (OSError, AttributeError):
        return None
    return library


def version() -> str:
    """Return oneMKL's version, empty where it is not installed."""
    return importlib.metadata.version(PACKAGE) if find_library() else ""


@lru_cache(maxsize=1)
def find_library() -> Path | None:
    """Return the path of the package's library, None where it is not installed."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    libraries = [file for file in files if re.match(r"(lib)?mkl_rt\b", file.name)]
    return Path(str(libraries[0].locate())).resolve() if libraries else None
