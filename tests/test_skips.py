"""In CI a test that is skipped fails, but for a reason that is known."""

from types import SimpleNamespace

import pytest

from tests.conftest import fail_in_ci


@pytest.mark.parametrize(
    ("reason", "ci", "outcome"),
    [
        ("Skipped: PyTorch is not installed", "true", "skipped"),
        ("Skipped: no real data: data is not there (NORMBENCH_DATA names another)", "1", "skipped"),
        ("Skipped: the package chromium is not there", "true", "failed"),
        ("got empty parameter set for (name)", "true", "failed"),
        ("Skipped: the package chromium is not there", "", "skipped"),
    ],
)
def test_a_test_that_vanishes_fails_in_ci_alone(reason, ci, outcome, monkeypatch):
    monkeypatch.setenv("CI", ci)
    report = SimpleNamespace(skipped=True, outcome="skipped", longrepr=("test.py", 1, reason))
    assert fail_in_ci(report).outcome == outcome
    expected = SimpleNamespace(skipped=True, outcome="skipped", longrepr=(), wasxfail="known")
    assert fail_in_ci(expected).outcome == "skipped"
