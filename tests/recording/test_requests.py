"""What a request is known by: settings, choices, files and code."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from normbench.recording.reuse import identity, request

PLAIN = {
    "dataset": {"_target_": "normbench.datasets.gaussian.gaussian"},
    "packages": [],
    "iterations": 5,
    **dict.fromkeys(request.UNRELATED_SETTINGS, None),
}


def test_a_request_is_known_by_its_settings_its_choices_and_the_code(monkeypatch):
    monkeypatch.setattr(request, "_code", lambda: ["code"])
    known = request.digest(PLAIN, {"cost": "softmax"})
    assert request.digest(dict(reversed(PLAIN.items())), {"cost": "softmax"}) == known
    assert len(known) == 64
    for word in request.UNRELATED_SETTINGS:
        if word != "packages":
            assert request.digest(PLAIN | {word: "other"}, {"cost": "softmax"}) == known
    others = [
        request.digest(PLAIN | {"iterations": 6}, {"cost": "softmax"}),
        request.digest(PLAIN, {"cost": "perceptron"}),
    ]
    monkeypatch.setattr(request, "_code", lambda: ["another"])
    others.append(request.digest(PLAIN, {"cost": "softmax"}))
    assert len({known, *others}) == 4


@pytest.mark.parametrize(
    ("changed", "is_known"),
    [
        ({}, True),
        ({"dataset": {"_target_": "normbench.datasets.bundled.iris"}}, True),
        ({"dataset": {"_target_": "normbench.datasets.files.csv"}}, False),
        ({"dataset": {"_target_": "mine.gaussian"}}, False),
        ({"dataset": {}}, False),
        ({"packages": ["mine"]}, False),
    ],
)
def test_a_request_of_files_or_of_a_users_code_has_no_digest(monkeypatch, changed, is_known):
    monkeypatch.setattr(request, "_code", lambda: [])
    assert (request.digest(PLAIN | changed, {}) is not None) == is_known


def test_the_code_of_a_request_is_that_of_every_room_and_its_options(tmp_path, monkeypatch):
    asked = []

    def find(name):
        asked.append(name)
        return SimpleNamespace(origin=str(tmp_path / name / "__init__.py"))

    def digest():
        return request._code.__wrapped__()

    monkeypatch.setattr(request, "find_spec", find)
    for name in ("normbench", "normbench.costs"):
        (tmp_path / name / "inside").mkdir(parents=True)
        (tmp_path / name / "__init__.py").write_text("1")
    known = [digest()]
    assert asked == [f"normbench.{room}" if room else "normbench" for room in request.CODE_ROOMS]
    assert len(known[0]) == 2 + len(request.REQUEST_LIBRARIES)
    (tmp_path / "normbench.costs" / "words.txt").write_text("1")
    assert digest() == known[0]
    for file in ("a.py", "inside/b.yaml", "inside/c.py"):
        (tmp_path / "normbench.costs" / file).write_text("1")
        known.append(digest())
    (tmp_path / "normbench" / "__init__.py").write_text("2")
    known.append(digest())
    assert len({code[0] for code in known}) == 5


@pytest.mark.parametrize(
    ("params", "is_judged"),
    [
        ({"record": "['path']", "iterations": "5"}, True),
        ({"record": "['points']", "iterations": "0"}, False),
        ({"record": "['points']", "iterations": 0}, False),
        ({"record": "[]", "iterations": "0"}, True),
    ],
)
def test_what_is_recorded_without_a_descent_has_no_rules(params, is_judged):
    found = identity.judging_settings({**params, "rules.tail": "0.2"})
    assert bool(found) == is_judged


@pytest.mark.parametrize("has_batches", [True, False])
@pytest.mark.parametrize("x", [np.ones((2, 2)), "a file"], ids=["in memory", "on disk"])
def test_batches_of_points_on_disk_are_told_to_lie_within_blocks(monkeypatch, has_batches, x):
    """Of any other job nothing is added, so that what was recorded of it is found."""
    texts = []
    monkeypatch.setattr(identity, "_digest", lambda text: texts.append(text) or "digest")
    monkeypatch.setattr(identity, "identity_params", lambda part, params: params)
    dataset = SimpleNamespace(x=x, fingerprint="f", task="binary", classes=2)
    identity.identity({"batch_seed": "0"} if has_batches else {}, dataset, ())
    descent, of_grid, _ = map(json.loads, texts)
    wanted = ["f", "binary", 2]
    if has_batches and isinstance(x, str):
        wanted.append("batches within blocks")
    assert descent[1] == of_grid[1] == wanted
    assert descent[2:] == of_grid[2:] == [{}, identity.NUMBERS, []]


def test_a_module_without_a_file_of_code_is_known_by_its_name():
    assert identity.code_identity("sys") == "sys"
    assert (
        identity.code_identity("numpy._core._multiarray_umath") == "numpy._core._multiarray_umath"
    )
    assert len(identity.code_identity("json.decoder")) == 64
