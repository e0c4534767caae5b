"""Fits of schemes of many features beside scikit-learn's PCA, and of few components beside all.

python -m tests.benchmarks.fit_rows SIDE FEATURES     one fit: its seconds and its memory, as JSON
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from normbench.normalizers import PCARotation, PCASphere
from tests.benchmarks.turns import in_turns, ratio

POINTS, WANTED = 10_000, 50
FEATURES = (1000, 2000, 5000)
LARGEST = 10_000  # features: minutes a fit, so each side fits once
ERROR = 1e-9  # relative, of the largest variances
SIDES: dict[str, Callable[[], Any]] = {
    "ours": PCASphere,
    "theirs": lambda: PCA(svd_solver="covariance_eigh"),
}
STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")
RESET_PEAK = "5"  # what is written to CLEAR


def fit_rows(turns: int, only: str) -> Iterator[dict[str, Any]]:
    """Seconds of the processor of our fit over scikit-learn's, by the number of features."""
    few = partial(PCARotation, components=WANTED)
    # With the relative error of the other side's largest variances.
    sides: dict[str, tuple[Callable[[], Any], Callable[[], Any], float]] = {
        "pca_sphere over PCA(covariance_eigh)": (*SIDES.values(), ERROR),
        f"pca of {WANTED} components over PCA(randomized)": (
            few,
            lambda: PCA(WANTED, svd_solver="randomized", random_state=0),
            0.2,
        ),
        f"pca of {WANTED} components over all": (few, PCARotation, ERROR),
    }
    for words, (ours, theirs, error) in sides.items():
        for features in FEATURES:
            name = f"fit of {words}, {POINTS:,} x {features:,}"
            if only not in name:
                continue
            x = _points(features)
            fits = {"ours": partial(_fit, ours, x), "theirs": partial(_fit, theirs, x)}
            found = in_turns(fits, max(1, turns // 3), time.process_time)
            one, other = (fit() for fit in fits.values())
            if np.abs(one / other - 1).max() > error:
                raise SystemExit(f"{name}: other variances")
            yield {"name": name, "ratio": ratio(found["ours"], found["theirs"])}
    name = f"fit of pca_sphere over PCA(covariance_eigh), {POINTS:,} x {LARGEST:,}"
    if only in name:
        yield from compare_apart(name, LARGEST)


def compare_apart(name: str, features: int) -> Iterator[dict[str, Any]]:
    """Yield seconds and memory of one fit of ours over one of theirs, a process each.

    The memory is what a fit takes beside the points, over their bytes.
    """
    ours, theirs = (
        json.loads(
            subprocess.run(
                [sys.executable, "-m", "tests.benchmarks.fit_rows", side, str(features)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for side in SIDES
    )
    if not np.allclose(ours["variances"], theirs["variances"], rtol=ERROR, atol=0):
        raise SystemExit(f"{name}: other variances")
    yield {"name": name, "ratio": ours["seconds"] / theirs["seconds"]}
    for side, fit in {"ours": ours, "theirs": theirs}.items():
        yield {"name": f"memory of that fit over its points, {side}", "ratio": fit["memory"]}


def fit_once(side: str, features: int) -> dict[str, Any]:
    """Return a fit's seconds of the clock, its memory over that of the points, and variances."""
    x, scheme = _points(features), SIDES[side]
    before = _kilobytes("VmRSS")
    CLEAR.write_text(RESET_PEAK)
    tick = time.perf_counter()
    variances = _fit(scheme, x)
    seconds = time.perf_counter() - tick
    memory = (_kilobytes("VmHWM") - before) * 1024 / x.nbytes
    return {"seconds": seconds, "memory": memory, "variances": variances.tolist()}


def _kilobytes(field: str) -> int:
    """Return a size of this process: `VmRSS` now, `VmHWM` the largest since it was reset."""
    return int(STATUS.read_text().split(f"{field}:")[1].split()[0])


def _points(features: int) -> Any:
    x = np.random.default_rng(0).standard_normal((POINTS, features))
    x *= np.geomspace(1, 30, features)
    return x


def _fit(scheme: Callable[[], Any], x: Any) -> Any:
    """Fit, and return the largest variances, over P."""
    fitted = scheme().fit(x)
    if isinstance(fitted, PCA):
        return fitted.explained_variance_[:WANTED] * (len(x) - 1) / len(x)
    return fitted.eigenvalues_[:WANTED]


if __name__ == "__main__":
    print(json.dumps(fit_once(sys.argv[1], int(sys.argv[2]))))
