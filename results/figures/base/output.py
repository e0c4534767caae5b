"""Save figures as files, with their provenance in the metadata, for light and dark grounds."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from normbench.results.figures.base import style

# CSS that makes a figure on white one on black: lightness is inverted, hues stay.
INVERTED = "filter: invert(1) hue-rotate(180deg);"
# Of an SVG file: the grounds of the figure and of its panels are removed.
DARK_STYLE = (
    f'<style type="text/css">svg{{{INVERTED}}} #patch_1 > path, [id^="axes_"] > '
    '[id^="patch_"]:first-child > path[style*="fill: #ffffff"] {fill: none !important}</style>'
)
LUMINANCE = np.array([0.213, 0.715, 0.072])  # of red, green and blue, as hue-rotate has them


def save(
    figure: Figure,
    path: Path,
    provenance: Mapping[str, str],
    file_formats: Sequence[str] = style.FILE_FORMATS,
) -> list[Path]:
    """Write a figure in several file formats; return the files, one for each format.

    Args:
        figure: the figure; its layout is computed once and no longer adapts to later changes.
        path: the path of the files without a suffix.
        provenance: the sweep and the command, for each file's metadata.
        file_formats: names from `style.FILE_FORMATS`.
    """
    description = describe_provenance(provenance)
    # Without dates: equal figures give equal files.
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


def has_dark(file: Path) -> bool:
    """Return whether a file can have a version for dark pages: a PNG or SVG."""
    return file.suffix in (".png", ".svg")


def write_dark(file: Path) -> Path:
    """Write the version of a figure's PNG or SVG file for dark pages beside it; return its file.

    Lightness is inverted and hues stay, as by `INVERTED`; the ground is transparent.

    Args:
        file: the file, written by `save`: its metadata are copied.
    """
    dark_file = file.with_name(f"{file.stem}-dark{file.suffix}")
    if file.suffix == ".svg":
        svg = file.read_text(encoding="utf-8")
        svg = svg.replace("</metadata>", f"</metadata>\n {DARK_STYLE}", 1)
        dark_file.write_text(svg, encoding="utf-8")
        return dark_file
    from PIL import Image, PngImagePlugin

    image = Image.open(file)
    provenance = PngImagePlugin.PngInfo()
    for key in ("Software", "Description"):
        provenance.add_text(key, image.info[key])
    dark_image = Image.fromarray(_invert(np.asarray(image.convert("RGB"))))
    dark_image.save(dark_file, optimize=True, dpi=image.info["dpi"], pnginfo=provenance)
    return dark_file


def _invert(pixels: Any) -> Any:
    """Return the pixels of a figure on white with inverted lightness, on a transparent ground.

    Args:
        pixels: (h, w, 3), red, green and blue from 0 to 255.

    Returns:
        (h, w, 4), with the opacity as fourth channel. White becomes transparent. On black, the
        result is the figure with inverted lightness and the same hues.
    """
    inverted = 1 - pixels / 255
    rotated = np.clip(inverted @ (2 * LUMINANCE - np.eye(3)).T, 0, 1)  # hues, by 180 degrees
    opacity = rotated.max(axis=2, keepdims=True)
    # Divided by the opacity, so that the blend with a black ground is `rotated`.
    colors = np.divide(rotated, opacity, out=np.zeros_like(rotated), where=opacity > 0)
    return (255 * np.concatenate([colors, opacity], axis=2)).round().astype(np.uint8)


def write_gif(
    figure: Figure,
    show: Callable[[int], None],
    file: Path,
    durations: Sequence[int],
    provenance: Mapping[str, str],
) -> None:
    """Write an animation that repeats without end.

    Args:
        figure: the figure, laid out.
        show: draws a frame, given by its number, into the figure.
        file: the file to write.
        durations: the milliseconds of each frame.
        provenance: the sweep and the command, for the file's comment.
    """
    from PIL import Image

    canvas: Any = FigureCanvasAgg(figure)
    pictures: list[Any] = []
    for frame in range(len(durations)):
        show(frame)
        canvas.draw()
        picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        # All frames, the first too, take the nearest colours of one palette, that of the first: a
        # point keeps its colour. Without dithering, areas of one colour stay even.
        if not pictures:
            palette = picture.quantize(dither=Image.Dither.NONE)
        pictures.append(picture.quantize(palette=palette, dither=Image.Dither.NONE))
    pictures[0].save(
        file,
        save_all=True,
        append_images=pictures[1:],
        duration=list(durations),
        loop=0,
        comment=describe_provenance(provenance).encode(),
    )


def describe_provenance(provenance: Mapping[str, str]) -> str:
    """Return the provenance of a figure as text for a file's metadata."""
    return "; ".join(f"{key}: {value}" for key, value in provenance.items())


def script_data(payload: Any) -> str:
    """Return a payload as JSON that is safe inside HTML and SVG: `<`, `>` and `&` are escaped."""
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _lay_out(figure: Figure) -> None:
    """Compute a figure's layout once and keep it for all files.

    The figure is not rendered for this, because rendering takes as long as the layout.
    """
    layout_engine = figure.get_layout_engine()
    if layout_engine is not None:
        FigureCanvasAgg(figure)  # caches text sizes for the layout and for the PNG
        layout_engine.execute(figure)
        figure.set_layout_engine(None)  # with an engine, savefig renders each file twice
