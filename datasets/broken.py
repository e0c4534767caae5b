"""Generate points with a defect that breaks the formulas of a normalization, on purpose."""

import numpy as np

from normbench.datasets.dataset import Dataset, make_dataset
from normbench.datasets.gaussian import gaussian
from normbench.datasets.values import check_choice, check_number

DEFECTS = ("sound", "constant", "duplicate", "few", "offset", "float32")
POINT_COUNT, FEW_POINTS, FEATURE_COUNT = 200, 10, 20
# Means, in largest standard deviations of the points: each costs half of the digits of its type of
# number, `FAR_MEAN` of float64 and `FAR_MEAN_FLOAT32` of float32.
FAR_MEAN, FAR_MEAN_FLOAT32 = (1e8, 1e3)


def broken(kind: str = "constant", scale: float = 1.0, seed: int = 0) -> Dataset:
    """Return two Gaussian classes, (200, 20), with variances from 1 to 0.01 by direction.

    Args:
        kind: The defect. `sound`: none; `constant`: the last feature is 1 everywhere; `duplicate`:
            the second half of the features repeats the first; `few`: 10 points; `offset`: the mean
            of every feature is 1e8; `float32`: the mean is 1000, and the points are stored in
            float32, with 7 digits.
        scale: The factor of all features, means included, as a change of units would multiply them.
        seed: The seed of the generator.

    Raises:
        UserError: An option is out of its range.
    """
    kind = check_choice("dataset.kind", kind, DEFECTS)
    largest_scale = 1e30 if kind == "float32" else 1e100  # float32 ends at 3e38
    scale = check_number("dataset.scale", scale, above=0, at_most=largest_scale)
    points = FEW_POINTS if kind == "few" else POINT_COUNT
    offset = {"offset": FAR_MEAN, "float32": FAR_MEAN_FLOAT32}.get(kind, 0.0)
    sound = gaussian(points, FEATURE_COUNT, offset=offset, seed=seed)
    x = np.array(sound.x)
    if kind == "constant":
        x[:, -1] = 1.0
    if kind == "duplicate":
        x[:, FEATURE_COUNT // 2 :] = x[:, : FEATURE_COUNT // 2]
    return make_dataset(
        "broken",
        scale * x,
        sound.y,
        source="made by datasets.broken",
        class_names=sound.class_names,
        precision="float32" if kind == "float32" else "float64",
    )
