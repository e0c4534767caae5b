"""A job's keys: what changes them, and what does not."""

import importlib
import os
import sys
from copy import deepcopy

import pytest

from normbench.choices import options
from normbench.record import identity
from normbench.settings import RANDOM_STARTS

PLAIN = {
    "dataset": options("dataset", "gaussian"),
    "cost": options("cost", "softmax") | {"l2": 0.0},
    "normalizer": options("normalizer", "pca_sphere"),
    "optimizer": options("optimizer", "gradient_descent"),
    "model": options("model", "linear"),
}
PARAMS = {
    **{"cost": "softmax", "cost.l2": 0.0, "normalizer": "pca_sphere", "normalizer.ridge": 1e-7},
    **{"optimizer": "gradient_descent", "step_sizes": [0.1, 1.0], "iterations": 100},
    **{"start": "zeros", "start_scale": 0.1, "starts": 1, "seed": 0, "precision": "float64"},
    **{"record": ["path"], "theory": "auto", "shown_step": None, "rules.tail": 0.1},
    **{"search.critical": False, "search.width": 0.01, "study.says": "fast"},
    **{"dataset": "gaussian", "dataset.points": 100, "dataset.data_dir": "/here"},
}


def keys(params=PARAMS, experiment="gaussian-softmax", **components):
    """Return the keys of a job with other options of some components."""
    plain = deepcopy(PLAIN)
    for name, entries in components.items():
        plain[name] |= entries
    return identity.keys(experiment, params, plain)


@pytest.fixture(autouse=True)
def forgetful():
    """Read modules anew in each test, which may change them."""

    def forget():
        identity._digest_of_code.cache_clear()
        importlib.invalidate_caches()

    forget()
    yield forget
    forget()


def test_what_changes_the_numbers_makes_another_descent():
    others = [
        keys({**PARAMS, "iterations": 101}),
        keys({**PARAMS, "normalizer.ridge": 1e-6}),
        keys({**PARAMS, "cost.l2": 0.1}),
        keys({**PARAMS, "step_sizes": [0.1]}),
        keys({**PARAMS, "precision": "float32"}),
        keys({**PARAMS, "start": [0.0, 1.0, 2.0]}),
        keys({**PARAMS, "refine": False}),
        keys({**PARAMS, "dataset.points": 99}),
        keys({**PARAMS, "dataset.fit_on": "all"}),
        keys({**PARAMS, "model": "mlp"}),
        keys(experiment="other-softmax"),
    ]
    every = {keys().descent, *(other.descent for other in others)}
    assert len(every) == 1 + len(others)
    assert keys() == keys()


@pytest.mark.parametrize(
    "other",
    [
        {"record": ["contours"]},
        {"theory": "full"},
        {"search.critical": True},
        {"rules.tail": 0.2},
        {"shown_step": 1.0},
        {"dataset.folds": 5, "dataset.repeats": 2},
    ],
)
def test_what_is_asked_beside_the_numbers_is_apart_from_them(other):
    first, second = keys(), keys({**PARAMS, **other})
    assert first.descent == second.descent
    assert first.job != second.job
    assert first.key[: identity.KEY_PART] == second.key[: identity.KEY_PART]
    assert first.key != second.key


@pytest.mark.parametrize(
    "other",
    [
        {"dataset.data_dir": "/there"},
        {"study.says": "slow"},
        {"seed": 1, "start_scale": 0.2},
        {"search.width": 0.1},
    ],
)
def test_what_changes_nothing_is_no_part_of_them(other):
    assert keys() == keys({**PARAMS, **other})


def test_a_seed_counts_where_it_draws():
    for start in RANDOM_STARTS:
        drawn = {**PARAMS, "start": start}
        assert keys(drawn) != keys({**drawn, "seed": 1})
    split = {**PARAMS, "dataset.points": None}
    seeds = [split | {"dataset.split_seed": seed} for seed in (0, 1)]
    assert keys(seeds[0]) == keys(seeds[1])
    for drawing in ({"dataset.test_fraction": 0.2}, {"dataset.folds": 3}):
        assert keys(seeds[0] | drawing) != keys(seeds[1] | drawing)


