"""A figure as files."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from normbench.results.figures.base import style


def save(
    figure: Figure,
    path: Path,
    facts: Mapping[str, str],
    kinds: Sequence[str] = style.KINDS,
) -> list[Path]:
    """Write a figure under a path without suffix; return the files.

    facts (sweep, command) stand in each file's metadata.
    """
    description = about(facts)
    metadata: dict[str, dict[str, Any]] = {
        "png": {"Software": "normbench", "Description": description},
        "svg": {"Creator": "normbench", "Description": description, "Date": None},
        "pdf": {"Creator": "normbench", "Subject": description, "CreationDate": None},
    }
    files = []
    with matplotlib.rc_context(style.RC):
        _lay_out(figure)
        for kind in kinds:
            files.append(path.with_name(f"{path.name}.{kind}"))
            figure.savefig(files[-1], metadata=metadata[kind])
    return files


def about(facts: Mapping[str, str]) -> str:
    """Return facts as a file's metadata has them."""
    return "; ".join(f"{key}: {value}" for key, value in facts.items())


def script_data(data: Any) -> str:
    """Return data as JSON that may stand in a page or an SVG file."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _lay_out(figure: Figure) -> None:
    """Lay a figure out once, not once a file, and without a drawing: each takes as long."""
    engine = figure.get_layout_engine()
    if engine is not None:
        FigureCanvasAgg(figure)  # it measures each text once, for the layout and for the PNG
        engine.execute(figure)
        figure.set_layout_engine(None)  # with any engine, each file would be drawn twice
