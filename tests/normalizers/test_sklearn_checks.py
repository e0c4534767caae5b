"""scikit-learn's own checks of an estimator, on each class of schemes of this project."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from normbench.choices import CONF, build, options

NAMES = sorted(file.stem for file in (CONF / "normalizer").glob("*.yaml"))
SCHEMES = {
    type(scheme): scheme
    for scheme in (build("normalizer", options("normalizer", name)) for name in NAMES)
}
OWN = [scheme for kind, scheme in SCHEMES.items() if kind.__module__.startswith("normbench.")]


@parametrize_with_checks(OWN)
def test_a_scheme_passes_scikit_learns_checks(estimator, check):
    check(estimator)
