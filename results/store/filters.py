"""A filter of runs that finds nothing: which of its words there is not, and which there are."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

NAMED = re.compile(r"\b(params|tags)\.[`\"]?([\w./]+)")
SHOWN = 12  # words that a message names


def remedy(where: str, recorded: Iterable[Mapping[str, Mapping[str, str]]]) -> str:
    """Return what the words of a filter could be instead.

    recorded: of each run its `params` and its `tags`.
    """
    runs = list(recorded)
    said = []
    for kind, name in dict.fromkeys(NAMED.findall(where)):
        values = sorted({run[kind][name] for run in runs if name in run[kind]})
        if values:
            said.append(f"{kind}.{name} is {_listed(values, ' or ')} there")
            continue
        known = sorted({key for run in runs for key in run[kind]})
        near = get_close_matches(name, known, 1)
        meant = f"did you mean {kind}.{near[0]}" if near else f"there are {_listed(known, ', ')}"
        said.append(f"no run has {kind}.{name}; {meant}")
    return "; ".join(said) or "write it as in \"params.dataset = 'digits'\""


def _listed(words: list[str], between: str) -> str:
    return between.join(words[:SHOWN]) + (f"{between}..." if len(words) > SHOWN else "")
