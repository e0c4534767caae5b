"""The numbers of the studies in `conf/experiment/notes`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep
from normbench.results.studies.gallery import of_only


def aligned_perturbation(sweep: Sweep) -> dict[str, float]:
    """Return how much of noise is no grey.

    `grey`: the cosine of the first axis
    and g, the direction in which red, green and blue are equal. `off_aligned`: of noise that has
    along each axis v_k the variance l_k, the expected share of its square off g,
    `sum l_k (1 - (v_k . g)^2) / sum l_k`; `off_round`: the same of noise alike in all directions.
    """
    parts = of_only(sweep, "biplot")
    axes, deviations = parts["entries"], parts["deviations"]
    along = axes.sum(axis=0) / len(axes) ** 0.5  # of each axis on g
    off = 1 - along**2
    return {
        "grey": abs(float(along[0])),
        "off_aligned": float(np.average(off, weights=deviations**2)),
        "off_round": float(np.mean(off)),
    }


KIND = names.setting("dataset.augment")


def augmented_copies(sweep: Sweep) -> dict[str, float]:
    """Return the shape of the training points with and without copies, and the test error.

    `none`, `round`: the largest eigenvalue of the covariance over the smallest, the median over
    the splits; `aligned_over_none`: that of aligned copies over that of none. `more_error`: the
    share of the test points misclassified at the end, with round copies less without, the mean
    over the splits.
    """
    schemes = sweep.of_role(names.SCHEME)
    spectra = sweep.arrays(schemes, "spectrum")
    condition: dict[str, float] = {}
    error: dict[str, float] = {}
    for kind, rows in schemes.groupby(schemes[KIND].astype(str)):
        values = [spectra[label]["before"] for label in rows["label"]]
        condition[str(kind)] = float(np.median([one[0] / one[-1] for one in values]))
        wrong = rows[names.FINAL_TEST_MISCLASSIFICATIONS.column] / rows["test_points"]
        error[str(kind)] = float(wrong.mean())
    return {
        "none": condition["None"],
        "round": condition["round"],
        "aligned_over_none": condition["aligned"] / condition["None"],
        "more_error": error["round"] - error["None"],
    }


def dimension_reduction(sweep: Sweep) -> dict[str, float]:
    """Return `kept`: 1 minus the share that is lost.

    The share is measured on the points: of their squared distances from the mean, what is missing
    after they went to one component and back.
    """
    (lost,) = sweep.of_role(names.SCHEME)[names.VARIANCE_LOST.column]
    return {"kept": 1 - float(lost)}


def iris_pca(sweep: Sweep) -> dict[str, float]:
    """Return what the angles between arrows tell.

    An arrow is a feature's entries
    in the components, each times the root of its eigenvalue. `gap`: the largest difference between
    the cosine of two arrows and the correlation of their features; `gap_of_two`: of arrows in two
    components.
    """
    biplot = of_only(sweep, "biplot")
    arrows = biplot["entries"] * biplot["deviations"]
    found = {}
    for name, some in (("gap", arrows), ("gap_of_two", arrows[:, :2])):
        units = some / np.linalg.norm(some, axis=1, keepdims=True)
        found[name] = float(np.abs(units @ units.T - biplot["correlation"]).max())
    return found


def zca_2d(sweep: Sweep) -> dict[str, float]:
    """Return by how much each whitening turns the points, and what is left between both.

    A whitening is `Z = X W'` of centred points X (P, 2). Its polar factor Q, the orthogonal matrix
    nearest to W, is a turn, or a turn and a flip. `zca_turn`, `pca_turn`: the largest angle, in
    degrees, between a vector and its image under Q, `arccos` of the smallest real part of Q's
    eigenvalues. `between`: the largest distance between a point under PCA and the same under ZCA
    and `Q_pca`.
    """
    found = sweep.arrays(sweep.of_role(names.SCHEME), "points")
    points = {label: parts["points"] for label, parts in found.items()}
    x = points["centre"]
    factors = {}
    for label in ("pca_sphere", "zca_sphere"):
        matrix = np.linalg.lstsq(x, points[label], rcond=None)[0].T
        left, _, right = np.linalg.svd(matrix)
        factors[label] = left @ right
    turned = points["zca_sphere"] @ factors["pca_sphere"].T
    return {
        "zca_turn": _angle(factors["zca_sphere"]),
        "pca_turn": _angle(factors["pca_sphere"]),
        "between": float(np.abs(turned - points["pca_sphere"]).max()),
    }


def _angle(factor: np.ndarray) -> float:
    """Return the largest angle between a vector and its image, in degrees."""
    values = np.linalg.eigvals(factor)
    return float(np.degrees(np.abs(np.arctan2(values.imag, values.real)).max()))


def zca_images(sweep: Sweep) -> dict[str, float]:
    """Return `zca_alike` and `pca_alike`: how much a whitened digit looks like the digit.

    The correlation, over the pixels, of an image and its coordinates under the scheme, row by row
    (of fewer coordinates, the others are 0); the mean over the 8 images that are recorded.
    """
    found = sweep.arrays(sweep.of_role(names.SCHEME), "components")
    return {
        f"{label.removesuffix('_sphere')}_alike": _alike(parts["points"], parts["under"])
        for label, parts in found.items()
    }


def _alike(images: np.ndarray, under: np.ndarray) -> float:
    whole = np.pad(under, ((0, 0), (0, images.shape[1] - under.shape[1])))
    return float(np.mean([np.corrcoef(one, other)[0, 1] for one, other in zip(images, whole)]))
