"""The numbers of the studies in `conf/experiment/exercises`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep
from normbench.results.studies.gallery import at_cost
from normbench.results.studies.gallery.batches import descents
from normbench.results.studies.gallery.networks import INSIDE


def linear_autoencoder(sweep: Sweep) -> dict[str, float]:
    """Return the solution of the autoencoder under each scheme, over its starts.

    `SCHEME_overlap`: the mean squared cosine of its axis and the first principal axis.
    `SCHEME_lost`: the mean share of the squares that is lost. `SCHEME_iterations`: the median
    iterations to 1 percent of the excess. `centre_over_sphered`, `standard_over_sphered`: the ratio
    of these medians.
    """
    numbers = {}
    for label, arrays in sweep.arrays(sweep.of_role(names.SCHEME), "autoencoder").items():
        numbers[f"{label}_overlap"] = float(arrays["overlap"].mean())
        numbers[f"{label}_lost"] = float(arrays["lost"].mean())
        numbers[f"{label}_iterations"] = float(np.median(arrays["iterations"]))
    sphered = numbers["pca_sphere_iterations"]
    for label in ("centre", "standard"):
        numbers[f"{label}_over_sphered"] = numbers[f"{label}_iterations"] / sphered
    return numbers


def pca_basis(sweep: Sweep) -> dict[str, float]:
    """Return the basis of principal directions, and its effect on the points.

    `direction_1_n`: entry n of the first direction, whose largest entry is positive. `cosine`: the
    absolute cosine of the two directions. `correlation`: the absolute correlation of the two
    coordinates of the points under `pca`.
    """
    points = sweep.arrays(sweep.of_role(names.SCHEME), "points")
    # Unit vectors along the two principal axes.
    first, second = (axis / np.linalg.norm(axis) for axis in points["centre"]["axes"])
    first = first * np.sign(first[np.abs(first).argmax()])
    return {
        "direction_1_1": float(first[0]),
        "direction_1_2": float(first[1]),
        "cosine": abs(float(first @ second)),
        "correlation": abs(float(np.corrcoef(points["pca"]["points"].T)[0, 1])),
    }


# The model of scikit-learn, our cost of the same kind, the scheme, and scikit-learn's step size.
SAME_SCHEDULES = (
    ("classifier", "softmax", "identity", 0.01),
    ("classifier", "softmax", "standard", 0.01),
    ("regressor", "least_squares", "standard", 0.001),
)
TARGET_COST = 0.3  # a training cost


def standard_against_sphering(sweep: Sweep) -> dict[str, float]:
    """Return the iterations to the target cost, and the test errors at it, over the splits.

    `*_fewest`, `*_most`: the range of the iterations over the splits. `more_error`: the mean over
    the splits of the difference sphered minus standard in the share of misclassified test points.
    `more_error_doubt`: the standard error of that mean, over 6 splits with the divisor 5.
    """
    rows = at_cost(sweep, TARGET_COST).pivot(
        index=names.setting("dataset.split_seed"),
        columns="normalizer",
        values=["iteration", "missed"],
    )
    error_differences = rows["missed"]["pca_sphere"] - rows["missed"]["standard"]
    counts = rows["iteration"].astype(float)  # NaN for a split that does not reach the cost
    numbers = {
        "more_error": float(error_differences.mean()),
        "more_error_doubt": float(error_differences.sem()),
    }
    for name, scheme in (("standard", "standard"), ("sphered", "pca_sphere")):
        numbers[f"{name}_fewest"] = float(counts[scheme].min(skipna=False))
        numbers[f"{name}_most"] = float(counts[scheme].max(skipna=False))
    return numbers


def scaling_sgd(sweep: Sweep) -> dict[str, float]:
    """Return how scikit-learn's stochastic gradient descent compares with ours, and by scheme.

    `classifier_SCHEME`, `regressor_SCHEME`: the relative difference of the costs after equally many
    passes with the same constant step, order and start. `default_SCHEME`: misclassified points of
    an `SGDClassifier` with its defaults, in the order of its seed 0. `default_decades`: the decimal
    logarithm of the mean squared errors of an `SGDRegressor` with its defaults, raw over
    standardized.
    """
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import SGDClassifier, SGDRegressor
    from sklearn.preprocessing import StandardScaler

    x, classes = load_breast_cancer(return_X_y=True)
    y = np.where(classes > 0, 1.0, -1.0)
    points = {"identity": x, "standard": StandardScaler().fit_transform(x)}
    jobs = {
        (descent.job[names.COST.column], descent.job["normalizer"]): descent
        for descent in descents(sweep)
    }
    schedule = {"penalty": None, "learning_rate": "constant", "shuffle": False, "tol": None}
    numbers = {}
    for name, cost, scheme, step_size in SAME_SCHEDULES:
        ours = jobs[cost, scheme]
        # As many passes as ours has iterations; the first cost is that of the start.
        options = schedule | {"max_iter": ours.costs.shape[1] - 1, "eta0": step_size}
        if name == "classifier":
            theirs = SGDClassifier(loss="log_loss", **options).fit(points[scheme], y)
            costs = np.logaddexp(0, -y * theirs.decision_function(points[scheme]))
        else:
            theirs = SGDRegressor(**options).fit(points[scheme], y)
            costs = (theirs.predict(points[scheme]) - y) ** 2
            step_size /= 2  # ours: scikit-learn's squared error has a factor 1/2, ours has none
        # Of our descents, the one with that step size.
        row = int(np.argmin(np.abs(ours.step_sizes - step_size)))
        numbers[f"{name}_{scheme}"] = abs(float(costs.mean() / ours.costs[row, -1]) - 1)
    errors = {}
    for scheme, z in points.items():
        missed = SGDClassifier(random_state=0).fit(z, y).predict(z) != y
        numbers[f"default_{scheme}"] = float(missed.sum())
        errors[scheme] = np.mean((SGDRegressor(random_state=0).fit(z, y).predict(z) - y) ** 2)
    numbers["default_decades"] = float(np.log10(errors["identity"] / errors["standard"]))
    return numbers


def two_moons_deep(sweep: Sweep) -> dict[str, float]:
    """Return `accuracy_INSIDE` and `cost_INSIDE` by the normalization inside the network.

    Both are at the step size with the lowest final training cost. `accuracy_INSIDE`: the percentage
    of the held-out points that are classified correctly. `cost_INSIDE`: that training cost over the
    one of the plain network.
    """
    # One row a normalization, with the numbers of its best step size.
    rows = sweep.of_role(names.SCHEME).set_index(INSIDE)
    missed = rows[names.FINAL_TEST_MISCLASSIFICATIONS.column] / rows["test_points"].astype(float)
    costs = rows[names.FINAL_COST.column]
    numbers = {f"accuracy_{inside}": float(100 * (1 - share)) for inside, share in missed.items()}
    return numbers | {
        f"cost_{inside}": float(cost / costs["none"]) for inside, cost in costs.items()
    }
