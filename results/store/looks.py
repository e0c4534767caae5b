"""The colour, marker and line of each scheme, in figures and for its MLflow runs."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple


class Look(NamedTuple):
    """The colour (hex), marker and line style of a scheme, as matplotlib takes them."""

    color: str
    marker: str
    line: str


# Three colours are Okabe and Ito's. A search chose the others as far as possible from those and
# from one another, at a contrast of at least 3 to 1 on white and, inverted, on a dark background.
# No two schemes share a marker.
LOOKS = {
    "identity": Look("#000000", "o", "-"),
    "standard": Look("#cc8040", "s", "-"),
    "pca_sphere": Look("#0072b2", "^", "-"),
    "zca_sphere": Look("#009e73", "v", "--"),
    "centre": Look("#7794b7", "D", "-"),
    "pca": Look("#cb61f7", "P", "-."),
    "cholesky": Look("#4e0191", "X", ":"),
    "pca_cor": Look("#da5b0a", "<", "--"),
    "zca_cor": Look("#99004f", ">", "-."),
    "ledoit_wolf": Look("#562c03", "p", "--"),
    "minmax": Look("#724ece", "h", "-."),
    "maxabs": Look("#293066", "*", ":"),
    "robust": Look("#be1ea7", "d", "--"),
    "quantile": Look("#0b3aca", "H", "-."),
    "power": Look("#9b56fa", "8", ":"),
    "unit_norm": Look("#aa6f3c", "$+$", "--"),
    "chain": Look("#9e00ed", "$\\times$", "-."),
    "pareto": Look("#300030", "$\\otimes$", "--"),
    "random_rotation": Look("#180050", "$\\oplus$", ":"),
}
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*", "h")
LINES = ("-", "--", "-.", ":")
LOOKS_OF_OTHER_SCHEMES = [
    Look("#6032a3", "$\\circ$", ":"),
    Look("#b35246", "$\\diamond$", "--"),
    Look("#3c601f", "$\\bullet$", "-."),
    Look("#c062a3", "$\\star$", ":"),
]


def look(normalizer: str) -> Look:
    """Return the look of a normalizer; of one that is not in `LOOKS`, chosen by its name's hash."""
    if normalizer in LOOKS:
        return LOOKS[normalizer]
    digest = hashlib.sha256(normalizer.encode()).digest()
    return LOOKS_OF_OTHER_SCHEMES[digest[0] % len(LOOKS_OF_OTHER_SCHEMES)]


def looks(normalizers: Sequence[str]) -> list[Look]:
    """Return the looks of schemes that are drawn together.

    Args:
        normalizers: The normalizer of each scheme; names may repeat.

    Returns:
        One look a scheme; of several schemes with one name, the later ones are shades of the first.
    """
    counts: dict[str, int] = {}  # by name: how many looks were assigned
    used_markers: set[str] = set()
    assigned = []
    for name in normalizers:
        base, number = look(name), counts.get(name, 0)
        if number == 0 and base in assigned:  # the hashes of two names chose the same look
            number = 1
        counts[name] = number + 1
        assigned.append(_shade(base, number, used_markers) if number else base)
        used_markers.add(assigned[-1].marker)
    return assigned


def _shade(base: Look, number: int, used_markers: set[str]) -> Look:
    """Return a variant of a look: a lighter or darker colour, an unused marker, another line.

    Args:
        base: The look.
        number: Which variant, from 1 on: odd ones are lighter, even ones darker, and the colour
            changes more with every second one.
        used_markers: The markers that the variant should not have.
    """
    # The share of grey or black in the colour; at 0.8, the base colour can still be seen.
    mixing_share = min(0.2 * ((number + 3) // 2), 0.8)
    target = 0.85 if number % 2 else 0.0  # light grey, or black
    channels = (int(base.color[n : n + 2], 16) / 255 for n in (1, 3, 5))  # of #rrggbb
    shades = (
        round(255 * ((1 - mixing_share) * channel + mixing_share * target)) for channel in channels
    )
    color = "#" + "".join(f"{channel:02x}" for channel in shades)
    unused_markers = [marker for marker in MARKERS if marker not in used_markers] or list(MARKERS)
    return Look(color, unused_markers[0], LINES[(LINES.index(base.line) + number) % len(LINES)])
