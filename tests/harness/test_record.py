"""What `record` makes: right, small, and refused where it cannot be made."""

import numpy as np
import pytest
from scipy.interpolate import RectBivariateSpline
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from normbench.costs import least_squares, multiclass_softmax, softmax
from normbench.datasets import UserError, make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, check, run
from normbench.measures import contract
from normbench.measures.contours import _window
from normbench.measures.inputs import principal
from normbench.normalizers import PCARotation, PCASphere, ZCASphere
from normbench.optimizers import gradient_descent

EVERY = ("path", "contours", "points", "components", "spectrum")


def job(x, y=None, cost=softmax, scheme=None, names=("a", "b"), **settings):
    dataset = make_dataset("made", x, y, class_names=names if y is not None else None, source="-")
    options = {"iterations": 20, "record": EVERY, **settings}
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


def test_a_long_path_is_thinned_to_its_ends(two_classes, monkeypatch):
    monkeypatch.setattr(contract, "PATH_NUMBERS", 4 * 5)
    for own in ({"start": "normal", "starts": 2}, {}):  # of several starts, the first
        outcome = run(job(*two_classes, **own))
        path = outcome.arrays["path"]
        assert list(path["iteration"]) == [0, 5, 10, 15, 20]
    assert path["cost"][-1] == pytest.approx(outcome.steps[outcome.best].final_cost, rel=1e-12)


@pytest.mark.parametrize(("features", "classes"), [(1, 2), (2, 2), (5, 2), (3, 3)])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_contours_are_the_cost_on_a_plane_that_holds_the_path(features, classes, precision):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((50, features)) * np.arange(1, features + 1)
    y = rng.integers(0, classes, 50)
    cost = softmax if classes == 2 else multiclass_softmax
    outcome = run(job(x, y, cost, names=list("abc")[:classes], precision=precision))
    parts, path = outcome.arrays["contours"], outcome.arrays["path"]
    along = parts["path"]
    assert (along >= [parts["a"][0], parts["b"][0]]).all()
    assert (along <= [parts["a"][-1], parts["b"][-1]]).all()
    # The end lies on the plane: the grid's cost around it is the end's cost.
    place = [
        np.argmin(np.abs(axis - end)) for axis, end in zip((parts["a"], parts["b"]), along[-1])
    ]
    around = parts["cost"][place[1], place[0]]
    # One cell off on a path of 20 steps: measured under 3 percent.
    assert around == pytest.approx(path["cost"][-1], rel=0.05)
    assert parts["cost"].shape == (61, 61)
    assert len(parts["names"]) == 2
    assert ("points" in parts) == (features == 2)


def test_contours_take_the_stiffest_direction_and_the_one_with_most_excess_left():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 4)) * [0.1, 3.0, 0.2, 1.0]
    y = x @ [4.0, 0.1, 0.5, 0.1] + 0.1 * rng.standard_normal(400)
    outcome = run(
        job(x, y, least_squares, FunctionTransformer(), None, record=("contours", "path"))
    )
    parts, path = outcome.arrays["contours"], outcome.arrays["path"]
    ones = np.column_stack([np.ones(400), x])
    values, vectors = np.linalg.eigh(2 * ones.T @ ones / 400)
    best = np.linalg.lstsq(ones, y)[0]
    left = values * (vectors.T @ (path["weights"][-1, 0] - best)) ** 2 / 2
    most = int(np.argmax(left[:-1]))
    assert most == 0  # the softest here; the second stiffest was drawn before
    # On a quadratic, second differences of the grid are the Hessian on the plane, exactly:
    # measured 3e-12 off.
    for axis, name, value in ((1, "a", values[-1]), (0, "b", values[most])):
        step = np.diff(parts[name])[0]
        assert np.diff(parts["cost"], 2, axis=axis)[3, 3] / step**2 == pytest.approx(
            value, rel=1e-6
        )
    assert list(parts["names"]) == ["stiffest direction", "direction with most excess left"]
    assert parts["condition"] == pytest.approx(values[-1] / values[most], rel=1e-9)


