"""The training points under the scheme, in two coordinates."""

import numpy as np

from normbench import names
from normbench.measures.contract import Findings, FinishedJob, Measure
from normbench.measures.inputs import names_of, principal_directions, sample_indices, target_arrays
from normbench.theory import spectra


def take(job: FinishedJob) -> Findings:
    """Return at most 2,000 points in two coordinates, and their principal axes.

    `points` (p, 2): the two features under the scheme; of more features, the coordinates along the
    two leading principal directions; of a single one, that feature and the target. `names` (2,) of
    the coordinates; `mean` (2,); `axes` (2, 2), a principal axis a row, one standard deviation
    long, or (0, 2) for a single feature; `target` (p,), class indices, real targets, or zeros;
    `class_names` (C,). The number `theory/covariance_condition`: the largest variance over the
    smallest, of directions above rounding; it is 1 where the points are sphered, also after a
    rotation or a scaling of all features by one factor.
    """
    dataset, z = job.dataset, job.z
    indices = sample_indices(len(z))
    labels = list(names_of(job))
    moments = job.moments[1]  # of all points, also where z is a sample
    all_deviations, all_directions = principal_directions(moments)
    # `flat` (P, 2) and its moment rows: what is drawn.
    if z.shape[1] == 1:
        flat = np.column_stack([z[:, 0], dataset.y if len(dataset.y) else np.zeros(len(z))]).astype(
            np.float64
        )
        moments = flat
        labels += ["target" if len(dataset.y) else ""]
    elif z.shape[1] == 2:
        flat, moments = z.astype(np.float64), moments.astype(np.float64)
    else:
        # Not centred: where the points lie is part of what a scheme does.
        flat, moments = z @ all_directions[:2].T, moments @ all_directions[:2].T
        labels = list(names.PRINCIPAL)
    deviations, directions = principal_directions(moments)
    axes = deviations[:, None] * directions
    # Over the largest, so that the squares do not overflow; the condition number stays the same.
    relative_deviations = all_deviations / (all_deviations[0] or 1.0)
    variances = spectra.eigenvalues_above_rounding(relative_deviations**2, len(all_deviations))
    return Findings(
        {names.COVARIANCE_CONDITION.key: spectra.Spectrum(variances).condition_number},
        arrays={
            "points": flat[indices],
            "names": np.array(labels),
            "mean": moments.mean(axis=0, dtype=np.float64),
            "axes": axes if z.shape[1] > 1 else axes[:0],  # feature and target have no axes
            **target_arrays(dataset, indices),
        },
    )


MEASURE = Measure(take, record="points", of_descent=False)