def test_a_file_of_data_counts_by_its_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    of_file = {**PARAMS, "dataset.path": "a.csv"}
    for name, text in (("a.csv", "1,2"), ("b.csv", "1,2"), ("c.csv", "1,3")):
        (tmp_path / name).write_text(text)
    assert keys(of_file) == keys({**of_file, "dataset.path": str(tmp_path / "b.csv")})
    known = keys(of_file)
    assert known != keys({**of_file, "dataset.path": "c.csv"})
    (tmp_path / "a.csv").write_text("1,4")
    os.utime("a.csv", (1, 1))
    assert keys(of_file) != known


def test_what_is_recorded_covers_what_is_asked_of_less_and_of_no_other():
    recorded = {key: str(value) for key, value in PARAMS.items()}
    assert identity.covers(recorded, PARAMS)
    assert identity.covers(recorded, {**PARAMS, "record": []})
    assert identity.covers({**recorded, "record": "['fit', 'path']"}, PARAMS)
    assert not identity.covers(recorded, {**PARAMS, "record": ["path", "fit"]})
    assert not identity.covers(recorded, {**PARAMS, "theory": "full"})
    judging = [
        identity.judging_settings(params)
        for params in (recorded, PARAMS, {**PARAMS, "rules.tail": 0.2})
    ]
    assert judging[0] == judging[1] != judging[2]


def test_schemes_inside_others_count_with_their_settings_and_options():
    chain = options("normalizer", "chain")
    every = [
        keys(normalizer=chain | {"schemes": schemes}).descent
        for schemes in (
            ["standard", "pca"],
            ["standard", "pca_sphere"],
            ["standard", {"pca_sphere": {"ridge": 0.1}}],
        )
    ]
    assert len(set(every)) == 3
    preconditioned = options("optimizer", "preconditioned")
    scheme = {"pca_sphere": {"ridge": 0}}
    assert keys(optimizer=preconditioned) != keys(optimizer=preconditioned | {"scheme": scheme})


def test_own_components_count_by_their_files_and_scikit_learns_by_its_version(monkeypatch):
    own, theirs = keys(), keys(normalizer=options("normalizer", "standard"))
    monkeypatch.setattr(identity, "version", lambda name: "99")
    identity._digest_of_code.cache_clear()
    assert keys() == own
    assert keys(normalizer=options("normalizer", "standard")) != theirs
    monkeypatch.setattr(identity, "NUMBERS", identity.NUMBERS + 1)
    assert keys() != own


SOURCE = "import numpy as np\n\n\ndef own(scores, targets):\n    return 0 * scores[:, 0, 0]\n"


@pytest.mark.parametrize(
    ("file", "is_part"),
    [
        ("a_users_cost.py", True),
        ("a_users_helper.py", True),
        ("a_users_folder/helper.py", True),
        ("notes.txt", False),
        ("outputs/checkpoints/x/y.py", False),
    ],
)
def test_code_of_a_user_counts_with_the_modules_beside_it(
    tmp_path, monkeypatch, forgetful, file, is_part
):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_users_cost.py").write_text(SOURCE)
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    every = []
    for remark in ("# one\n", "# two\n"):
        (tmp_path / file).write_text(SOURCE + remark)
        forgetful()
        every.append(keys(cost={"_target_": "a_users_cost.own"}).descent)
    sys.modules.pop("a_users_cost", None)
    assert (every[0] != every[1]) == is_part


def test_a_component_of_an_installed_package_counts_with_the_package(
    tmp_path, monkeypatch, forgetful
):
    folder = tmp_path / "site-packages" / "mypk"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(folder.parent)
    (folder / "__init__.py").touch()
    (folder / "a.py").write_text(f"from mypk.b import SCALE\n{SOURCE}")
    every = []
    for scale in (1, 3):
        (folder / "b.py").write_text(f"SCALE = {scale}\n")
        forgetful()
        every.append(keys(cost={"_target_": "mypk.a.own"}).descent)
    sys.modules.pop("mypk", None)
    assert every[0] != every[1]
