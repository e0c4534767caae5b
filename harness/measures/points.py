"""Points before and under the scheme, for figures: in planes, as images, and tried on formulas."""

import warnings
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from normbench import names
from normbench.datasets import Dataset
from normbench.datasets.sampling import NOISE_SHAPES, factor_noise
from normbench.measures.contract import Array, Findings, FinishedJob, measure
from normbench.normalizers.decomposition import fix_signs, mean_and_covariance
from normbench.normalizers.whitening import FORMULAS, Formula
from normbench.theory import spectra

MAX_DRAWN_POINTS = 2000
MOST_FEATURES = 4096  # of an image, or of a spectrum
MAX_RECORDED_FEATURES = 30
MAX_ARROWS = 60
MANY = (1, MOST_FEATURES)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of exemplars, along each coordinate
MOST_COMPONENTS = 64
SYMMETRY_TOLERANCE = 1e-6  # of the largest entry
MAX_IMAGES = 8
NOISY_COPIES = 12
NOISE = 0.2  # times the root of the eigenvalue
MAX_SIDE = 160  # pixels of the longer side
NEAR = 0.01  # of the start's excess: a descent with less left counts as converged
MOST_DRAWN_FEATURES = 256  # of points on which an autoencoder or formulas are tried
START_COUNT, START_SCALE = 100, 0.1
RELATIVE_STEP = 0.1  # over the largest eigenvalue of the points' second moments
TRAINING_ITERATIONS = 500
MOST_ITERATIONS = 1000  # of least squares on the points of a formula
FORMULA_QUANTITIES = ("mean", "off", "iterations", "entry", "finite")


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


def lacks_inverse(dataset: Dataset, scheme: Any) -> str:
    """Say that a scheme, fitted or not, needs an inverse."""
    return "" if hasattr(scheme, "inverse_transform") else "a normalizer with an inverse_transform"


def lacks_points(dataset: Dataset, scheme: Any) -> str:
    """Say that each exemplar needs a point."""
    count = len(QUANTILES) ** 2
    return "" if len(dataset.x) >= count else f"at least {count} points"


def lacks_picture(dataset: Dataset, scheme: Any) -> str:
    """Say that points need to be the pixels of a picture."""
    is_whole = dataset.picture is not None and len(dataset.x) == np.prod(dataset.picture)
    return "" if is_whole else "all pixels of a picture, as dataset=china"


def lacks_targets(dataset: Dataset, scheme: Any) -> str:
    """Say that least squares needs targets."""
    return "" if len(dataset.y) else "targets"


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
    arrays = {
        "values": job.z[indices, :MAX_RECORDED_FEATURES].astype(np.float64),
        "names": np.array(coordinate_names(job)[:MAX_RECORDED_FEATURES]),
        "all": np.array(job.z.shape[1]),
    }
    return Findings(arrays=arrays)


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
    arrays = {
        "points": scores / positive(deviations[:2]),
        "loadings": loadings[longest],
        "entries": directions[:MAX_ARROWS].T[longest],
        "deviations": deviations[:MAX_ARROWS],
        "correlation": products / scale / scale[:, None],
        "names": np.array(coordinate_names(job), dtype=np.str_)[longest],
        "shares": deviations[:2] ** 2 / (float((deviations**2).sum()) or 1.0),
        **target_arrays,
    }
    return Findings(arrays=arrays)


def positive(lengths: Array) -> Array:
    """Return lengths with 1 in place of 0, to divide by."""
    return np.where(lengths > 0, lengths, 1.0)


@measure("exemplars", of_descent=False, features=(2, MOST_FEATURES), lacks=lacks_points)
def exemplars(job: FinishedJob) -> Findings:
    """Return 25 different training points, the exemplars, along two coordinates of the scheme.

    The coordinates are the two of the largest variance. `wanted` (25, 2): all pairs of their 5, 25,
    50, 75 and 95 percent quantiles, row by row, the first coordinate rising along a row, the second
    falling from row to row. `place` (25,): for each pair in that order, the index of its exemplar,
    near it in standard deviations; `at` (25, 2): its coordinates. `images`
    (25, N): its features. `cloud` (p, 2): the coordinates of at most 2,000 of all points. Nothing
    of a single coordinate. Source: Hastie, Tibshirani, Friedman, "The Elements of Statistical
    Learning", 2nd ed., figure 14.23.
    """
    if job.z.shape[1] == 1:
        return Findings()
    deviations = job.z.std(axis=0, dtype=np.float64)
    leading = np.argsort(-deviations, kind="stable")[:2]
    plane, scale = job.z[:, leading].astype(np.float64), positive(deviations[leading])
    first, second = np.quantile(plane, QUANTILES, axis=0).T
    # Row by row from the top, as they are drawn.
    wanted = np.array([(across, upward) for upward in second[::-1] for across in first])
    # The pairs whose distances have the smallest sum, so that no point is taken twice.
    nearest = linear_sum_assignment(cdist(wanted / scale, plane / scale, "sqeuclidean"))[1]
    arrays = {
        "wanted": wanted,
        "place": nearest,
        "at": plane[nearest],
        "images": job.dataset.x[nearest].astype(np.float32),
        "cloud": plane[sample(job.dataset)[0]],
    }
    return Findings(arrays=arrays)


