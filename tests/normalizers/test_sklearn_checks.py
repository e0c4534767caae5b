"""scikit-learn's own checks of an estimator, on each class of schemes of this project."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from normbench.choices import CONF, build, options

NAMES = sorted(file.stem for file in (CONF / "normalizer").glob("*.yaml"))
SCHEMES = {
    type(scheme): scheme
    for scheme in (build("normalizer", options("normalizer", name)) for name in NAMES)
}
OWN = [scheme for kind, scheme in SCHEMES.items() if kind.__module__.startswith("normbench.")]
ALL = parametrize_with_checks(OWN)
ARGUMENTS, CASES = ALL.args


def takes_numpy(case):
    """Whether a check is of NumPy's arrays; others would be skipped, each for want of a library."""
    _, check = getattr(case, "values", case)
    return "array_api" not in check.func.__name__


@pytest.mark.parametrize(ARGUMENTS, [*filter(takes_numpy, CASES)], **ALL.kwargs)
def test_a_scheme_passes_scikit_learns_checks(estimator, check):
    check(estimator)
