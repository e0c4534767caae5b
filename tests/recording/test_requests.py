"""What a request is known by: settings, choices and code; of files and own code it is not."""

from types import SimpleNamespace

import pytest

from normbench import names
from normbench.recording.reuse import lookup, request
from normbench.recording.store.records import RecordHeader

PLAIN = {
    "dataset": {"_target_": "normbench.datasets.made.gaussian"},
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


def test_of_runs_that_can_be_reused_an_equal_one_comes_first_and_then_one_judged_alike():
    def run(run_id, tail, **tags):
        data = SimpleNamespace(params={"rules.tail": tail}, tags=tags)
        return SimpleNamespace(info=SimpleNamespace(run_id=run_id), data=data)

    header = RecordHeader("-", "e", "", {"rules.tail": 0.1}, {names.FINGERPRINT.key: "f"})
    equal = run("equal", "0.2", **{names.FINGERPRINT.key: "f"})
    alike, otherwise = run("alike", "0.1"), run("otherwise", "0.3")
    assert lookup.find_equal_run([otherwise, alike, equal], header) == "equal"
    assert lookup.find_equal_run([otherwise, alike], header) == "alike"
    assert lookup.find_equal_run([otherwise], header) is None
