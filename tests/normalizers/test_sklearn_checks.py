"""scikit-learn's own checks of an estimator, on every scheme under conf/normalizer."""

import pytest
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from normbench.choices import CONF, build, options

NAMES = sorted(file.stem for file in (CONF / "normalizer").glob("*.yaml"))
STEPS = "scikit-learn's Pipeline puts its fitted steps where its parameter was; known there"


def expected_failures(estimator):
    if not isinstance(estimator, Pipeline):
        return {}
    return {"check_dont_overwrite_parameters": STEPS, "check_estimators_overwrite_params": STEPS}


ALL = parametrize_with_checks(
    [build("normalizer", options("normalizer", name)) for name in NAMES],
    expected_failed_checks=expected_failures,
    xfail_strict=True,
)
ARGUMENTS, CASES = ALL.args


def takes_numpy(case):
    """Whether a check is of NumPy's arrays; others would be skipped, each for want of a library."""
    _, check = getattr(case, "values", case)
    return "array_api" not in check.func.__name__


@pytest.mark.parametrize(ARGUMENTS, [*filter(takes_numpy, CASES)], **ALL.kwargs)
def test_a_scheme_passes_scikit_learns_checks(estimator, check):
    check(estimator)
