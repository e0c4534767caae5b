"""The setting `memory`: how it is written, what is left of it, and what is too little."""

import pytest

from normbench import compare
from normbench.datasets import UserError, values
from normbench.datasets.values import (
    available_bytes,
    limited_memory,
    parse_memory_size,
    refuse_larger,
)


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (None, None),
        ("1GiB", 1 << 30),
        ("1.5 GiB", 3 << 29),
        ("500MB", 500_000_000),
        ("7B", 7),
        (2e9, 2_000_000_000),
    ],
)
def test_a_size_is_a_number_with_a_unit_or_none(written, size):
    assert parse_memory_size(written) == size


@pytest.mark.parametrize("written", ["", "1 GiB free", "-1GiB", "GiB", "nan", True, "1e9999"])
def test_what_is_no_size_is_told_in_one_line(written):
    with pytest.raises(UserError, match=r"^memory=.*: must be a size such as 1GiB") as told:
        parse_memory_size(written)
    assert "\n" not in str(told.value)


def test_what_is_free_is_what_the_limit_leaves_beside_what_is_held(monkeypatch):
    without = available_bytes()
    monkeypatch.setattr(values, "resident_bytes", lambda: 300 << 20)
    with limited_memory("400MiB"):
        assert available_bytes() == 100 << 20
        monkeypatch.setattr(values, "resident_bytes", lambda: 450 << 20)
        assert available_bytes() == 0
        with pytest.raises(UserError, match=r"^x=1: .* of what memory=400MiB leaves free\) may be"):
            refuse_larger("x=1", 1000, "choose less")
    assert available_bytes() > min(without, 1 << 60) / 2


def test_the_comparison_from_python_has_a_limit_while_it_runs(two_classes):
    seen, without = [], available_bytes()

    def cost(scores, targets):
        seen.append(available_bytes())
        return (scores[:, 0] ** 2).sum(axis=-1)

    compare(*two_classes, cost=cost, step_sizes=[0.1], iterations=1, memory="4GiB")
    assert max(seen) < 4 << 30
    assert available_bytes() > min(without, 1 << 60) / 2
    with pytest.raises(UserError, match=r"^memory=1MB: the program itself takes .* MiB; set more"):
        compare(*two_classes, memory="1MB")
