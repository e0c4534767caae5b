"""Choose OpenBLAS's fastest kernels before numpy is imported; report which ran.

OpenBLAS knows processors by their model, and takes AVX2 kernels on some that have AVX-512. The
variable OPENBLAS_CORETYPE overrules it, if it is set before numpy is imported. Kernels that the
processor cannot run end the process, so they are chosen only where its flags show all they need.
"""

import ctypes
import importlib.util
import os
import sys
from pathlib import Path

from normbench.engine.fast import processor

VARIABLE = "OPENBLAS_CORETYPE"
AVX2_KERNELS = {"haswell", "zen", "sandybridge", "nehalem", "prescott", "excavator"}
AVX512_KERNELS = "SkylakeX"
AVX512_FLAGS = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}


def choose() -> None:
    """Set OPENBLAS_CORETYPE where the processor has AVX-512 and OpenBLAS would not use it.

    Nothing is changed where the user has set it, numpy is loaded already, or numpy has another
    library than its own OpenBLAS. A choice inherited from another machine is removed where the
    processor cannot run it.
    """
    # A task on a cluster inherits the environment of the machine that submitted it.
    if os.environ.get(VARIABLE) == AVX512_KERNELS and not _has_avx512():
        del os.environ[VARIABLE]
    if VARIABLE in os.environ or "numpy" in sys.modules or not _has_avx512():
        return
    if (_find_default_kernels() or "").lower() in AVX2_KERNELS:
        os.environ[VARIABLE] = AVX512_KERNELS


def describe_blas() -> str:
    """Return the libraries of matrix products, such as `openblas 0.3.31 SkylakeX, 2 threads`.

    Where MKL multiplies packed points, `mkl 2026.2.0 for packed points` is added.
    """
    from threadpoolctl import threadpool_info

    from normbench.engine.fast import packed

    libraries = {
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}, "
        f"{pool['num_threads']} threads"
        for pool in threadpool_info()
        # The library of packed points is described apart.
        if pool["user_api"] == "blas" and Path(pool["filepath"]) != packed.find_library()
    }
    of_packed = [f"mkl {packed.version()} for packed points"] if packed.is_used() else []
    return "; ".join([*sorted(libraries), *of_packed])


def _has_avx512() -> bool:
    """Return whether the processor has the instructions that OpenBLAS's AVX-512 kernels use."""
    return set(processor.read_field("flags").split()) >= AVX512_FLAGS


def _find_default_kernels() -> str | None:
    """Return the kernels that numpy's OpenBLAS chooses by default, such as `Haswell`.

    None where they are unknown. A forked child loads the library, because OpenBLAS chooses once in
    a process, when it is loaded.
    """
    spec = importlib.util.find_spec("numpy")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent.parent / "numpy.libs"  # where numpy's wheels keep libraries
    library = next(iter(sorted(folder.glob("libscipy_openblas64_*.so"))), None)
    if library is None:
        return None
    reading, writing = os.pipe()  # file descriptors of the two ends
    child = os.fork()
    if child == 0:
        try:
            name = ctypes.CDLL(str(library)).scipy_openblas_get_corename64_
            name.restype = ctypes.c_char_p
            os.write(writing, name())
        finally:
            os._exit(0)  # without the parent's cleanup
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        core_name = pipe.read().decode(errors="replace")
    os.waitpid(child, 0)
    return core_name or None
