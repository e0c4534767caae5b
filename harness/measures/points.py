"""Points before and under the scheme, sampled for figures: in planes, as images, with spectra."""

from contextlib import suppress

import numpy as np

from normbench import names
from normbench.datasets import Dataset
from normbench.datasets.sampling import NOISE_SHAPES, factor_noise
from normbench.measures.contract import Array, Findings, FinishedJob, measure
from normbench.normalizers.decomposition import fix_signs, mean_and_covariance
from normbench.theory import spectra

MAX_DRAWN_POINTS = 2000
MOST_FEATURES = 4096  # of an image, or of a spectrum
MAX_RECORDED_FEATURES = 30
MAX_ARROWS = 60
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of exemplars, along each coordinate
MOST_COMPONENTS = 64
SYMMETRY_TOLERANCE = 1e-6  # of the largest entry
MAX_IMAGES = 8
NOISY_COPIES = 12
NOISE = 0.2  # times the root of the eigenvalue
MAX_SIDE = 160  # pixels of the longer side


def sample(dataset: Dataset) -> tuple[Array, dict[str, Array]]:
    """Return the indices of the points that figures show, and two arrays that go with them.

    Returns:
        Increasing indices (p,) of at most 2,000 points, drawn at random where there are more.
        `target` (p,), the targets of these points, zeros where the data set has none; and
        `class_names` (C,), empty for real targets.
    """
    count = len(dataset.x)
    indices = np.arange(count)
    if count > MAX_DRAWN_POINTS:
        drawn = np.random.default_rng(0).choice(count, MAX_DRAWN_POINTS, replace=False)
        indices = np.sort(drawn)
    return indices, {
        "target": targets_of(dataset)[indices],
        "class_names": np.array(dataset.class_names, dtype=np.str_),
    }


def targets_of(dataset: Dataset) -> Array:
    """Return the targets (P,) of a data set; zeros where it has none."""
    return dataset.y if len(dataset.y) else np.zeros(len(dataset.x))


def coordinate_names(job: FinishedJob) -> tuple[str, ...]:
    """Return a name for each of the M coordinates of the scheme.

    It is the name that the scheme gives; else that of the feature, where there are as many
    coordinates as features; else a number from 1.
    """
    feature_names = job.dataset.feature_names
    with suppress(AttributeError, ValueError):  # a scheme of a pipeline may give no names
        return tuple(job.scheme.get_feature_names_out(np.array(feature_names, dtype=object)))
    if job.z.shape[1] == len(feature_names):
        return feature_names
    return tuple(f"coordinate {n + 1}" for n in range(job.z.shape[1]))


def principal_directions(x: Array) -> tuple[Array, Array]:
    """Return the standard deviations along the principal directions, and these directions.

    The points are scaled first, so that large ones do not overflow.

    Args:
        x: Points (P, N), or rows with their mean and covariance.

    Returns:
        The standard deviations `(N,)`, decreasing, and the directions `(N, N)`, one a row.
    """
    scale = float(np.abs(x).max()) or 1.0
    values, vectors = np.linalg.eigh(mean_and_covariance(x / scale)[1])
    return scale * np.sqrt(np.maximum(values[::-1], 0.0)), vectors.T[::-1]


def invert(job: FinishedJob, coordinates: Array) -> Array:
    """Return the points of the inputs (k, N) with given coordinates (k, M), in float64."""
    return np.asarray(job.scheme.inverse_transform(coordinates), dtype=np.float64)


