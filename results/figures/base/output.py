"""Save figures as files, with their provenance in the metadata."""

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
    provenance: Mapping[str, str],
    file_formats: Sequence[str] = style.FILE_FORMATS,
) -> list[Path]:
    """Write a figure in several file formats; return the files.

    Args:
        figure: the figure, which must not be changed afterwards.
        path: the path of the files without a suffix.
        provenance: the sweep and the command, for each file's metadata.
        file_formats: names from `style.FILE_FORMATS`.
    """
    description = describe_provenance(provenance)
    metadata: dict[str, dict[str, Any]] = {
        "png": {"Software": "normbench", "Description": description},
        "svg": {"Creator": "normbench", "Description": description, "Date": None},
        "pdf": {"Creator": "normbench", "Subject": description, "CreationDate": None},
    }
    files = []
    with matplotlib.rc_context(style.RC):
        _lay_out(figure)
        for file_format in file_formats:
            files.append(path.with_name(f"{path.name}.{file_format}"))
            figure.savefig(files[-1], metadata=metadata[file_format])
    return files


def describe_provenance(provenance: Mapping[str, str]) -> str:
    """Return the provenance of a figure as text for a file's metadata."""
    return "; ".join(f"{key}: {value}" for key, value in provenance.items())


def script_data(payload: Any) -> str:
    """Return a payload as JSON that is safe inside HTML and SVG: `<`, `>` and `&` are escaped."""
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _lay_out(figure: Figure) -> None:
    """Compute a figure's layout once for all files, without rendering: rendering takes as long."""
    layout_engine = figure.get_layout_engine()
    if layout_engine is not None:
        FigureCanvasAgg(figure)  # caches text sizes for the layout and for the PNG
        layout_engine.execute(figure)
        figure.set_layout_engine(None)  # with an engine, savefig renders each file twice
