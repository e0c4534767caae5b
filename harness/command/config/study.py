"""Read a study's file: the expected numbers of its source, and the data that may stand in."""

import json
from collections.abc import Sequence

from omegaconf import DictConfig, OmegaConf

from normbench import choices, names
from normbench.command.config.errors import user_errors
from normbench.datasets.values import UserError
from normbench.results.store.errors import ResultsError

EXPERIMENT = "experiment"
# What a study's source says does not hold for the data that stand in for its own.
WITHOUT_SOURCE = ("++study.says='not of these data, which stand in'", "++study.expected=null")
MAX_EXPECTED_LENGTH = 7900  # characters: MLflow keeps 8,000 of a tag


def expected_tag(config: DictConfig) -> dict[str, str]:
    """Return the tag with the expected numbers of a study's source, checked and as JSON.

    Args:
        config: A composed config; `study.expected` holds the numbers.

    Returns:
        The tag's text by its key; empty for a config without such numbers.

    Raises:
        UserError: The numbers have a mistake, or their text is too long for a tag.
    """
    with user_errors():
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
    if len(text) > MAX_EXPECTED_LENGTH:
        raise UserError(
            f"study.expected: takes {len(text)} characters, and at most {MAX_EXPECTED_LENGTH} "
            "may be; say less in words"
        )
    return {names.EXPECTED.key: text}


def stand_in_overrides(overrides: Sequence[str]) -> tuple[str, ...]:
    """Return the overrides by which a study runs on other data than those of its source.

    Args:
        overrides: The overrides on the command line.

    Returns:
        The overrides that the study's file names. Empty for most studies, without a study of this
        project, and where the command line chooses the data set.
    """
    # The text before and after the first equals sign.
    values = dict(override.partition("=")[::2] for override in overrides)
    study = values.get(EXPERIMENT)
    if study not in choices.names(EXPERIMENT) or "dataset" in values:
        return ()
    study_entries = choices.options(EXPERIMENT, str(study)).get("study", {})
    return tuple(study_entries.get("stand_in", ()))
