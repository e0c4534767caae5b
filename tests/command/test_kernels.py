"""The linear-algebra kernels that a comparison names."""

import subprocess
import sys

import pytest

import normbench
from normbench.record.provenance import describe_blas
from tests import forks


def test_what_ran_is_told():
    import numpy as np

    assert np.ones((2, 2)) @ np.ones(2) == pytest.approx([2, 2])
    assert "threads" in describe_blas()


@pytest.mark.slow
def test_a_comparison_runs_with_kernels_for_avx2(tmp_path):
    words = [sys.executable, "-m", "normbench", "iterations=5", "normalizer=standard", "figures=[]"]
    words.append("tracking=none")
    environment = forks.user_environment(OPENBLAS_CORETYPE="Haswell")
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = normbench.load(folder=tmp_path / "outputs").sweep.of_role("sweep")["tags.blas"].iloc[0]
    assert " Haswell," in told
    assert "SkylakeX" not in told
