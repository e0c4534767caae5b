"""What `record` makes: right, small, and refused where it cannot be made."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from normbench.costs import least_squares, multiclass_softmax, softmax
from normbench.datasets import UserError, make_dataset
from normbench.datasets.bundled import digits
from normbench.engine.rounds import Rounds
from normbench.engine.settings import Settings
from normbench.job import Job, check, run
from normbench.measures import contract
from normbench.measures.points import principal_directions
from normbench.normalizers import PCARotation, PCASphere
from normbench.optimizers import gradient_descent
from normbench.settings import find_step_size
from tests import door

EVERY = ("path", "contours", "points", "components", "spectrum")


def job(x, y=None, cost=softmax, scheme=None, names=("a", "b"), **settings):
    dataset = make_dataset("made", x, y, class_names=names if y is not None else None, source="-")
    options = {"iterations": 20, "record": EVERY, "refine": False, **settings}
    chosen = Settings((0.1, 1.0), **options)
    return Job(dataset, cost, scheme or StandardScaler(), gradient_descent(), chosen)


def test_the_path_is_that_of_the_best_step(two_classes):
    outcome = run(job(*two_classes))
    best = outcome.steps[outcome.best]
    path = outcome.arrays["path"]
    assert path["step_size"] == best.step_size
    # The stacked products of several runs round differently: measured 2e-16, relative.
    assert path["cost"] == pytest.approx(best.histories["train/cost"], rel=1e-12)
    assert np.array_equal(path["iteration"], np.arange(21))
    assert path["weights"].shape == (21, 1, 4)
    assert np.array_equal(path["weights"][0], np.zeros((1, 4)))


def test_a_chain_whose_links_name_no_features_has_coordinates(two_classes):
    x, y = two_classes
    scheme = make_pipeline(FunctionTransformer(), PCASphere())
    found = run(job(x, y, scheme=scheme, record=["features"]))
    assert list(found.arrays["features"]["names"]) == ["x0", "x1", "x2"]


def test_principal_directions_of_huge_points_do_not_overflow(two_classes):
    small, large = (principal_directions(unit * two_classes[0]) for unit in (1.0, 1e200))
    assert large[0] == pytest.approx(1e200 * small[0], rel=1e-12)
    assert principal_directions(np.zeros((4, 2)))[0].tolist() == [0, 0]


def test_a_study_without_a_descent_needs_no_targets(two_classes):
    record = ("points", "spectrum", "components", "biplot", "features", "projection")
    outcome = run(job(two_classes[0], iterations=0, record=record))
    assert outcome.steps == ()
    assert outcome.best is None
    assert set(outcome.arrays) == set(record)
    one = job(two_classes[0], iterations=0, record=record, scheme=PCARotation(components=1))
    assert set(run(one).arrays) == set(record) - {"biplot"}  # of two coordinates and more
    assert not np.any(outcome.arrays["points"]["target"])


def test_records_that_cannot_be_made_are_refused(two_classes):
    x, y = two_classes
    wide = np.random.default_rng(0).standard_normal((4, 4097))
    for wrong, words in (
        (job(x, y, iterations=0), "record=path: is of a descent"),
        (job(x, y, scheme=Normalizer()), "record=components: needs a normalizer with an inverse"),
        (
            job(wide, [0, 1, 0, 1], record=("spectrum",)),
            "record=spectrum: needs 1 to 4096 features",
        ),
        (job(x), "does not fit the targets of made"),
    ):
        with pytest.raises(UserError, match=words):
            check(wrong)
    check(job(wide[:, 1:], [0, 1, 0, 1], record=("spectrum",)))


def test_the_shown_step_stands_for_its_scheme(two_classes):
    best = run(job(*two_classes))
    shown = run(job(*two_classes, shown_step=0.1))
    assert best.steps[best.best].step_size == 1.0
    assert shown.steps[shown.best].step_size == 0.1
    assert shown.arrays["path"]["step_size"] == 0.1
    assert "step_chosen" not in best.findings.tags
    assert shown.findings.tags["step_chosen"] == "true"


def test_a_shown_step_that_diverged_gives_way_to_the_best(two_classes):
    data = make_dataset("made", *two_classes, class_names=["a", "b"], source="-")
    settings = Settings((0.01, 1e200), iterations=5, shown_step=1e200)
    outcome = run(Job(data, least_squares, StandardScaler(), gradient_descent(), settings))
    assert outcome.steps[outcome.best].step_size == 0.01
    assert "step_chosen" not in outcome.findings.tags


def test_a_shown_step_is_named_by_the_digits_of_a_table():
    sizes = (0.1, 10**-0.75, 1.0)
    assert find_step_size(0.177828, sizes) == find_step_size(sizes[1], sizes) == sizes[1]
    with pytest.raises(UserError, match="is not one of step_sizes"):  # it may be either
        Settings((1.0, 1.0000001), shown_step=1.0000002)


def test_a_shown_step_is_one_of_the_grid():
    with pytest.raises(UserError, match=r"shown_step=2: is not one of step_sizes; choose of 1, 10"):
        Settings((1, 10), shown_step=2)


def test_principal_axes_are_one_standard_deviation_long(two_classes):
    x, y = two_classes
    outcome = run(job(x[:, :2], y, scheme=FunctionTransformer(), record=["points"]))
    axes = outcome.arrays["points"]["axes"]
    np.testing.assert_allclose(axes.T @ axes, np.cov(x[:, :2].T, bias=True), rtol=1e-9)
    assert abs(axes[0] @ axes[1]) < 1e-9 * np.linalg.norm(axes[0]) ** 2
    assert np.linalg.norm(axes[0]) > np.linalg.norm(axes[1])


@pytest.mark.parametrize("cost", [softmax, least_squares])
def test_contours_of_few_weights_have_the_path_of_every_step(cost):
    rng = np.random.default_rng(8)
    x = rng.standard_normal((60, 2)) * [1, 3] + 1
    y = rng.integers(0, 2, 60) if cost is softmax else x @ [1, 2] + rng.standard_normal(60)
    sizes = (0.01, 0.1, 1e9)
    chosen = Settings(sizes, record=("contours", "path"), iterations=200, refine=False)
    names = None if cost is least_squares else ("a", "b")
    dataset = make_dataset("made", x, y, class_names=names, source="-")
    outcome = run(Job(dataset, cost, FunctionTransformer(), gradient_descent(), chosen))
    parts, path = outcome.arrays["contours"], outcome.arrays["path"]
    at, best = parts["paths_at"], sizes.index(float(parts["step_size"]))
    assert list(at[:4]) == [0, 1, 2, 3]
    assert at[-1] == 200
    # The third weight, the bias, is held: the path is the other two.
    np.testing.assert_allclose(parts["paths"][best], path["weights"][at][:, 0, 1:], atol=1e-12)
    assert ("swing" in parts) == (cost is least_squares)
    if cost is least_squares:
        assert not np.isfinite(parts["paths"][2, -1]).any()  # it diverged
        for size, told in zip(sizes[:2], parts["paths"]):
            shrunk = (1 - size * parts["curvature"]) ** at[:, None]
            # Measured: 4e-15.
            np.testing.assert_allclose(parts["minimum"] + shrunk @ parts["swing"], told, atol=1e-12)


@pytest.mark.parametrize("sizes", [(10.0,), (0.1, 10.0)])
def test_a_path_is_the_run_that_is_recorded(sizes):
    """Far above 2/L, where 60 iterations raise a rounding to 5 percent of the cost."""
    settings = Settings(
        sizes, 60, record=("path",), shown_step=10.0, shadows=False, refine=False, theory="none"
    )
    parts = multiclass_softmax, FunctionTransformer(), gradient_descent()
    data = digits()
    made = run(Job(data, *parts, settings))
    path, step = made.arrays["path"], made.steps[made.best]
    recorded = step.histories["train/cost"][path["iteration"]]
    problem = door.problem(multiclass_softmax, data.x, data.y, True, 0.0, 10)
    for costs in (path["cost"], problem.evaluate(path["weights"]).costs):
        np.testing.assert_allclose(costs, recorded, rtol=1e-12)


def test_all_records_along_the_path_descend_once_more(two_classes, monkeypatch):
    replay, replayed = Rounds.replay, []
    monkeypatch.setattr(Rounds, "replay", lambda *of: replayed.append(of) or replay(*of))
    record = ("path", "contours", "sharpness", "landing", "curvature")
    outcome = run(job(*two_classes, record=record, starts=2, start="normal"))
    assert set(outcome.arrays) >= {"path", "contours", "landing"}
    assert len(replayed) == 1


def test_records_along_a_path_that_is_too_long_see_pairs_of_it(two_classes, monkeypatch):
    record = ("landing", "path")
    whole = run(job(*two_classes, record=record)).arrays
    monkeypatch.setattr(contract, "MAX_PATH_NUMBERS", 4 * 4)
    short = run(job(*two_classes, record=record)).arrays
    assert short["path"]["iteration"].tolist() == [0, 1, 2, 4, 5, 20]
    assert short["landing"]["iteration"].tolist() == [0, 1, 4]
    for name, values in (("landing", "position"), ("path", "weights")):
        among = np.isin(whole[name]["iteration"], short[name]["iteration"])
        np.testing.assert_array_equal(short[name][values], whole[name][values][among])
