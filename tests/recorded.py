"""Small stores that the figures and tables are drawn from: made once, by the harness itself."""

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
from tests import door, stores

COMMAND = "normbench tracking.uri=postgresql://me:secret@host/db"


def blow_up(x):
    return 1e160 * x


def write_sweep(folder, dataset, cost, schemes, settings, name, theory=False, params=None):
    """Run a job a scheme and write the sweep; return it as the reader sees it.

    params: settings to record. A second call adds to the sweep that the first one wrote.
    """
    place = stores.of(folder, own=True)
    writer = door.writer(place)
    sweep = writer.start_sweep(name, "sweep-1", {"command": COMMAND, "jobs": str(len(schemes))})
    more = params or {}
    for label, scheme in schemes:
        outcome = run(Job(dataset, cost, scheme, gradient_descent(), settings))
        options = {f"normalizer.{key}": value for key, value in scheme.get_params().items()}
        params = {"dataset": dataset.name, "normalizer": label, **options, **more}
        params["iterations"] = settings.iterations
        tags = {"normalizer": label, "sweep_id": "sweep-1", "dataset": dataset.name}
        run_id = writer.write(door.record_of(dataset, outcome, name, sweep, params, tags))
        if theory:
            writer.client.log_metric(run_id, "theory/step_threshold", 0.5)
            writer.client.log_metric(run_id, "final/largest_convergent_step", 0.1)
    writer.finish(sweep)
    sweep = normbench.load("sweep-1", place.uri).sweep
    return SimpleNamespace(uri=place.uri, folder=folder, sweep=sweep, name=name)


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


TWO = "two-softmax"


@pytest.fixture
def two(tmp_path, with_store):
    """A store with the sweeps `a` (standard, minmax) and `b`, which took minmax in from `a`."""
    store = stores.of(tmp_path)
    writer = door.writer(store)
    rng = np.random.default_rng(0)
    data = make_dataset(
        *("two", rng.standard_normal((20, 2)), np.arange(20) % 2),
        class_names=["no", "yes"],
        source="-",
    )
    runs = {}
    for sweep, schemes in {
        "a": (StandardScaler(), MinMaxScaler()),
        "b": (StandardScaler(),),
    }.items():
        folder = tmp_path / "outputs" / sweep
        folder.mkdir(parents=True)
        (folder / "lock").write_text("")
        (folder / "sweep.json").write_text(f'{{"sweep_id": "{sweep}"}}')
        (folder / "histories.png").write_bytes(b"png")
        parent = writer.start_sweep(TWO, sweep, {"command": "-", **door.own_folder(folder)})
        door.tag_figures(writer, folder, parent, TWO, [folder / "histories.png"])
        for number, scheme in enumerate(schemes):
            settings = Settings((0.1, 1.0), iterations=2, theory="none")
            made = run(Job(data, softmax, scheme, gradient_descent(), settings))
            word = type(scheme).__name__
            tags = {"sweep_id": sweep, "normalizer": word, f"sweep.{sweep}": str(number)}
            params = {"normalizer": word, "iterations": 2 + (sweep == "b")}
            record = door.record_of(data, made, TWO, parent, params, tags)
            runs[sweep, word] = writer.write(record)
        writer.finish(parent)
    writer.adopt(runs["a", "MinMaxScaler"], "b/1")
    return SimpleNamespace(uri=store.uri, folder=tmp_path, runs=runs, writer=writer, store=store)
