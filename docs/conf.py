"""Settings of sphinx for `make docs`: no network, warnings are errors, pages open from a folder."""

import sys
from pathlib import Path
from typing import Any

DOCS_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS_FOLDER))

import comparisons  # noqa: E402
import generate  # noqa: E402

project = "normbench"
author = "the authors of normbench"
html_title = "normbench"
html_theme = "furo"
html_show_copyright = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_extra_path = ["generated/beside"]
exclude_patterns = ["generated/reports.md"]  # a part of the first page
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
autodoc_typehints = "none"
napoleon_attr_annotations = False
default_role = "code"  # docstrings write code between single backticks


def escape_bars(
    app: Any, kind: str, name: str, documented: Any, options: Any, lines: list[str]
) -> None:
    """Escape the bars of `|weights|` in a docstring, which sphinx would take for a substitution."""
    lines[:] = [line.replace("|weights|", r"\|weights\|") for line in lines]


def write_generated(app: Any, config: Any) -> None:
    """Write what the pages show: comparisons first, then the pages about them."""
    folder = DOCS_FOLDER / "generated"
    comparisons.write(folder)
    generate.write(folder)


def setup(app: Any) -> None:
    """Connect this project's steps to sphinx."""
    app.connect("config-inited", write_generated)  # before sphinx looks for html_extra_path
    app.connect("autodoc-process-docstring", escape_bars)
