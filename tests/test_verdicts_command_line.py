"""Verdicts, theory and comparisons as a sweep records and prints them."""

import shutil

import pytest
from sklearn.preprocessing import StandardScaler

from normbench import names
from normbench.costs import least_squares
from normbench.datasets import split
from normbench.datasets.bundled import breast_cancer
from normbench.engine.settings import Settings
from normbench.job import Job
from normbench.job import run as run_job
from normbench.normalizers import PCASphere
from normbench.optimizers import gradient_descent
from normbench.results.answer import tables
from normbench.results.answer import theory_table as theory
from normbench.results.compare import comparisons, heldout, reached
from normbench.results.store.runs import Sweep, last_sweep_ids, load
from normbench.settings import powers_of_ten
from tests import forks

pytestmark = pytest.mark.commands


def run(folder, *arguments):
    return forks.run(arguments, folder)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory, empty_store):
    """Two splits, three starts, two schemes, with everything that can be asked for."""
    folder = tmp_path_factory.mktemp("verdicts")
    shutil.copy(empty_store, folder / "mlflow.db")
    done = run(
        folder,
        "-m",
        "cost=least_squares",
        "normalizer=standard,pca_sphere",
        "dataset.test_fraction=0.3",
        "dataset.split_seed=0,1",
        "start=normal",
        "starts=3",
        "step_sizes=${decades:-2,0,4}",
        "iterations=150",
        "search.critical=true",
        "record=[sharpness]",
        "rules.excess=0.4",
        "figures=[]",
    )
    assert done.returncode == 0, done.stderr
    store = f"sqlite:///{folder}/mlflow.db"
    return folder, done, load(store, last_sweep_ids(store)[1])


def of_the_job(row):
    """Return the metrics of the job behind a scheme's run, made here once more."""
    scheme = {"standard": StandardScaler, "pca_sphere": PCASphere}[row["normalizer"]]()
    data = split(breast_cancer(), 0.3, int(row["params.dataset.split_seed"]))
    settings = Settings(powers_of_ten(-2, 0, 4), iterations=150, start="normal", starts=3)
    return run_job(Job(data, least_squares, scheme, gradient_descent(), settings)).findings.metrics


def test_theory_and_verdicts_stand_on_every_scheme_run(sweep):
    _, _, found = sweep
    for row in found.of_role("scheme").to_dict("records"):
        made = of_the_job(row)
        for name in (
            *("lipschitz", "step_threshold", "lipschitz_start", "lipschitz_best", "rank"),
            *("condition_number", "minimum", "minimum_gradient_norm", "effective_rank"),
        ):
            # The gradient's norm at the minimum is rounding: at most 1e-10.
            wanted = pytest.approx(made[f"theory/{name}"], rel=1e-9, abs=1e-9)
            assert row[f"metrics.theory/{name}"] == wanted
        assert row["metrics.time/theory_seconds"] > 0
        assert row["tags.censored"] in ("true", "false")
        assert row["tags.theory_basis"].startswith("exact")
        assert "2/L" in row["tags.explanation"]
        assert row["params.rules.excess"] == "0.4"
        assert row["params.search.critical"] == "True"
        assert row["metrics.final/critical_step"] == pytest.approx(
            row["metrics.theory/step_threshold"], rel=0.05
        )
        path = found.series(row["run_id"], "theory/sharpness")
        assert len(set(path.values())) == 1  # a quadratic: the same everywhere
        spectrum = list(found.series(row["run_id"], "theory/variance").values())
        assert spectrum == sorted(spectrum, reverse=True)


def test_every_start_is_recorded_on_its_step(sweep):
    _, _, found = sweep
    steps = found.of_role("step")
    best = steps[steps["tags.best"] == "true"]
    for row in best.to_dict("records"):
        assert set(found.series(row["run_id"], "start/final_cost")) == {0, 1, 2}
        assert len(row["tags.start_verdicts"].split(", ")) == 3
        predicted = found.series(row["run_id"], "theory/predicted_cost")
        measured = found.series(row["run_id"], "train/cost")
        # Measured: 3e-15.
        assert predicted == pytest.approx(measured, rel=1e-8)


def test_pairs_go_over_splits_and_their_starts_are_one_value(sweep):
    folder, _, found = sweep
    store = f"sqlite:///{folder}/mlflow.db"
    table = reached.time_to_target([found], "1e-1")
    assert len(table) == 2 * 2
    (pair,) = comparisons.compare_pairs(table).to_dict("records")
    assert pair["splits"] == 2
    told = " ".join(run(folder, "results", "theory", "--store", store).stdout.split())
    assert "with its best step size for each of the splits, in pairs; ratio" in told
    assert "no conclusion: 1 pair of schemes needs at least 6 splits" in told


