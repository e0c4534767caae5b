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
NARROW = {"haswell", "zen", "sandybridge", "nehalem", "prescott", "excavator"}
OURS = "SkylakeX"
NEEDED = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}


def choose() -> None:
    """Set OPENBLAS_CORETYPE where the processor has AVX-512 and OpenBLAS would not use it.

    Nothing is done where the user has set it, numpy is loaded already, or numpy has another
    library than its own OpenBLAS. What another machine has chosen, which started this process, is
    taken back where the processor cannot run it.
    """
    if os.environ.get(VARIABLE) == OURS and not _has_avx512():
        del os.environ[VARIABLE]
    if VARIABLE in os.environ or "numpy" in sys.modules or not _has_avx512():
        return
    if (_chosen() or "").lower() in NARROW:
        os.environ[VARIABLE] = OURS


def in_use() -> str:
    """Return what computes matrix products, such as `openblas 0.3.31 SkylakeX, 2 threads`.

    And `mkl 2026.2.0 for packed points` where it is used.
    """
    from threadpoolctl import threadpool_info

    from normbench.engine.fast import packed

    libraries = {
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}, "
        f"{pool['num_threads']} threads"
        for pool in threadpool_info()
        if pool["user_api"] == "blas" and Path(pool["filepath"]) != packed.path()
    }
    of_packed = [f"mkl {packed.version()} for packed points"] if packed.used() else []
    return "; ".join([*sorted(libraries), *of_packed])


def _has_avx512() -> bool:
    return set(processor.described("flags").split()) >= NEEDED


def _chosen() -> str | None:
    """Return the kernels that numpy's OpenBLAS chooses by itself; None where it cannot be told.

    Asked in a forked child: the choice is made once a process, when the library is loaded.
    """
    spec = importlib.util.find_spec("numpy")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent.parent / "numpy.libs"
    library = next(iter(sorted(folder.glob("libscipy_openblas64_*.so"))), None)
    if library is None:
        return None
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            name = ctypes.CDLL(str(library)).scipy_openblas_get_corename64_
            name.restype = ctypes.c_char_p
            os.write(writing, name())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read().decode(errors="replace")
    os.waitpid(child, 0)
    return told or None