@measure("points", of_descent=False)
def points(job: FinishedJob) -> Findings:
    """Return at most 2,000 points in two coordinates, and their principal axes.

    `points` (p, 2): the two features under the scheme; of more features, the coordinates along the
    two leading principal directions; of a single one, that feature and the target. `names` (2,) of
    the coordinates; `mean` (2,); `axes` (2, 2), a principal axis a row, one standard deviation
    long, or (0, 2) for a single feature; `target` (p,), class indices, real targets, or zeros;
    `class_names` (C,). The number `theory/covariance_condition`: the largest variance over the
    smallest, of directions above rounding; it is 1 where the points are sphered, also after a
    rotation or a scaling of all features by one factor.
    """
    indices, target_arrays = sample(job.dataset)
    width, labels = job.z.shape[1], [*coordinate_names(job)]
    rows = job.moments[1]  # with the mean and covariance of all points, also where z is a sample
    all_deviations, all_directions = principal_directions(rows)
    plane = job.z
    if width == 1:
        plane = rows = np.column_stack([job.z[:, 0], targets_of(job.dataset)])
        labels += ["target" if len(job.dataset.y) else ""]
    elif width > 2:
        # Not centred: where the points lie is part of what a scheme does.
        plane, rows = job.z @ all_directions[:2].T, rows @ all_directions[:2].T
        labels = list(names.PRINCIPAL)
    rows = rows.astype(np.float64)
    deviations, directions = principal_directions(rows)
    # Over the largest, so that the squares do not overflow; the condition number stays the same.
    relative_deviations = all_deviations / (all_deviations[0] or 1.0)
    variances = spectra.eigenvalues_above_rounding(relative_deviations**2, len(all_deviations))
    return Findings(
        {names.COVARIANCE_CONDITION.key: spectra.Spectrum(variances).condition_number},
        arrays={
            "points": plane[indices].astype(np.float64),
            "names": np.array(labels),
            "mean": rows.mean(axis=0),
            # A feature and the target have no axes.
            "axes": (deviations[:, None] * directions)[: 2 if width > 1 else 0],
            **target_arrays,
        },
    )


@measure("features", of_descent=False)
def features(job: FinishedJob) -> Findings:
    """Return the first 30 features under the scheme of at most 2,000 points.

    `values` (p, m), `names` (m,), `all` (): the number of all features under the scheme.
    """
    indices, _ = sample(job.dataset)
    return Findings(
        arrays={
            "values": job.z[indices, :MAX_RECORDED_FEATURES].astype(np.float64),
            "names": np.array(coordinate_names(job)[:MAX_RECORDED_FEATURES]),
            "all": np.array(job.z.shape[1]),
        }
    )


@measure("biplot", of_descent=False, features=(2, MOST_FEATURES))
def biplot(job: FinishedJob) -> Findings:
    """Return at most 2,000 points, and the features as arrows; nothing of a single coordinate.

    `points` (p, 2): along the two leading principal directions of the points under the scheme,
    centred, in standard deviations. `loadings` (m, 2): the arrow of each feature, which holds its
    entries in those directions times the roots of their eigenvalues, so that over all directions
    the cosine between two arrows is the correlation of their features. The m features, at most 60,
    are those of the longest arrows. `entries` (m, K): the entries of these features in the first K
    directions, at most 60, and `deviations` (K,), the roots. `correlation` (m, m) of these
    features, 0 for constant ones. `names` (m,); `shares` (2,) of the variance; `target` (p,),
    `class_names` (C,). Source: Gabriel, "The biplot graphic display of matrices", Biometrika 58
    (1971).
    """
    if job.z.shape[1] == 1:
        return Findings()
    indices, target_arrays = sample(job.dataset)
    rows = job.moments[1]  # with the mean and covariance of all points, also where z is a sample
    deviations, directions = principal_directions(rows)
    directions = fix_signs(directions)
    scores = (job.z[indices] - rows.mean(axis=0, dtype=np.float64)) @ directions[:2].T
    loadings = directions[:2].T * deviations[:2]
    longest = np.sort(np.argsort(-np.hypot(*loadings.T), kind="stable")[:MAX_ARROWS])
    products = mean_and_covariance(rows[:, longest])[1]
    scale = positive(np.sqrt(np.diag(products)))
    return Findings(
        arrays={
            "points": scores / positive(deviations[:2]),
            "loadings": loadings[longest],
            "entries": directions[:MAX_ARROWS].T[longest],
            "deviations": deviations[:MAX_ARROWS],
            "correlation": products / scale / scale[:, None],
            "names": np.array(coordinate_names(job), dtype=np.str_)[longest],
            "shares": deviations[:2] ** 2 / (float((deviations**2).sum()) or 1.0),
            **target_arrays,
        }
    )


def positive(lengths: Array) -> Array:
    """Return lengths with 1 in place of 0, to divide by."""
    return np.where(lengths > 0, lengths, 1.0)


