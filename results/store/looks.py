"""The colour, marker and line of each scheme: in figures, and as the colour of its MLflow run."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple


class Look(NamedTuple):
    """How a scheme is drawn in every figure."""

    color: str
    marker: str
    line: str


# Three of Okabe and Ito's, and colours as far from them and one another as a search found, at a
# contrast of 3 to 1 or more on white, and inverted on the dark; no two share a marker.
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
SPARE = [
    Look("#6032a3", "$\\circ$", ":"),
    Look("#b35246", "$\\diamond$", "--"),
    Look("#3c601f", "$\\bullet$", "-."),
    Look("#c062a3", "$\\star$", ":"),
]


def look(normalizer: str) -> Look:
    """Return how a scheme is drawn; a scheme of the user's own always gets the same look, too."""
    if normalizer in LOOKS:
        return LOOKS[normalizer]
    digest = hashlib.sha256(normalizer.encode()).digest()
    return SPARE[digest[0] % len(SPARE)]


def looks(normalizers: Sequence[str]) -> list[Look]:
    """Return a look for each; the second of one name and later ones are shades of the first."""
    seen: dict[str, int] = {}
    taken: set[str] = set()
    found = []
    for name in normalizers:
        first, number = look(name), seen.get(name, 0)
        if number == 0 and first in found:  # two schemes of the user's own with one look
            number = 1
        seen[name] = number + 1
        found.append(_shade(first, number, taken) if number else first)
        taken.add(found[-1].marker)
    return found


def _shade(first: Look, number: int, taken: set[str]) -> Look:
    share = 0.22 * ((number + 1) // 2)
    towards = 0.85 if number % 2 else 0.0  # lighter, darker, lighter ...
    share = min(share, 0.8)
    channels = (int(first.color[n : n + 2], 16) / 255 for n in (1, 3, 5))
    shades = (round(255 * ((1 - share) * part + share * towards)) for part in channels)
    color = "#" + "".join(f"{part:02x}" for part in shades)
    free = [marker for marker in MARKERS if marker not in taken] or list(MARKERS)
    return Look(color, free[0], LINES[(LINES.index(first.line) + number) % len(LINES)])
