"""Transform real targets by a scheme that is fitted on the training targets."""

import warnings
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.dataset import Dataset, OwnTargets
from normbench.datasets.on_disk.content import digest
from normbench.datasets.values import UserError, spell_setting

TARGET_SCHEME_SETTING = "dataset.target_scheme"


def with_target_scheme(dataset: Dataset, scheme: Any) -> Dataset:
    """Return the data set with its real targets under a scheme.

    Args:
        dataset: A data set of real targets.
        scheme: A scikit-learn transformer with an inverse, which is fitted on the training targets;
            None for targets as they are.

    Returns:
        The data set with transformed targets, and the given ones in `own_targets`; unchanged
        without a scheme.

    Raises:
        UserError: The targets are classes or missing, there is a cross-validation, or the scheme
            has no inverse, refuses the targets, or does not return one finite number for each.
    """
    if scheme is None:
        return dataset
    if dataset.task != "regression":
        remedy = f"; of a file of numbers: {spell_setting('dataset.task', 'regression')}"
        raise UserError(
            f"{spell_setting(TARGET_SCHEME_SETTING)}: is for real targets, and {dataset.name} has "
            + (f"classes; leave it out{remedy}" if dataset.classes else "none; leave it out")
        )
    if dataset.folds:
        raise UserError(
            f"{spell_setting(TARGET_SCHEME_SETTING)}: is fitted on the training targets, which "
            f"differ between {spell_setting('dataset.folds')}; hold points out by "
            f"{spell_setting('dataset.test_fraction')}, with several values of "
            f"{spell_setting('dataset.split_seed')}"
        )
    if not hasattr(scheme, "inverse_transform"):
        raise _refusal(scheme, "has no inverse_transform, so that predictions would have no units")
    y, y_test = dataset.y, dataset.y_test
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            scheme.fit(y[:, None])
            transformed, transformed_test = (_transform(scheme, targets) for targets in (y, y_test))
    except UserError:  # of `_transform`
        raise
    except (TypeError, ValueError) as error:
        raise _refusal(scheme, f"refuses the targets ({' '.join(str(error).split())})") from error
    content = f"{dataset.fingerprint} {digest(transformed, transformed_test, y, y_test)}"
    return replace(
        dataset,
        y=transformed,
        y_test=transformed_test,
        own_targets=OwnTargets(y, y_test, scheme),
        fingerprint=sha256(content.encode()).hexdigest(),
    )


def _transform(scheme: Any, targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return targets (P,) under a fitted scheme.

    Raises `UserError` where the scheme does not return one finite number for each.
    """
    if not len(targets):  # no test part: scikit-learn refuses empty arrays
        return targets
    z = np.asarray(scheme.transform(targets[:, None]))
    if z.shape != (len(targets), 1):
        count = f"{len(targets)} targets, and it takes one number for each"
        raise _refusal(scheme, f"gives shape {z.shape} for {count}")
    transformed = z[:, 0].astype(np.float64)
    if not np.isfinite(transformed).all():
        raise _refusal(scheme, "gives targets that are not finite")
    return transformed


def _refusal(scheme: Any, reason: str) -> UserError:
    """Return the error that a scheme is unfit for targets.

    Args:
        scheme: The scheme.
        reason: What follows the name of the scheme's class, such as `gives targets that are not
            finite`.
    """
    name = type(scheme).__name__
    remedy = "choose another scheme, such as standard or minmax"
    return UserError(f"{spell_setting(TARGET_SCHEME_SETTING)}: {name} {reason}; {remedy}")