@measure(
    "exemplars",
    of_descent=False,
    features=(2, MOST_FEATURES),
    suits=lambda data: len(data.x) >= len(QUANTILES) ** 2,
    needs=f"at least {len(QUANTILES) ** 2} points",
)
def exemplars(job: FinishedJob) -> Findings:
    """Return 25 different training points, the exemplars, along two coordinates of the scheme.

    The coordinates are the two of the largest variance. `wanted` (25, 2): all pairs of their 5, 25,
    50, 75 and 95 percent quantiles, row by row, the first coordinate rising along a row, the second
    falling from row to row. `place` (25,): for each pair in that order, the index of the nearest
    point, in standard deviations, that is no exemplar yet; `at` (25, 2): its coordinates. `images`
    (25, N): its features. `cloud` (p, 2): the coordinates of at most 2,000 of all points. Nothing
    of a single coordinate. Source: Hastie, Tibshirani, Friedman, "The Elements of Statistical
    Learning", 2nd ed., figure 14.23.
    """
    if job.z.shape[1] == 1:
        return Findings()
    deviations = job.z.std(axis=0, dtype=np.float64)
    leading = np.argsort(-deviations, kind="stable")[:2]
    plane, scale = job.z[:, leading].astype(np.float64), positive(deviations[leading])
    scaled = plane / scale
    first, second = np.quantile(plane, QUANTILES, axis=0).T
    # Row by row from the top, as they are drawn.
    wanted = np.array([(across, upward) for upward in second[::-1] for across in first])
    is_available = np.ones(len(plane), dtype=bool)
    nearest = []
    for position in wanted:
        distances = ((scaled - position / scale) ** 2).sum(axis=1)
        nearest.append(int(np.where(is_available, distances, np.inf).argmin()))
        is_available[nearest[-1]] = False
    return Findings(
        arrays={
            "wanted": wanted,
            "place": np.array(nearest),
            "at": plane[nearest],
            "images": job.dataset.x[nearest].astype(np.float32),
            "cloud": plane[sample(job.dataset)[0]],
        }
    )


@measure("projection", of_descent=False, features=(2, 3), inverse=True)
def projection(job: FinishedJob) -> Findings:
    """Return at most 2,000 points with their reconstructions, and the share of variance lost.

    `points` (p, N) and `back` (p, N): the points, and their reconstructions by the inverse
    transform, which are projections where the scheme keeps some components only; `kept` (): M, the
    number of coordinates; `lost` (): the squared distance of all points from their reconstructions,
    as a share of that from their mean. `target` (p,), `class_names` (C,) and `names` (N,).
    """
    x, (indices, target_arrays) = job.dataset.x, sample(job.dataset)
    reconstructed = invert(job, job.z.astype(np.float64))
    spread = float(np.sum((x - x.mean(axis=0)) ** 2))
    lost = float(np.sum((x - reconstructed) ** 2)) / spread if spread else 0.0
    return Findings(
        {names.VARIANCE_LOST.key: lost},
        arrays={
            "points": x[indices],
            "back": reconstructed[indices],
            "kept": np.array(job.z.shape[1]),
            "lost": np.array(lost),
            "names": np.array(job.dataset.feature_names),
            **target_arrays,
        },
    )


