"""The numbers of the studies in `conf/experiment/notes`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep
from normbench.results.studies.gallery import arrays_of_only_scheme


def aligned_perturbation(sweep: Sweep) -> dict[str, float]:
    """Return the share of colour noise that is orthogonal to grey.

    `grey`: the cosine of the first axis and g, the direction in which red, green and blue are
    equal. `off_aligned`: the expected share of the squared noise orthogonal to g,
    `sum l_k (1 - (v_k . g)^2) / sum l_k`, for noise of variance l_k along each axis v_k.
    `off_round`: the same for isotropic noise.
    """
    biplot = arrays_of_only_scheme(sweep, "biplot")
    axes, deviations = biplot["entries"], biplot["deviations"]
    grey_cosines = axes.sum(axis=0) / len(axes) ** 0.5  # of each axis and g
    off_grey = 1 - grey_cosines**2
    return {
        "grey": abs(float(grey_cosines[0])),
        "off_aligned": float(np.average(off_grey, weights=deviations**2)),
        "off_round": float(np.mean(off_grey)),
    }


AUGMENTATION = names.setting("dataset.augment")


def augmented_copies(sweep: Sweep) -> dict[str, float]:
    """Return the condition number of the training points with and without copies, and test errors.

    `none`, `round`: the median over the splits of the largest eigenvalue of the covariance over the
    smallest, without copies and with round ones. `aligned_over_none`: the condition number with
    aligned copies over the one without copies. `more_error`: the mean over the splits of the final
    share of misclassified test points with round copies minus the share without copies.
    """
    schemes = sweep.of_role(names.SCHEME)
    spectra = sweep.arrays(schemes, "spectrum")
    condition: dict[str, float] = {}
    error: dict[str, float] = {}
    for augmentation, rows in schemes.groupby(schemes[AUGMENTATION].astype(str)):
        spectra_of_splits = [spectra[label]["before"] for label in rows["label"]]
        condition[str(augmentation)] = float(
            np.median([eigenvalues[0] / eigenvalues[-1] for eigenvalues in spectra_of_splits])
        )
        error_rates = rows[names.FINAL_TEST_MISCLASSIFICATIONS.column] / rows["test_points"]
        error[str(augmentation)] = float(error_rates.mean())
    return {
        "none": condition["None"],
        "round": condition["round"],
        "aligned_over_none": condition["aligned"] / condition["None"],
        "more_error": error["round"] - error["None"],
    }


def dimension_reduction(sweep: Sweep) -> dict[str, float]:
    """Return `kept`, 1 minus the share of the variance that one component loses.

    The share is the squared reconstruction error of the points over their squared distances from
    the mean.
    """
    # The sweep has one scheme.
    (lost,) = sweep.of_role(names.SCHEME)[names.VARIANCE_LOST.column]
    return {"kept": 1 - float(lost)}


def iris_pca(sweep: Sweep) -> dict[str, float]:
    """Return how well the angles between arrows of a biplot show the correlations of features.

    The arrow of a feature has its entries in the components, each times the root of the
    component's eigenvalue. `gap`: the largest difference between the cosine of two arrows and the
    correlation of their features. `gap_of_two`: the same for arrows in the first two components.
    """
    biplot = arrays_of_only_scheme(sweep, "biplot")
    arrows = biplot["entries"] * biplot["deviations"]
    gaps = {}
    for name, selected_arrows in (("gap", arrows), ("gap_of_two", arrows[:, :2])):
        # Rows of length 1, whose products are cosines.
        units = selected_arrows / np.linalg.norm(selected_arrows, axis=1, keepdims=True)
        gaps[name] = float(np.abs(units @ units.T - biplot["correlation"]).max())
    return gaps


def zca_2d(sweep: Sweep) -> dict[str, float]:
    """Return the angle by which each whitening rotates the points, and the difference of both.

    A whitening is `Z = X W'` of centred points X (P, 2). Its polar factor Q, the orthogonal matrix
    nearest to W, is a rotation, or a rotation and a reflection. `zca_turn`, `pca_turn`: the largest
    angle, in degrees, between a vector and its image under Q, `arccos` of the smallest real part of
    Q's eigenvalues. `between`: the largest difference in a coordinate between a point under PCA and
    the same point under ZCA and `Q_pca`.
    """
    arrays_by_label = sweep.arrays(sweep.of_role(names.SCHEME), "points")
    points = {label: arrays["points"] for label, arrays in arrays_by_label.items()}
    x = points["centre"]
    factors = {}
    for label in ("pca_sphere", "zca_sphere"):
        # W of `Z = X W'`, then its polar factor by the singular value decomposition.
        matrix = np.linalg.lstsq(x, points[label], rcond=None)[0].T
        left_vectors, _, right_vectors = np.linalg.svd(matrix)
        factors[label] = left_vectors @ right_vectors
    rotated = points["zca_sphere"] @ factors["pca_sphere"].T
    return {
        "zca_turn": _angle(factors["zca_sphere"]),
        "pca_turn": _angle(factors["pca_sphere"]),
        "between": float(np.abs(rotated - points["pca_sphere"]).max()),
    }


def _angle(factor: np.ndarray) -> float:
    """Return the largest angle between a vector and its image, in degrees.

    Args:
        factor: An orthogonal matrix (n, n), whose eigenvalues are `exp(i angle)`.
    """
    values = np.linalg.eigvals(factor)
    return float(np.degrees(np.abs(np.arctan2(values.imag, values.real)).max()))


def zca_images(sweep: Sweep) -> dict[str, float]:
    """Return `zca_alike` and `pca_alike`, the similarity of a whitened digit to the digit.

    The similarity is the correlation over the pixels of an image and its coordinates under the
    scheme, padded with 0 to the number of pixels. The number is the mean over the 8 recorded
    images.
    """
    arrays_by_label = sweep.arrays(sweep.of_role(names.SCHEME), "components")
    return {
        f"{label.removesuffix('_sphere')}_alike": _mean_correlation(
            arrays["points"], arrays["under"]
        )
        for label, arrays in arrays_by_label.items()
    }


def _mean_correlation(images: np.ndarray, coordinates: np.ndarray) -> float:
    """Return the mean correlation of images `(n, pixels)` with their coordinates `(n, k)`.

    The coordinates are padded with 0 to the number of pixels, as `zca_images` says.
    """
    padded = np.pad(coordinates, ((0, 0), (0, images.shape[1] - coordinates.shape[1])))
    return float(
        np.mean(
            [np.corrcoef(image, padded_image)[0, 1] for image, padded_image in zip(images, padded)]
        )
    )
