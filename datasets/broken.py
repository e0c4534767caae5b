"""Points as users have them: with what breaks the formulas of a normalization, on purpose."""

import numpy as np

from normbench.datasets.dataset import Dataset, make_dataset
from normbench.datasets.gaussian import gaussian
from normbench.datasets.values import number, one_of

KINDS = ("sound", "constant", "duplicate", "few", "offset", "float32")
POINTS, FEW, FEATURES = 200, 10, 20
FAR, FAR_SINGLE = 1e8, 1e3  # means, in largest standard deviations: half of the digits each


def broken(kind: str = "constant", scale: float = 1.0, seed: int = 0) -> Dataset:
    """Return two Gaussian classes, (200, 20), the variances of whose directions are 1 to 0.01.

    kind: `sound` leaves them; `constant`: the last feature is 1 everywhere; `duplicate`: the second
    half of the features repeats the first; `few`: 10 points; `offset`: the mean of every feature is
    1e8; `float32`: it is 1000, in numbers of 7 digits. scale: what all is multiplied by, as other
    units do. Raises `UserError`.
    """
    kind = one_of("dataset.kind", kind, KINDS)
    most = 1e30 if kind == "float32" else 1e100  # which has no number above 3e38
    scale = number("dataset.scale", scale, above=0, most=most)
    points = FEW if kind == "few" else POINTS
    offset = {"offset": FAR, "float32": FAR_SINGLE}.get(kind, 0.0)
    made = gaussian(points, FEATURES, offset=offset, seed=seed)
    x = np.array(made.x)
    if kind == "constant":
        x[:, -1] = 1.0
    if kind == "duplicate":
        x[:, FEATURES // 2 :] = x[:, : FEATURES // 2]
    return make_dataset(
        "broken",
        scale * x,
        made.y,
        source="made by datasets.broken",
        class_names=made.class_names,
        precision="float32" if kind == "float32" else "float64",
    )
