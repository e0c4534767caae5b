"""A filter of runs that finds nothing: which of its words there is not, and which there are."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

NAMED = re.compile(r"\b(params|tags)\.[`\"]?([\w./]+)")
MAX_LISTED = 12  # words that a message names


def remedy(where: str, recorded: Iterable[Mapping[str, Mapping[str, str]]]) -> str:
    """Return what the words of a filter could be instead.

    recorded: of each run its `params` and its `tags`.
    """
    runs = list(recorded)
    sentences = []
    for collection, name in dict.fromkeys(NAMED.findall(where)):
        values = sorted({run[collection][name] for run in runs if name in run[collection]})
        if values:
            sentences.append(f"{collection}.{name} is {_listed(values, ' or ')} there")
            continue
        recorded_names = sorted({key for run in runs for key in run[collection]})
        close_names = get_close_matches(name, recorded_names, 1)
        suggestion = (
            f"did you mean {collection}.{close_names[0]}"
            if close_names
            else f"there are {_listed(recorded_names, ', ')}"
        )
        sentences.append(f"no run has {collection}.{name}; {suggestion}")
    return "; ".join(sentences) or "write it as in \"params.dataset = 'digits'\""


def _listed(options: list[str], separator: str) -> str:
    return separator.join(options[:MAX_LISTED]) + (
        f"{separator}..." if len(options) > MAX_LISTED else ""
    )
