"""Embed SVG files in an HTML page: with unique ids, without styles of their own, and smaller."""

import re

from normbench.results.figures.base import output

# Elements that do not need a group of their own.
SHAPE = r"<use[^>]*/>|<path[^>]*/>|<text[^>]*>[^<]*</text>"
# CSS for dark mode: invert lightness, keep hues, and let the background show through.
DARK_BLEND = f"{output.INVERTED} mix-blend-mode: screen;"
MAX_GROUP_DEPTH = 3  # nested groups: of an axis, of a tick, of its mark


def element(svg: str, prefix: str) -> str:
    """Return an SVG file as an element for a page.

    The size and the style element are removed: the page sets both, and the style would apply to
    the whole page. Invisible parts, 40 % of the text, are removed too.

    Args:
        svg: The text of the file.
        prefix: Put before each id, since all figures use the same ids.

    Returns:
        The element.
    """
    svg = svg[svg.index("<svg") :]  # without the XML declaration
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    # Only ids that something refers to are kept.
    used_ids = sorted(set(re.findall(r'(?:href="#|url\(#)([^")]*)', svg)))
    new_ids = {used_id: f"{prefix}{number}" for number, used_id in enumerate(used_ids)}
    svg = re.sub(
        r'\sid="([^"]*)"', lambda m: f' id="{new_ids[m[1]]}"' if m[1] in new_ids else "", svg
    )
    svg = re.sub(r'(href="#|url\(#)([^")]*)', lambda m: m[1] + new_ids[m[2]], svg)
    return _shrink(svg)


def _shrink(svg: str) -> str:
    """Return an SVG element without blanks between tags, needless digits and needless groups.

    Of the ten font families that matplotlib names for each text, the result names one.
    """
    svg = re.sub(r">\s*\n\s*<", "><", svg)
    svg = re.sub(
        r' (?:d|x|y|transform)="(?!matrix)[^"]*"', _round_attribute, svg
    )  # a matrix scales an image
    svg = re.sub(r"font-family: [^;\"]*", "font-family: 'DejaVu Sans', sans-serif", svg)
    svg = re.sub(r' style="[^"]*"', lambda m: m[0].replace(": ", ":").replace("; ", ";"), svg)
    svg = svg.replace("xlink:href=", "href=").replace(":#000000", ":#000")
    # Each pass removes the innermost groups, those that hold shapes alone.
    for _ in range(MAX_GROUP_DEPTH):
        svg = re.sub(rf"<g>((?:{SHAPE})+)</g>", r"\1", svg)
    return svg


def _round_attribute(attribute: re.Match[str]) -> str:
    """Return a matched attribute, such as ` d="M 1.2345 2"`, with short numbers and few blanks.

    The one blank before the attribute's name is kept.
    """
    short = re.sub(r"-?\d+\.\d{2,}", _round_number, attribute[0])
    # No blanks around the letters of path commands, and none before the closing quote.
    return " " + re.sub(r"\s*([MLCQz])\s*", r"\1", " ".join(short.split())).replace(' "', '"')


def _round_number(number: re.Match[str]) -> str:
    """Return a matched number with at most one decimal from 10 on, else with at most two."""
    value = float(number[0])
    digits = (
        1 if abs(value) >= 10 else 2
    )  # small numbers are sizes of markers, large ones are positions
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")
