"""The remedy for a filter that matches no run: names and values that are recorded."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

PARAM_OR_TAG = re.compile(r"\b(params|tags)\.[`\"]?([\w./]+)")
MAX_LISTED = 12  # names or values in a message


def remedy(where: str, recorded: Iterable[Mapping[str, Mapping[str, str]]]) -> str:
    """Return what a filter could ask for instead, as the end of an error message.

    Args:
        where: The filter, as the user wrote it.
        recorded: The `params` and `tags` of each recorded run.

    Returns:
        For each param or tag of the filter, a clause with its recorded values, else with the most
        similar recorded name, else with all recorded names; an example of a filter where it names
        no param or tag.
    """
    runs = list(recorded)
    sentences = []
    for collection, name in dict.fromkeys(PARAM_OR_TAG.findall(where)):  # each once
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
    """Return the first `MAX_LISTED` options, and `...` if there are more, joined by a separator."""
    return separator.join(options[:MAX_LISTED]) + (
        f"{separator}..." if len(options) > MAX_LISTED else ""
    )
