"""The text of `normbench --help`, without Hydra: it takes half a second to load and to list."""

from importlib.resources import files
from pathlib import Path
from string import Template

from omegaconf import OmegaConf

from normbench import choices, settings

CONF = Path(str(files("normbench.conf")))
NO_CHOICE_GROUPS = (".", "hydra")  # folders of `conf` without choices of a comparison


def text() -> str:
    """Return the text of `--help` as Hydra would print it: choices, schemes and settings."""
    template = OmegaConf.load(CONF / "config.yaml").hydra.help.template
    filled = Template(template).substitute(APP_CONFIG_GROUPS=_groups())
    return fill_in(filled)


def fill_in(text: str) -> str:
    """Return a help text with a line for each scheme and the table of settings."""
    text = text.replace("@SCHEMES\n", choices.describe_options("normalizer"))
    return text.replace("@SETTINGS\n", settings.describe_settings())


def _groups() -> str:
    """Return a line for each group, with its options; Hydra's own groups are left out.

    The groups are the folders under `conf/`, and the options are the files in them.
    """
    files_by_folder: dict[str, list[str]] = {}
    for file in sorted(CONF.rglob("*.yaml")):
        folder = file.parent.relative_to(CONF).as_posix()
        files_by_folder.setdefault(folder, []).append(file.stem)
    options_by_group = {
        name: options
        for name, options in files_by_folder.items()
        if name.partition("/")[0] not in NO_CHOICE_GROUPS
    }
    return "".join(
        f"{name}: {', '.join(sorted(options_by_group[name]))}\n"
        for name in sorted(options_by_group)
    )
