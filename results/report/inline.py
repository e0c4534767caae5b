"""An SVG file as an element of a page: it shares the page's ids and styles, and is small."""

import re

# Parts of which one alone in a group needs none.
SHAPE = r"<use[^>]*/>|<path[^>]*/>|<text[^>]*>[^<]*</text>"
# CSS for the dark: lightness is inverted, hues stay, and the white ground becomes the page's.
INVERTED = "filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen;"
MAX_GROUP_DEPTH = 3  # groups within groups: of an axis, of a tick, of its mark


def element(svg: str, prefix: str) -> str:
    """Return an SVG file as an element among others of a page.

    Its ids get a prefix, since every figure names its parts alike; its size is left to the page,
    and so is its style element, which would style the page as well. What nobody sees is left out:
    it takes four tenths.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]*)', svg))
    names = {name: f"{prefix}{number}" for number, name in enumerate(sorted(used))}
    svg = re.sub(r'\sid="([^"]*)"', lambda m: f' id="{names[m[1]]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(href="#|url\(#)([^")]*)', lambda m: m[1] + names[m[2]], svg)
    return _small(svg)


def _small(svg: str) -> str:
    """Return an element without spaces between tags, digits beyond a tenth of a point, sole groups.

    A page names one family of letters; matplotlib names ten in each word.
    """
    svg = re.sub(r">\s*\n\s*<", "><", svg)
    svg = re.sub(r' (?:d|x|y|transform)="(?!matrix)[^"]*"', _rounded, svg)  # an image is scaled so
    svg = re.sub(r"font-family: [^;\"]*", "font-family: 'DejaVu Sans', sans-serif", svg)
    svg = re.sub(r' style="[^"]*"', lambda m: m[0].replace(": ", ":").replace("; ", ";"), svg)
    svg = svg.replace("xlink:href=", "href=").replace(":#000000", ":#000")
    for _ in range(MAX_GROUP_DEPTH):
        svg = re.sub(rf"<g>((?:{SHAPE})+)</g>", r"\1", svg)
    return svg


def _rounded(attribute: re.Match[str]) -> str:
    short = re.sub(r"-?\d+\.\d{2,}", _short, attribute[0])
    return " " + re.sub(r"\s*([MLCQz])\s*", r"\1", " ".join(short.split())).replace(' "', '"')


def _short(number: re.Match[str]) -> str:
    value = float(number[0])
    digits = 1 if abs(value) >= 10 else 2  # marks are small, and placed by larger numbers
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")