def test_splits_are_one_row_a_scheme(sweep):
    _, done, found = sweep
    table = tables.summary(found)
    assert table["scheme"].tolist() == ["standard", "pca_sphere"]
    assert table["medians of"].tolist() == ["2 splits"] * 2
    assert (table["cost q1"] <= table["cost"]).all()
    assert (table["cost"] <= table["cost q3"]).all()
    assert "(medians of 2 splits x 3 starts)" in done.stdout
    assert "split_seed=" not in done.stdout


def test_test_points_are_judged(sweep):
    folder, done, found = sweep
    splits = heldout.by_split(found)
    assert len(splits) == 2 * 2
    for word in ("Fastest", "Predicts best: "):
        assert word in done.stdout
    told = run(folder, "results", "theory", "--store", f"sqlite:///{folder}/mlflow.db").stdout
    assert "test error, %" in told
    step = found.of_role("step").iloc[0]
    assert step["test_points"] == pytest.approx(0.3 * 569, abs=1)


def test_prediction_and_observation_are_one_table(sweep):
    folder, done, found = sweep
    table = theory.predictions(found)
    assert len(table) == 2
    # The critical step was searched for, to a percent; on least squares it is 2/L itself.
    assert table["seen / promised"].astype(float).between(0.97, 1.01).all()
    found = Sweep("-", "s", found.runs.drop(columns=names.CRITICAL.column))
    for ratio in theory.predictions(found)["seen / promised"]:
        low, high = map(float, ratio.split(" to "))
        assert low < 1 <= high
        assert high / low == pytest.approx(10**0.25, rel=0.01)
    assert "Theory promises larger step sizes under" in " ".join(done.stdout.split())
    told = run(folder, "results", "theory", "--store", f"sqlite:///{folder}/mlflow.db").stdout
    assert "2/L" in told


def test_profile_prints_the_last_sweep_or_those_named(sweep):
    folder, _, found = sweep
    store = f"sqlite:///{folder}/mlflow.db"
    for arguments in (["--target", "1e-1"], [found.sweep_id, "--by", "seconds"]):
        done = run(folder, "results", "profile", "--store", store, *arguments)
        assert done.returncode == 0, done.stderr
        assert "leaderboard" in done.stdout
        assert "performance profile" in done.stdout
    for arguments in (["--target", "0.5"], ["--by", "luck"], ["nosuch"]):
        done = run(folder, "results", "profile", "--store", store, *arguments)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_two_sweeps_give_the_same_verdicts_to_the_last_digit(tmp_path):
    found = []
    for _ in range(2):
        words = ("step_sizes=[0.1,1,10]", "iterations=40", "figures=[]", "reuse=false")
        done = run(tmp_path, *words)
        assert done.returncode == 0, done.stderr
        store = f"sqlite:///{tmp_path}/mlflow.db"
        runs = load(store, last_sweep_ids(store)[1]).runs
        runs = runs[runs["role"] != "sweep"]
        same = [
            name
            for name in runs.columns
            if name.startswith(("metrics.theory/", "metrics.final/", "metrics.train/", "verdict"))
            and "seconds" not in name
        ]
        tags = ["tags.censored", "tags.explanation", "tags.minimum_source", "reason", "name"]
        found.append(runs[same + tags].sort_values("name").to_csv(index=False))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("theory=some", "theory=some: must be one of auto, full, none"),
        ("rules.tail=2", "rules.tail=2: must be"),
        ("search.width=0", "search.width=0: must be"),
        ("search.critical=maybe", "search.critical=maybe: must be true or false"),
    ],
)
def test_a_mistake_in_a_rule_is_one_line(tmp_path, argument, words):
    done = run(tmp_path, argument)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert words in line


def test_python_and_the_command_line_agree_on_the_verdicts(tmp_path):
    from sklearn.datasets import load_breast_cancer

    from normbench import compare

    done = run(tmp_path, "step_sizes=[0.001,1,100]", "iterations=60", "figures=[]")
    assert done.returncode == 0, done.stderr
    store = f"sqlite:///{tmp_path}/mlflow.db"
    steps = load(store, last_sweep_ids(store)[1]).of_role("step")
    logged = {(row.normalizer, row._asdict()["verdict"]) for row in steps.itertuples()}
    x, y = load_breast_cancer(return_X_y=True)
    frame = compare(x, y, step_sizes=[0.001, 1, 100], iterations=60)
    assert {(row.normalizer, row.verdict) for row in frame.itertuples()} == logged
    sizes = {
        (row["normalizer"], float(row["tags.step_size"])): row["verdict"]
        for row in steps.to_dict("records")
    }
    for (normalizer, size), part in frame.groupby(["normalizer", "step_size"]):
        assert set(part.verdict) == {sizes[normalizer, size]}