@measure("components", of_descent=False, features=(1, MOST_FEATURES), inverse=True)
def components(job: FinishedJob) -> Findings:
    """Return components, one training point rebuilt from them, and a few points under the scheme.

    Coordinates stand in the order of the variance that each adds to the points, the largest first.
    `components` (m, N): what a unit along a coordinate adds to a point of the inputs, scaled to
    length 1; m at most 64. `variance` (m,): the share of the variance that each coordinate adds;
    the shares of all M coordinates sum to 1. `origin` (N,): the input whose coordinates are 0, the
    mean under a scheme that centres. `weights` (m,): how much of each component the training point
    has that `shown_point` names. `count` (K,): numbers of coordinates, all from 0 to M where M is
    at most 64, else some of them. `built` (K, N): that training point rebuilt from so many
    coordinates, `original` (N,) the point itself, `share` (K,): the share of the variance of the
    inputs that so many coordinates explain: that of all coordinates, less the variance of what the
    others add. `points` (p, N): the first 8 training points; `under` (p, M): the same under the
    scheme, with its coordinates in their own order; `pixels` (): whether these are pixels, as under
    a scheme that scales features or mixes them symmetrically.
    """
    width = job.z.shape[1]
    origin = invert(job, np.zeros((1, width)))
    shifts = invert(job, np.eye(width)) - origin  # (M, N)
    lengths = np.linalg.norm(shifts, axis=1)
    # That each coordinate adds to the inputs.
    variance = lengths**2 * job.moments[1].var(axis=0, dtype=np.float64)
    order = np.argsort(-variance, kind="stable")
    first = order[:MOST_COMPONENTS]
    count = np.arange(width + 1)
    if width > MOST_COMPONENTS:
        count = np.unique(np.concatenate([[0], np.geomspace(1, width, 24).round().astype(int)]))
    rank = np.argsort(order)  # the place of each coordinate in the order
    point = job.z[job.shown_point].astype(np.float64)
    masked = np.where(rank < count[:, None], point, 0.0)  # the point with its first coordinates
    # The squares of points around 1e160 overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        input_variance = float(job.moments[0].var(axis=0, dtype=np.float64).sum())
        products = mean_and_covariance(job.moments[1])[1] * (shifts @ shifts.T)
        products = products[np.ix_(order, order)]
        # Each coordinate has its variance, and twice its covariances with those after it.
        added = products.diagonal() + 2 * np.triu(products, 1).sum(axis=1)
        explained = np.concatenate([[0.0], np.cumsum(added)])
    largest = float(np.abs(shifts).max(initial=0.0))
    # Coordinate n is pixel n under a scheme that scales each feature, and one such as ZCA sphering.
    are_pixels = shifts.shape[0] == shifts.shape[1] and np.allclose(
        shifts, shifts.T, rtol=0, atol=SYMMETRY_TOLERANCE * largest
    )
    return Findings(
        arrays={
            "components": (shifts[first] / positive(lengths)[first, None]).astype(np.float32),
            "variance": variance[first] / (variance.sum() or 1.0),
            "origin": origin[0],
            "weights": (point * lengths)[first],
            "count": count,
            "share": explained[count] / (input_variance or 1.0),
            "built": invert(job, masked).astype(np.float32),
            "original": job.dataset.x[job.shown_point].astype(np.float32),
            "points": job.dataset.x[:MAX_IMAGES].astype(np.float32),
            "under": job.z[:MAX_IMAGES].astype(np.float32),
            "pixels": np.array(are_pixels),
        }
    )


@measure(
    "colours",
    of_descent=False,
    suits=lambda data: data.picture is not None and len(data.x) == np.prod(data.picture),
    needs="all pixels of a picture, as dataset=china",
)
def colours(job: FinishedJob) -> Findings:
    """Return a picture, and 12 shifts of the colour of all its pixels for each kind of noise.

    `picture` (h, w, 3): a regular sample of its pixels, from 0 to 255. `aligned`, `round` (12, 3):
    the colour shift of each copy, normally distributed, by seed 0. `aligned`: along each principal
    axis of the colours, with 0.2 times the standard deviation of the colours there. `round`: of the
    same total size, alike in all directions.
    """
    assert job.dataset.picture is not None
    x = job.dataset.x.astype(np.float64)
    stride = -(-max(job.dataset.picture) // MAX_SIDE)  # rounded up
    picture = x.reshape(*job.dataset.picture, -1)[::stride, ::stride].astype(np.uint8)
    drawn = NOISE * np.random.default_rng(0).standard_normal((NOISY_COPIES, x.shape[1]))
    # The same draws for both kinds, each with its own covariance.
    shifts = {shape: drawn @ factor_noise(x, shape) for shape in NOISE_SHAPES}
    return Findings(arrays={"picture": picture, **shifts})


@measure("spectrum", of_descent=False, features=(1, MOST_FEATURES))
def spectrum(job: FinishedJob) -> Findings:
    """Return the spectra before and after the scheme, decreasing; the number `identity_gap`.

    `before` (N,) and `after` (M,): the eigenvalues of the covariance, infinite where they overflow.
    `dead` (): the number of directions before the scheme that are rounding alone, at most N times
    machine epsilon of the largest. `ridge` (): the constant that the scheme adds to the
    eigenvalues, NaN without one. `identity_gap` (): the largest entry of `|Z'Z / P - I|` for the
    points under the scheme; it is 0 where they are centred and sphered.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # of points around 1e160
        before, after = (principal_directions(rows)[0] ** 2 for rows in job.moments)
        mean, products = mean_and_covariance(job.moments[1])
        moments = products + np.outer(mean, mean)
        gap = float(np.abs(moments - np.eye(len(moments))).max())
    floor = len(before) * np.finfo(np.float64).eps * before[0]
    scheme_ridge = getattr(job.scheme, "ridge", None)
    return Findings(
        {names.IDENTITY_GAP.key: gap},
        arrays={
            "before": before,
            "after": after,
            "dead": np.array(np.count_nonzero(before <= floor)),
            "ridge": np.array(np.nan if scheme_ridge is None else float(scheme_ridge)),
            "identity_gap": np.array(gap),
        },
    )
