"""The choice of linear-algebra kernels."""

import os
import subprocess
import sys

import pytest

from normbench.command.startup import kernels
from tests import forks
from tests.conftest import ROOT


def test_what_ran_is_told():
    import numpy as np

    assert np.ones((2, 2)) @ np.ones(2) == pytest.approx([2, 2])
    assert "threads" in kernels.describe_blas()


ALL = "fpu sse2 avx2 fma avx512f avx512cd avx512bw avx512dq avx512vl"
RAN = (
    "import sys; from pathlib import Path; from normbench.command.startup import kernels; "
    "from normbench.engine.fast import processor\n"
    "processor.CPUINFO = Path(sys.argv[1]); kernels._find_default_kernels = lambda: sys.argv[2]\n"
    "kernels.choose(); import os; print(os.environ.get(kernels.VARIABLE))"
)


@pytest.mark.parametrize(
    ("flags", "default", "chosen", "after"),
    [
        (ALL, "Haswell", None, "SkylakeX"),
        (ALL, "Zen", None, "SkylakeX"),
        (ALL, "SapphireRapids", None, None),
        (ALL, "Haswell", "Zen", "Zen"),
        (ALL, "Haswell", "SkylakeX", "SkylakeX"),
        (ALL.replace(" avx512vl", ""), "Haswell", None, None),
        (ALL.replace(" avx512f", ""), "Haswell", "SkylakeX", None),
        (None, "Haswell", None, None),
    ],
)
def test_wide_kernels_are_taken_where_the_processor_has_all_of_avx512(
    tmp_path, flags, default, chosen, after
):
    """Unless a user has chosen; another machine's choice is taken back where it cannot run."""
    file = tmp_path / "cpuinfo"
    if flags:
        file.write_text(f"model name : any\nflags : {flags}\n")
    others = {key: value for key, value in os.environ.items() if key != kernels.VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", RAN, str(file), default],
        env=others | ({kernels.VARIABLE: chosen} if chosen else {}),
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [str(after)], done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Haswell", "Zen"])
def test_a_comparison_runs_with_kernels_for_avx2(with_store, tmp_path, name):
    from mlflow import MlflowClient

    words = [sys.executable, "-m", "normbench", "iterations=5"]
    environment = forks.user_environment(**{kernels.VARIABLE: name})
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    found = client.search_runs(["1"], "tags.role = 'sweep'")
    told = found[0].data.tags["blas"]
    assert f" {name}," in told or " Haswell," in told  # a library may have one name for both
    assert "SkylakeX" not in told


def test_openblas_tells_its_choice_without_being_loaded():
    code = (
        "import sys; from normbench.command.startup import kernels; name = "
        "kernels._find_default_kernels()\nassert 'numpy' not in sys.modules\nfrom threadpoolctl "
        "import threadpool_info; import numpy\nnames = {p.get('architecture') for p in "
        "threadpool_info()}\nassert name is None or name in names, (name, names)"
    )
    environment = {key: value for key, value in os.environ.items() if key != kernels.VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
