"""Settings of sphinx for `make docs`: no network, warnings are errors, pages open from a folder."""

import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

import generate  # noqa: E402

project = "normbench"
author = "the authors of normbench"
html_title = "normbench"
html_theme = "furo"
html_show_copyright = False
html_copy_source = False
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
autodoc_typehints = "none"
default_role = "code"  # docstrings write code between single backticks


def escape_bars(
    app: Any, kind: str, name: str, documented: Any, options: Any, lines: list[str]
) -> None:
    """Escape the bars of `|weights|` in a docstring, which sphinx would take for a substitution."""
    lines[:] = [line.replace("|weights|", r"\|weights\|") for line in lines]


def setup(app: Any) -> None:
    """Connect this project's steps to sphinx."""
    app.connect("builder-inited", lambda app: generate.write(FOLDER / "generated"))
    app.connect("autodoc-process-docstring", escape_bars)
