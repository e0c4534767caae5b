"""The choice of linear-algebra kernels."""

import os
import subprocess
import sys

import pytest

from normbench.engine.fast import kernels
from tests.conftest import ROOT


def test_what_ran_is_told():
    import numpy as np

    assert np.ones((2, 2)) @ np.ones(2) == pytest.approx([2, 2])
    assert "threads" in kernels.in_use()


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
    monkeypatch.setattr(kernels, "_chosen", lambda: chosen)
    kernels.choose()
    assert os.environ.get(kernels.VARIABLE) == after


def test_the_user_has_the_last_word(fresh, monkeypatch):
    monkeypatch.setattr(kernels, "_chosen", lambda: "Haswell")
    monkeypatch.setenv(kernels.VARIABLE, "Zen")
    kernels.choose()
    assert os.environ[kernels.VARIABLE] == "Zen"


def test_without_avx512_nothing_is_chosen(fresh, monkeypatch):
    monkeypatch.setattr(kernels, "_has_avx512", lambda: False)
    monkeypatch.setattr(kernels, "_chosen", lambda: "Haswell")
    kernels.choose()
    assert kernels.VARIABLE not in os.environ


def test_openblas_tells_its_choice_without_being_loaded():
    code = (
        "import sys; from normbench.engine.fast import kernels; name = kernels._chosen()\n"
        "assert 'numpy' not in sys.modules\n"
        "from threadpoolctl import threadpool_info; import numpy\n"
        "names = {p.get('architecture') for p in threadpool_info()}\n"
        "assert name is None or name in names, (name, names)"
    )
    environment = {key: value for key, value in os.environ.items() if key != kernels.VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
