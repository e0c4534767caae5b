"""The colour, marker and line of each scheme: in figures, and as the colour of its MLflow run."""

import hashlib
from typing import NamedTuple


class Look(NamedTuple):
    """How a scheme is drawn in every figure."""

    color: str
    marker: str
    line: str


# Four of Okabe and Ito's, and colours as far from them and one another as a search found; no two
# share a marker.
LOOKS = {
    "identity": Look("#000000", "o", "-"),
    "standard": Look("#e69f00", "s", "-"),
    "pca_sphere": Look("#0072b2", "^", "-"),
    "zca_sphere": Look("#009e73", "v", "--"),
    "centre": Look("#a6a1c9", "D", "-"),
    "pca": Look("#d47ef8", "P", "-."),
    "cholesky": Look("#4e0191", "X", ":"),
    "pca_cor": Look("#da5b0a", "<", "--"),
    "zca_cor": Look("#99004f", ">", "-."),
    "ledoit_wolf": Look("#562c03", "p", "--"),
    "minmax": Look("#02c46c", "h", "-."),
    "maxabs": Look("#293066", "*", ":"),
    "robust": Look("#be1ea7", "d", "--"),
    "quantile": Look("#0b3aca", "H", "-."),
    "power": Look("#9b56fa", "8", ":"),
    "unit_norm": Look("#aa6f3c", "$+$", "--"),
    "chain": Look("#1bacff", "$\\times$", "-."),
    "pareto": Look("#300030", "$\\otimes$", "--"),
    "random_rotation": Look("#180050", "$\\oplus$", ":"),
}
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
