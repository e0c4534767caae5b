"""What a study says of its source, from its file to the tag that keeps it."""

import json
from collections.abc import Sequence

from omegaconf import DictConfig, OmegaConf

from normbench import choices, names
from normbench.command.config.errors import reading
from normbench.datasets.values import UserError
from normbench.results.store.errors import ResultsError

EXPERIMENT = "experiment"
LONGEST = 7900  # characters: MLflow keeps 8,000 of a tag


def expected(config: DictConfig) -> dict[str, str]:
    """Return the tag that keeps what a study's source says in numbers; none where it says none.

    Raises `UserError` on a mistake in them.
    """
    with reading():
        entries = OmegaConf.select(config, "study.expected")
        if OmegaConf.is_config(entries):
            entries = OmegaConf.to_container(entries, resolve=False)
    if entries is None:
        return {}
    from normbench.results.studies.expected import parse  # late: it loads pandas

    try:
        parse(entries)
    except ResultsError as error:
        raise UserError(str(error.args[0])) from error
    text = json.dumps(entries)
    if len(text) > LONGEST:
        raise UserError(
            f"study.expected: takes {len(text)} characters, and at most {LONGEST} may be; "
            "say less in words"
        )
    return {names.EXPECTED.key: text}


def stand_in(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words that let a study run without its source's file; none for most studies.

    words: of the command line. None, too, where they choose the data.
    """
    given = dict(word.partition("=")[::2] for word in words)
    study = given.get(EXPERIMENT)
    if study not in choices.names(EXPERIMENT) or "dataset" in given:
        return ()
    described = choices.options(EXPERIMENT, str(study)).get("study", {})
    return tuple(described.get("stand_in", ()))
