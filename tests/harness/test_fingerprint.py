"""A job's identity: what changes it, and what does not."""

import shutil

import pytest

from normbench import costs, optimizers
from normbench.choices import chain
from normbench.normalizers import PCASphere
from normbench.recording import identity as fingerprint
from tests.conftest import ROOT

PARAMS = {"iterations": 100, "normalizer.ridge": 1e-7, "data_dir": "/here"}


def identity(params=PARAMS, data="abc", cost=costs.softmax, normalizer=None):
    rule = optimizers.gradient_descent()
    return fingerprint.identity(params, data, (cost, normalizer or PCASphere(), rule))


def test_choices_data_and_code_make_the_identity():
    assert identity() == identity(normalizer=PCASphere())
    others = [
        identity({**PARAMS, "iterations": 101}),
        identity({**PARAMS, "normalizer.ridge": 1e-6}),
        identity(data="abd"),
        identity(cost=costs.multiclass_softmax),
    ]
    assert len({identity(), *others}) == 1 + len(others)


def test_where_the_data_lies_is_no_part_of_it():
    assert identity() == identity({**PARAMS, "data_dir": "/there", "dataset.path": "x.csv"})


def test_every_link_of_a_chain_and_its_settings_make_the_identity():
    def chained(*schemes):
        return identity(normalizer=chain(schemes))

    whole = chained({"pca": {"components": 5}}, "standard")
    assert whole == chained({"pca": {"components": 5}}, "standard")
    assert whole != chained({"pca": {"components": 4}}, "standard")
    members = fingerprint._members(chain(["pca_sphere", "minmax"]))
    assert [fingerprint._module_of(member).split(".")[-1] for member in members] == [
        "whitening",
        "_data",
    ]


@pytest.fixture
def changed(tmp_path, monkeypatch):
    """Return a function that changes a file of a copy and gives the identity there."""
    for room in ("costs", "datasets", "harness", "optimizers", "results"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / room, tmp_path / room, ignore=ignore)
    found = fingerprint._file

    def copied(module):
        file = found(module)
        return file and tmp_path / file.resolve().relative_to(ROOT)

    monkeypatch.setattr(fingerprint, "_file", copied)

    def change(name, before, after):
        file = tmp_path / name
        assert before in file.read_text(), name
        file.write_text(file.read_text().replace(before, after))
        fingerprint.code_of.cache_clear()
        return identity()

    yield change
    fingerprint.code_of.cache_clear()


def test_a_formula_changes_the_identity(changed):
    fingerprint.code_of.cache_clear()
    before = identity()
    assert changed("costs/softmax.py", "anp.logaddexp(0.0", "2 * anp.logaddexp(0.0") != before


@pytest.mark.parametrize(
    "name",
    ["harness/engine/descent.py", "harness/engine/problem.py", "harness/normalizers/spectrum.py"],
)
def test_the_engine_and_the_scheme_change_the_identity(changed, name):
    fingerprint.code_of.cache_clear()
    before = identity()
    assert changed(name, "import numpy as np\n", "import numpy as np\n\nEXTRA = 1\n") != before


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("costs/softmax.py", "import autograd", "# a remark\nimport autograd"),
        ("costs/softmax.py", '"""The two-class softmax cost', '"""Of two classes the softmax cost'),
        ("costs/perceptron.py", "import autograd", "EXTRA = 1\nimport autograd"),
        ("optimizers/adam.py", "import numpy as np\n", "import numpy as np\n\nEXTRA = 1\n"),
        ("results/tables.py", "import pandas as pd\n", "import pandas as pd\n\nEXTRA = 1\n"),
        ("harness/command/progress.py", "import time\n", "import time\n\nEXTRA = 1\n"),
    ],
)
def test_remarks_and_other_rooms_do_not(changed, name, before, after):
    fingerprint.code_of.cache_clear()
    known = identity()
    assert changed(name, before, after) == known
