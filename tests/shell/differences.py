"""What differs between two records of a scene, with tolerances that hold on every processor."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
PRINTED = 2e-3  # of a printed number, relative
RECORDED = 1e-6  # of a recorded number or a sum of them, relative
SUMS = ": other sums of as many entries: "
TINY = 1e-12  # of a printed number: what rounding leaves of 0
LEAST = 1e-9  # of a recorded number
COUNT = 2e-3  # of a count of misclassified points: one of 500
GREYS = 1.0, 16.0  # of 255, over the blocks of a picture: on average, and at most


def of_records(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each difference of two records of a scene.

    With other kernels of linear algebra, directions that no data determine are others: of arrays,
    and of what the explorer draws, their sizes alone are compared then, and the formulas that are
    unstable on purpose are left out.
    """
    same_kernels = before.get("kernels") == after.get("kernels")
    for line in differences(before, after):
        path = line.partition(": ")[0]
        if path == "/kernels" or (not same_kernels and ("formulas" in path or SUMS in line)):
            continue
        yield line


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each difference of two values of records."""
    if isinstance(before, dict) and isinstance(after, dict):
        if "greys" in before and "greys" in after:
            yield from _of_pictures(before, after, path)
            return
        for key in sorted(before.keys() | after.keys()):
            if key not in after:
                yield f"{path}/{key}: is missing"
            elif key not in before:
                yield f"{path}/{key}: is new"
            else:
                yield from differences(before[key], after[key], f"{path}/{key}")
    elif _is_moments(before) and _is_moments(after):
        if not are_alike(before, after):
            sums = SUMS if before[:-2] == after[:-2] else ": "
            yield f"{path}{sums}{before} -> {after}"
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_lists(before, after, path)
    elif not is_same(before, after, path):
        yield f"{path}: {before!r} -> {after!r}"


def _of_lists(before: list[Any], after: list[Any], path: str) -> Iterator[str]:
    """Yield a line for each difference of two lists: of texts, those lines that are not in both."""
    if all(isinstance(item, str) for item in before + after):
        missing = [line for line in before if not any(is_same_text(line, other) for other in after)]
        new = [line for line in after if not any(is_same_text(line, other) for other in before)]
        yield from (f"{path}: - {line}" for line in missing)
        yield from (f"{path}: + {line}" for line in new)
        if not missing and not new:
            pairs = zip(before, after)
            if len(before) != len(after) or not all(is_same_text(*pair) for pair in pairs):
                yield f"{path}: the same lines in another order or number"
    elif len(before) != len(after):
        yield f"{path}: {len(before)} entries -> {len(after)}"
    else:
        for number, (old, new_item) in enumerate(zip(before, after)):
            yield from differences(old, new_item, f"{path}/{number}")


def _of_pictures(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[str]:
    """Yield a line where two pictures differ in size or in their greys."""
    if before["size"] != after["size"]:
        yield f"{path}: size {before['size']} -> {after['size']}"
        return
    greys = [
        np.array([list(bytes.fromhex(row)) for row in picture["greys"]], float)
        for picture in (before, after)
    ]
    gaps = abs(greys[0] - greys[1])
    if gaps.mean() > GREYS[0] or gaps.max() > GREYS[1]:
        yield f"{path}: greys differ by {gaps.mean():.2f} on average, at most by {gaps.max():.0f}"


def _is_moments(value: Any) -> bool:
    """Return whether a value is the shape and moments of an array."""
    return (
        isinstance(value, list)
        and len(value) >= 3
        and all(isinstance(item, float | int) for item in value[-3:])
    )


def are_alike(before: list[Any], after: list[Any]) -> bool:
    """Return whether two arrays have the same shape and number of finite entries, and sums."""
    if before[:-2] != after[:-2]:
        return False
    tolerance = RECORDED * max(before[-2], after[-2]) + LEAST
    return all(abs(old - new) <= tolerance for old, new in zip(before[-2:], after[-2:]))


def is_same(before: Any, after: Any, path: str) -> bool:
    """Return whether two values are the same but for what processors differ in."""
    if isinstance(before, str) and isinstance(after, str):
        return is_same_text(before, after)
    if before == after or type(before) is bool or type(after) is bool:
        return bool(before == after)
    try:
        size, gap = max(abs(before), abs(after)), abs(before - after)
    except TypeError:
        return False
    if before != before and after != after:
        return True
    if "misclassifications" in path:
        return bool(gap <= max(1.0, COUNT * size))
    return bool(gap <= RECORDED * size + LEAST)


def is_same_text(before: str, after: str) -> bool:
    """Return whether two texts have the same words, and numbers alike as printed."""
    if before == after:
        return True
    if NUMBER.sub("#", before).split() != NUMBER.sub("#", after).split():
        return False
    pairs = zip(NUMBER.findall(before), NUMBER.findall(after))
    return all(_is_same_number(old, new) for old, new in pairs)


def _is_same_number(before: str, after: str) -> bool:
    """Return whether two printed numbers are alike: to a unit of the last decimal, or closely."""
    gap = abs(float(before) - float(after))
    decimals = len(before.partition(".")[2].partition("e")[0])
    unit = 10.0**-decimals if decimals and "e" not in before else 0.0
    return gap <= max(TINY, 1.01 * unit, PRINTED * max(abs(float(before)), abs(float(after))))
