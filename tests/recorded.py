"""Small comparisons that figures and tables are drawn from: made once, by the harness itself."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, RobustScaler, StandardScaler

import normbench
from normbench.costs import least_squares, softmax
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.normalizers import PCASphere
from normbench.optimizers import gradient_descent
from normbench.results.store.job_records import JobRecord
from tests import door

COMMAND = "normbench tracking.uri=postgresql://me:***@host/db"


def blow_up(x):
    return 1e160 * x


def write_sweep(folder, dataset, cost, schemes, settings, name, theory=False, params=None):
    """Run a job a scheme and keep the comparison; return it as the reader sees it.

    What is written to a folder again joins the jobs that it holds. params: settings to record.
    """
    home = folder / "outputs"
    records = {file.stem: JobRecord.load(file) for file in sorted(home.glob("records/*.npz"))}
    first = len(records)
    for number, (label, scheme) in enumerate(schemes, first):
        outcome = run(Job(dataset, cost, scheme, gradient_descent(), settings))
        options = {f"normalizer.{key}": value for key, value in scheme.get_params().items()}
        own = {"dataset": dataset.name, "normalizer": label, **options, **(params or {})}
        own["iterations"] = settings.iterations
        tags = {"normalizer": label, "dataset": dataset.name}
        record = records[f"{number:032x}"] = door.record_of(dataset, outcome, name, own, tags)
        if theory:
            record.scheme.metrics.append(("theory/step_threshold", 0.5, 0))
            record.scheme.metrics.append(("final/largest_convergent_step", 0.1, 0))
    door.keep(home, "sweep-1", COMMAND, records)
    sweep = normbench.load("sweep-1", home).sweep
    return SimpleNamespace(home=str(home), folder=folder, sweep=sweep, name=name)


def points(features, count=80):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, count)
    scales = np.geomspace(0.3, 3, features)
    return (rng.standard_normal((count, features)) + y[:, None]) * scales + 1.0, y


@pytest.fixture(scope="session")
def three(tmp_path_factory):
    """Three schemes, 10 iterations, two features, test points, two starts, every record."""
    x, y = points(2)
    dataset = make_dataset(
        "two", x[:60], y[:60], x_test=x[60:], y_test=y[60:], class_names=["no", "yes"], source="-"
    )
    settings = Settings(
        (0.01, 0.1, 1e200),
        iterations=10,
        start="normal",
        starts=2,
        record=("path", "contours", "points", "spectrum", "sharpness"),
    )
    schemes = [
        ("identity", FunctionTransformer()),
        ("standard", StandardScaler()),
        ("pca_sphere", PCASphere()),
    ]
    folder = tmp_path_factory.mktemp("three")
    return write_sweep(folder, dataset, least_squares, schemes, settings, "two-least_squares", True)


@pytest.fixture(scope="session")
def twelve(tmp_path_factory):
    """Twelve schemes, one of which diverges at every step size, 50 iterations."""
    x, y = points(5)
    dataset = make_dataset("five", x, y, class_names=["no", "yes"], source="-")
    spheres = [("pca_sphere", PCASphere(ridge=10.0**-n)) for n in range(7)]
    schemes = [
        ("identity", FunctionTransformer()),
        ("standard", StandardScaler()),
        ("minmax", MinMaxScaler()),
        ("robust", RobustScaler()),
        ("blown_up", FunctionTransformer(blow_up)),
        *spheres,
    ]
    record = ("contours", "points")
    settings = Settings((0.1, 1.0), iterations=50, record=record, refine=False)
    folder = tmp_path_factory.mktemp("twelve")
    return write_sweep(folder, dataset, softmax, schemes, settings, "five-softmax")


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """Unlabelled images of 4 x 4 pixels, one of them dead; no descent."""
    x = np.random.default_rng(2).random((40, 16))
    x[:, 3] = 0.5
    dataset = make_dataset("images", x, source="-")
    settings = Settings((1.0,), iterations=0, record=("points", "components", "spectrum"))
    schemes = [("standard", StandardScaler()), ("pca_sphere", PCASphere())]
    folder = tmp_path_factory.mktemp("images")
    return write_sweep(folder, dataset, softmax, schemes, settings, "images")