@measure("projection", of_descent=False, features=(2, 3), lacks=lacks_inverse)
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


@measure("components", of_descent=False, features=MANY, lacks=lacks_inverse)
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
    arrays = {
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
    return Findings(arrays=arrays)


@measure("colours", of_descent=False, lacks=lacks_picture)
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


@measure("spectrum", of_descent=False, features=MANY)
def spectrum(job: FinishedJob) -> Findings:
    """Return the spectra before and after the scheme, decreasing; the number `identity_gap`.

    `before` (N,) and `after` (M,): the eigenvalues of the covariance. `dead` (): the number of
    directions before the scheme that are rounding alone, at most N times machine epsilon of the
    largest. `ridge` (): the constant that the scheme adds to the eigenvalues, NaN without one.
    `identity_gap`: the largest entry of `|Z'Z / P - I|` for the points under the scheme; it is 0
    where they are centred and sphered.
    """
    before, after = (principal_directions(rows)[0] ** 2 for rows in job.moments)
    mean, products = mean_and_covariance(job.moments[1])
    moments = products + np.outer(mean, mean)
    floor = len(before) * np.finfo(np.float64).eps * before[0]
    scheme_ridge = getattr(job.scheme, "ridge", None)
    return Findings(
        {names.IDENTITY_GAP.key: float(np.abs(moments - np.eye(len(moments))).max())},
        arrays={
            "before": before,
            "after": after,
            "dead": np.array(np.count_nonzero(before <= floor)),
            "ridge": np.array(np.nan if scheme_ridge is None else float(scheme_ridge)),
        },
    )


@measure("autoencoder", of_descent=False, features=(1, MOST_DRAWN_FEATURES))
def autoencoder(job: FinishedJob) -> Findings:
    """Return the outcome of 100 descents of a linear autoencoder of one component.

    It minimizes `mean |z - c c' z|^2` over c (M,), by gradient descent at a step of 0.1 over the
    largest eigenvalue of `G = Z'Z / P`, from random starts. `overlap` (100,): the squared cosine
    between the component and the image of the first principal axis of the inputs under the scheme;
    1 / M by chance. `lost` (100,): the share of the sum of squares that is not reconstructed.
    `iterations` (100,): until 1 percent of the start's excess is left, 500 where more is left to
    the end. `features` (): M. Source: Watt, Borhani, Katsaggelos, "Machine Learning Refined", 2nd
    ed., section 8.3 and exercise 8.5.
    """
    z = job.z.astype(np.float64)
    # Scaled, so that squares do not overflow; no result depends on the scale. 1.0 if all are 0.
    z = z / (float(np.abs(z).max()) or 1.0)
    moments = z.T @ z / len(z)
    values = np.linalg.eigvalsh(moments)
    rng = np.random.default_rng(0)
    weights = START_SCALE * rng.standard_normal((START_COUNT, z.shape[1]))
    # The least cost: all eigenvalues but the largest, which the component reconstructs.
    least_cost = float(values[:-1].sum())
    step_size = RELATIVE_STEP / (values[-1] or 1.0)
    start_costs, _ = reconstruct(moments, weights)
    arrival = np.full(START_COUNT, TRAINING_ITERATIONS)
    for k in range(TRAINING_ITERATIONS):
        costs, gradient = reconstruct(moments, weights)
        is_near = costs - least_cost <= NEAR * (start_costs - least_cost)
        arrival[is_near] = np.minimum(arrival[is_near], k)  # the first such iteration stays
        weights = weights - step_size * gradient
    units = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    arrays = {
        "overlap": (units @ _first_axis(job)) ** 2,
        "lost": reconstruct(moments, weights)[0] / (values.sum() or 1.0),
        "iterations": arrival,
        "features": np.array(z.shape[1]),
    }
    return Findings(arrays=arrays)


def _first_axis(job: FinishedJob) -> Array:
    """Return the image of the first principal axis of the inputs, scaled to length 1, (M,).

    It is the difference of two transformed points, the mean and the mean moved along the axis by
    its standard deviation; zeros where the scheme maps both alike.
    """
    mean = job.dataset.x.mean(axis=0, dtype=np.float64)
    deviations, directions = principal_directions(job.dataset.x)
    ends = np.stack([mean, mean + (deviations[0] or 1.0) * directions[0]])
    image = np.diff(np.asarray(job.scheme.transform(ends), dtype=np.float64), axis=0)[0]
    return np.asarray(image / (np.linalg.norm(image) or 1.0))


def reconstruct(moments: Array, weights: Array) -> tuple[Array, Array]:
    """Return the reconstruction errors `mean |z - c c' z|^2` of S components, and their gradients.

    Args:
        moments: The second moments of the points, `G = Z'Z / P` (M, M).
        weights: A component c for each start (S, M).

    Returns:
        `tr G - 2 c'Gc + c'Gc c'c`, `(S,)`; and `-4 Gc + 2 (Gc c'c + c c'Gc)`, `(S, M)`.
    """
    image = weights @ moments
    inner = (weights * image).sum(axis=1)
    square = (weights**2).sum(axis=1)
    costs = np.trace(moments) - 2 * inner + inner * square
    gradient = -4 * image + 2 * (image * square[:, None] + weights * inner[:, None])
    return costs, gradient


@measure("formulas", of_descent=False, features=(1, MOST_DRAWN_FEATURES), lacks=lacks_targets)
def formulas(job: FinishedJob) -> Findings:
    """Return the quality of each textbook formula on the points: arrays (5,), one entry a formula.

    `formula`: its name. `mean`: the largest `|mean|` of a transformed feature. `off`: the largest
    difference from the promise of the formula. A standardization promises variance 1 for a feature
    that varies and 0 for the others; a sphering promises r eigenvalues 1 of the covariance, r the
    rank of the centred points, and 0 for the others. `iterations`: of gradient descent on least
    squares at the step 1/L, until at most 1 percent is left of the excess over the least cost on
    the points themselves; 1000 where more is left. `entry`: the largest transformed number in size.
    `finite`: 1, or 0 where a transformed number is not finite; the others are then NaN. The job's
    own scheme plays no part.
    """
    x, y = job.dataset.x, job.dataset.y.astype(np.float64)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        quantities = [
            judge_formula(formula, x, y - y.mean(), name.startswith("standard"))
            for name, formula in FORMULAS.items()
        ]
    arrays = dict(zip(FORMULA_QUANTITIES, np.array(quantities).T))
    return Findings(arrays={"formula": np.array(list(FORMULAS)), **arrays})


def judge_formula(formula: Formula, x: Array, y: Array, standard: bool) -> Array:
    """Return the `FORMULA_QUANTITIES` of a formula, in their order (5,).

    Args:
        formula: Transforms points.
        x: Points (P, N).
        y: Centred targets (P,), of mean 0.
        standard: Whether the formula is a standardization and not a sphering.
    """
    try:
        z = formula(x).astype(np.float64)
    except np.linalg.LinAlgError:  # of a covariance that overflowed, as float32 does from 1e19 on
        z = np.full(x.shape, np.nan)
    if not np.isfinite(z).all():
        return np.array([*[np.nan] * 4, 0.0])
    basis, lengths, _ = np.linalg.svd(x - x.mean(axis=0, dtype=np.float64), full_matrices=False)
    # The singular values above rounding, in float64 also for points in float32.
    rank = int(np.count_nonzero(lengths > lengths[0] * max(x.shape) * np.finfo(float).eps))
    means = z.mean(axis=0)
    if standard:
        spread, promised = z.var(axis=0), np.ptp(x, axis=0) > 0
    else:
        spread = np.linalg.svd(z - means, compute_uv=False) ** 2 / len(z)
        promised = np.arange(len(spread)) < rank
    # From the mean of the targets, least squares can remove their projection on the points' span.
    excess = float(np.sum((basis[:, :rank].T @ y) ** 2))
    # Along a singular vector u of [1, z] with singular value s, k steps of size 1/L leave
    # `(1 - s^2 / s_1^2)^k` of `u . y`.
    vectors, lengths, _ = np.linalg.svd(np.c_[np.ones(len(z)), z], full_matrices=False)
    remaining = (1 - (lengths / lengths[0]) ** 2) ** (2 * np.arange(MOST_ITERATIONS)[:, None])
    removed = (1 - remaining) @ (vectors.T @ y) ** 2
    arrivals = np.flatnonzero(removed >= (1 - NEAR) * excess)
    iterations = arrivals[0] if len(arrivals) else MOST_ITERATIONS
    off = np.abs(spread - promised).max()
    return np.array([np.abs(means).max(), off, iterations, np.abs(z).max(), 1.0])
