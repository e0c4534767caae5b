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


@pytest.fixture
def fresh(monkeypatch):
    """A process as it is before numpy loads, on a processor with AVX-512."""
    monkeypatch.setenv(kernels.VARIABLE, "")  # so that it is put back, whatever `choose` sets
    monkeypatch.delenv(kernels.VARIABLE)
    monkeypatch.delitem(sys.modules, "numpy")
    monkeypatch.setattr(kernels, "_has_avx512", lambda: True)


@pytest.mark.parametrize(
    ("chosen", "after"), [("Haswell", "SkylakeX"), ("Zen", "SkylakeX"), ("SapphireRapids", None)]
)
def test_narrow_kernels_are_replaced_and_wide_ones_kept(fresh, monkeypatch, chosen, after):
    monkeypatch.setattr(kernels, "_find_default_kernels", lambda: chosen)
    kernels.choose()
    assert os.environ.get(kernels.VARIABLE) == after


def test_the_user_has_the_last_word(fresh, monkeypatch):
    monkeypatch.setattr(kernels, "_find_default_kernels", lambda: "Haswell")
    monkeypatch.setenv(kernels.VARIABLE, "Zen")
    kernels.choose()
    assert os.environ[kernels.VARIABLE] == "Zen"


def test_without_avx512_nothing_is_chosen(fresh, monkeypatch):
    monkeypatch.setattr(kernels, "_has_avx512", lambda: False)
    monkeypatch.setattr(kernels, "_find_default_kernels", lambda: "Haswell")
    kernels.choose()
    assert kernels.VARIABLE not in os.environ


@pytest.mark.parametrize(("can", "after"), [(True, "SkylakeX"), (False, None)])
def test_another_machines_choice_is_taken_back_where_it_cannot_run(fresh, monkeypatch, can, after):
    monkeypatch.setattr(kernels, "_has_avx512", lambda: can)
    monkeypatch.setenv(kernels.VARIABLE, "SkylakeX")
    kernels.choose()
    assert os.environ.get(kernels.VARIABLE) == after


FLAGS = "fpu sse2 avx2 fma avx512f avx512cd avx512bw avx512dq avx512vl"
RAN = (
    "import sys; from pathlib import Path; from normbench.command.startup import kernels; "
    "from normbench.engine.fast import processor\n"
    "processor.CPUINFO = Path(sys.argv[1]); kernels._find_default_kernels = lambda: 'Haswell'\n"
    "kernels.choose(); import os; print(os.environ.get(kernels.VARIABLE))"
)


@pytest.mark.parametrize("lacking", [*sorted(kernels.AVX512_FLAGS), "everything", "the file"])
def test_a_processor_that_lacks_a_part_of_avx512_is_left_as_it_is(tmp_path, lacking):
    file = tmp_path / "cpuinfo"
    if lacking != "the file":
        left = [flag for flag in FLAGS.split() if lacking not in (flag, "everything")]
        file.write_text(f"model name : any\nflags : {' '.join(left)}\n")
    environment = {key: value for key, value in os.environ.items() if key != kernels.VARIABLE}
    words = [sys.executable, "-c", RAN, str(file)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["None"], done.stderr
    file.write_text(f"flags : {FLAGS}\n")  # and what has all of it is not
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["SkylakeX"], done.stderr


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
