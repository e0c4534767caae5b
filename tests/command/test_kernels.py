"""The linear-algebra kernels that a comparison names."""

import subprocess
import sys

import pytest

from normbench.recording.store.provenance import describe_blas
from tests import forks


def test_what_ran_is_told():
    import numpy as np

    assert np.ones((2, 2)) @ np.ones(2) == pytest.approx([2, 2])
    assert "threads" in describe_blas()


@pytest.mark.slow
def test_a_comparison_runs_with_kernels_for_avx2(with_store, tmp_path):
    from mlflow import MlflowClient

    words = [sys.executable, "-m", "normbench", "iterations=5", "normalizer=standard", "figures=[]"]
    environment = forks.user_environment(OPENBLAS_CORETYPE="Haswell")
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    found = client.search_runs(["1"], "tags.role = 'sweep'")
    told = found[0].data.tags["blas"]
    assert " Haswell," in told
    assert "SkylakeX" not in told
