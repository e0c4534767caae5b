"""The training points under the scheme, in two coordinates."""

import numpy as np

from normbench import names
from normbench.measures.contract import Findings, FinishedJob, Measure
from normbench.measures.inputs import names_of, principal, sample_indices, targets_of
from normbench.normalizers.decomposition import Surrogate
from normbench.theory import spectra


def take(job: FinishedJob) -> Findings:
    """Return at most 2,000 points, and their principal axes.

    `points` (p, 2): the two features of the scheme, or the two leading principal directions of
    more; of a single feature, feature and target. `names` (2,); `mean` (2,); `axes` (2, 2), a
    principal axis a row, one standard deviation long, or (0, 2) of a single feature; `target`
    (p,), class indices, real targets, or zeros; `class_names` (C,). The number
    `theory/covariance_condition`: the largest variance over the smallest, of live directions; 1
    where the points are sphered, whatever rotates or scales them all.
    """
    dataset, z = job.dataset, job.z
    indices = sample_indices(len(z))
    labels = list(names_of(job))
    surrogate = job.surrogates[1]  # of all points, also where z is a sample
    spread, axes_of_all = principal(surrogate)
    if z.shape[1] == 1:
        flat = np.column_stack([z[:, 0], dataset.y if len(dataset.y) else np.zeros(len(z))]).astype(
            np.float64
        )
        surrogate = Surrogate(flat)
        labels += ["target" if len(dataset.y) else ""]
    elif z.shape[1] == 2:
        flat, surrogate = z.astype(np.float64), surrogate.mapped(np.eye(2))  # both in float64
    else:
        # Not centred: where the points lie is part of what a scheme does.
        flat, surrogate = z @ axes_of_all[:2].T, surrogate.mapped(axes_of_all[:2])
        labels = list(names.PRINCIPAL)
    deviations, directions = principal(surrogate)
    axes = deviations[:, None] * directions
    variances = spectra.live((spread / (spread[0] or 1.0)) ** 2, len(spread))
    return Findings(
        {names.COVARIANCE_CONDITION.key: spectra.Spectrum(variances).condition_number},
        arrays={
            "points": flat[indices],
            "names": np.array(labels),
            "mean": surrogate.mean,
            "axes": axes if z.shape[1] > 1 else axes[:0],
            **targets_of(dataset, indices),
        },
    )


MEASURE = Measure(take, record="points", of_descent=False)