def test_a_flat_direction_does_not_pass_for_one_with_much_excess():
    """Separable classes: the model's least cost along flat directions is where no model holds."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((40, 6)) * np.geomspace(1e-3, 1, 6)
    y = (x @ np.ones(6) > 0).astype(int)
    outcome = run(job(x, y, scheme=FunctionTransformer(), iterations=100, record=("contours",)))
    parts = outcome.arrays["contours"]
    assert parts["minimum"].shape == (0,)
    # Along the second axis the cost falls by 0.0103; where the model alone chooses, by 0.0019.
    middle = parts["cost"][:, len(parts["a"]) // 2]
    assert parts["path_cost"][-1] - middle.min() > 0.009


@pytest.mark.parametrize("cost", [least_squares, softmax])
@pytest.mark.parametrize("features", [1, 2, 5])
def test_the_least_cost_of_a_slice_is_the_true_one_and_its_condition_is_its_own(cost, features):
    rng = np.random.default_rng(7)
    x = rng.standard_normal((300, features)) * np.arange(1, features + 1) + 0.7
    y = (x[:, 0] + 2 * rng.standard_normal(300) > 1).astype(int)
    outcome = run(job(x, y, cost, iterations=30, record=("contours",)))
    parts = outcome.arrays["contours"]
    a, b = parts["minimum"]
    assert parts["a"][0] < a < parts["a"][-1]
    assert parts["b"][0] < b < parts["b"][-1]
    cells = RectBivariateSpline(parts["b"], parts["a"], parts["cost"], kx=5, ky=5)
    # Splines of degree 5 on 61 cells a side; measured 2e-9 off, and at most 1e-4.
    assert cells.ev(b, a) == pytest.approx(parts["least"], abs=1e-6)
    assert parts["cost"].min() >= parts["least"] - 1e-12
    second = [
        [cells.ev(b, a, *order) for order in pair] for pair in (((0, 2), (1, 1)), ((1, 1), (2, 0)))
    ]
    values = np.linalg.eigvalsh(np.array(second))
    assert parts["condition"] == pytest.approx(values[1] / values[0], rel=1e-3)
    assert parts["through"] == "the least cost"
    assert str(parts["held"]).startswith("bias held at " if features == 2 else "")


def test_a_least_cost_that_no_weights_have_is_not_marked():
    x = np.arange(10.0).reshape(-1, 1) - 4.3
    parts = run(job(x, (x[:, 0] > 0).astype(int), record=("contours",))).arrays["contours"]
    assert parts["minimum"].shape == (0,)
    assert parts["through"] == "the end of the path"
    assert parts["least"] == 0


@pytest.mark.parametrize("axis", [0, 1])
def test_a_window_whose_axes_have_their_own_scales_shows_costs_of_one_size(axis):
    curved = np.roll([1e6, 10.0], axis)
    path = np.zeros((2, 2))
    path[1, axis] = 2.0  # along the stiff axis alone
    grid = _window(path, np.diag(curved), 21)
    reach = [h * (line[-1] - line[0]) ** 2 for h, line in zip(curved, grid)]
    assert reach[1 - axis] == pytest.approx(0.01 * reach[axis])  # a tenth of the extent
    square = _window(path, np.diag([10.0, 10.0]), 21)
    assert [np.ptp(line) for line in square] == pytest.approx([2.6, 2.6])  # 0.3 more a side


@pytest.mark.parametrize("unit", [1e-8, 1e5])
def test_the_unit_of_the_targets_chooses_no_plane(unit):
    x = np.random.default_rng(2).standard_normal((60, 4)) * [0.2, 0.5, 1, 2]
    y = x @ [1.0, 0.5, -1.0, 0.1]
    one, other = (
        run(job(x, scale * y, least_squares, FunctionTransformer(), None, record=("contours",)))
        for scale in (1.0, unit)
    )
    parts = [made.arrays["contours"] for made in (one, other)]
    assert parts[0]["names"].tolist() == parts[1]["names"].tolist()
    assert "left" in parts[0]["names"][1]
    # Sphered, all directions are as stiff, and the path is straight: the plane is along it.
    sphered = run(job(x, unit * y, least_squares, PCASphere(ridge=0), None, record=("contours",)))
    path = sphered.arrays["contours"]["path"]
    assert np.ptp(path, axis=0).min() <= 1e-9 * np.ptp(path, axis=0).max()


def test_a_cost_without_curvature_still_has_contours(two_classes):
    from autograd import numpy as anp

    def hinge(scores, targets):
        return anp.sum(anp.maximum(0.0, 100.0 - targets * scores[:, 0]), axis=-1)

    parts = run(job(*two_classes, cost=hinge)).arrays["contours"]
    assert np.isfinite(parts["cost"]).all()
    assert "path" in parts["names"][0]


def test_points_keep_their_classes_and_their_axes(two_classes):
    x, y = two_classes
    parts = run(job(x, y, scheme=PCASphere(ridge=0))).arrays["points"]
    assert parts["points"].shape == (60, 2)
    assert np.array_equal(parts["target"], y)
    # Sphered: each principal axis is one long, measured 1e-15 off.
    assert np.linalg.norm(parts["axes"], axis=1) == pytest.approx([1, 1], abs=1e-9)
    # Of more features than two, the plane in which the points spread most.
    parts = run(job(x, y, record=("points",))).arrays["points"]
    spread = np.linalg.eigvalsh(np.cov(x.T / x.std(axis=0)[:, None], bias=True))[::-1]
    assert parts["points"].var(axis=0) == pytest.approx(spread[:2], rel=1e-9)
    assert parts["mean"] == pytest.approx(parts["points"].mean(axis=0), abs=1e-12)
    single = run(job(x[:, :1], y)).arrays["points"]
    assert single["axes"].shape == (0, 2)
    assert np.array_equal(single["points"][:, 1], y)


def test_a_chain_whose_links_name_no_features_has_coordinates(two_classes):
    x, y = two_classes
    scheme = make_pipeline(FunctionTransformer(), PCASphere())
    found = run(job(x, y, scheme=scheme, record=["features"]))
    assert list(found.arrays["features"]["names"]) == ["x0", "x1", "x2"]


def test_many_points_are_sampled():
    x = np.random.default_rng(1).standard_normal((5000, 2))
    parts = run(job(x, (x[:, 0] > 0).astype(int), record=("points",))).arrays["points"]
    assert np.unique(parts["points"], axis=0).shape == (2000, 2)


def test_components_are_the_principal_ones_and_build_the_point_up(two_classes):
    x, y = two_classes
    for scheme in (PCA(), PCASphere(ridge=0)):
        parts = run(job(x, y, scheme=scheme)).arrays["components"]
        # float32 unit vectors, up to sign: measured 1e-7 off.
        agree = np.abs(np.sum(parts["components"] * scheme.components_, axis=1))
        assert agree == pytest.approx([1, 1, 1], abs=1e-5)
        assert parts["built"][0] == pytest.approx(x.mean(axis=0), rel=1e-5)
        assert parts["built"][-1] == pytest.approx(x[0], rel=1e-4)
        assert parts["original"] == pytest.approx(x[0], rel=1e-4)
        assert parts["count"].tolist() == [0, 1, 2, 3]


def test_components_stand_in_the_order_of_the_variance_that_they_add(two_classes):
    x, y = two_classes
    x = x / x.std(axis=0) * [1.0, 3.0, 20.0]  # the first feature adds least
    for scheme in (ZCASphere(ridge=0), FunctionTransformer(), PCASphere(ridge=0)):
        parts = run(job(x, y, scheme=scheme, record=("components",))).arrays["components"]
        share = parts["variance"]
        assert np.array_equal(share, np.sort(share)[::-1])
        assert share.sum() == pytest.approx(1, rel=1e-12)
        assert np.argmax(np.abs(parts["components"]), axis=1).tolist() == [2, 1, 0]
        # The shares are those of the points built from one coordinate more: measured 2e-16 off.
        assert share[0] == pytest.approx(_added(scheme, x), rel=1e-9)
        assert parts["points"] == pytest.approx(x[:8], rel=1e-6)
        assert parts["under"] == pytest.approx(scheme.transform(x[:8]), rel=1e-4, abs=1e-6)


def _added(scheme, x):
    """Return the largest share of the variance that one coordinate adds to points."""
    z = scheme.transform(x)
    back = [scheme.inverse_transform(np.where(np.arange(3) == n, z, 0.0)) for n in range(3)]
    each = [part.var(axis=0).sum() for part in back]
    return max(each) / sum(each)


def test_principal_directions_of_huge_points_do_not_overflow(two_classes):
    small, large = (principal(unit * two_classes[0]) for unit in (1.0, 1e200))
    assert large[0] == pytest.approx(1e200 * small[0], rel=1e-12)
    assert principal(np.zeros((4, 2)))[0].tolist() == [0, 0]


def test_few_components_of_many_features_are_kept():
    x = np.random.default_rng(1).standard_normal((90, 70))
    made = run(job(x, iterations=0, record=("components",))).arrays["components"]
    assert made["components"].shape == (64, 70)
    assert made["variance"].sum() < 1


def test_spectrum_counts_dead_directions(two_classes):
    x, y = two_classes
    x = np.column_stack([x, x[:, 0], np.full(60, 7.0)])
    for unit in (1e-4, 1e4):
        scaled = run(job(unit * x, y, record=("spectrum",))).arrays["spectrum"]
        assert scaled["dead"] == 2
    parts = run(job(x, y, scheme=PCASphere())).arrays["spectrum"]
    assert parts["dead"] == 2
    assert parts["ridge"] == 1e-7
    before = np.linalg.eigvalsh(np.cov(x.T, bias=True))[::-1]
    assert parts["before"] == pytest.approx(before, abs=1e-12 * before[0])
    assert np.isnan(run(job(x, y)).arrays["spectrum"]["ridge"])


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
        (job(x, y, scheme=Normalizer()), "record=components: normalizer Normalizer has no"),
        (
            job(wide, [0, 1, 0, 1], record=("spectrum",)),
            "record=spectrum: is for 4096 features at most",
        ),
        (job(x), "does not fit the targets of made"),
        (
            job(x, iterations=0, record=("projection", "components"), scheme=Normalizer()),
            "record=projection: .*; record=components: ",
        ),
    ):
        with pytest.raises(UserError, match=words):
            check(wrong)
    check(job(wide[:, 1:], [0, 1, 0, 1], record=("spectrum",)))


def test_arrays_need_no_pickle(two_classes, tmp_path):
    for name, parts in run(job(*two_classes)).arrays.items():
        np.savez_compressed(tmp_path / f"{name}.npz", **parts)
        with np.load(tmp_path / f"{name}.npz", allow_pickle=False) as found:
            assert set(found) == set(parts)
            for key in found:
                assert np.array_equal(
                    found[key], parts[key], equal_nan=parts[key].dtype.kind == "f"
                )


def test_the_shown_step_stands_for_its_scheme(two_classes):
    best = run(job(*two_classes))
    shown = run(job(*two_classes, shown_step=0.1))
    assert best.steps[best.best].step_size == 1.0
    assert shown.steps[shown.best].step_size == 0.1
    assert shown.arrays["path"]["step_size"] == 0.1
    assert "step_chosen" not in best.findings.tags
    assert shown.findings.tags["step_chosen"] == "true"
    assert "The best step is 1, " in best.findings.tags["explanation"]
    assert "The step shown, by choice, is 0.1, " in shown.findings.tags["explanation"]


def test_a_shown_step_that_diverged_gives_way_to_the_best(two_classes):
    data = make_dataset("made", *two_classes, class_names=["a", "b"], source="-")
    settings = Settings((0.01, 1e200), iterations=5, shown_step=1e200)
    outcome = run(Job(data, least_squares, StandardScaler(), gradient_descent(), settings))
    assert outcome.steps[outcome.best].step_size == 0.01
    assert "step_chosen" not in outcome.findings.tags


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
