"""The comparison from Python."""

from decimal import Decimal
from inspect import signature

import autograd.numpy as anp
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, RobustScaler, StandardScaler

from normbench import compare, settings
from normbench.costs import softmax
from normbench.costs.declaration import Traits
from normbench.datasets import Sampling, UserError, label_dataset, split
from normbench.datasets.values import check_integer
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.models import Mlp
from normbench.names import OPTIMIZER
from normbench.normalizers import PCASphere
from normbench.optimizers import gradient_descent, momentum, preconditioned
from normbench.results.report import screen, terminal
from normbench.verdicts.convergence import Rules

COLUMNS = ["normalizer", "step_size", "iteration", "cost", "misclassifications", "verdict"]
SMALL = {"normalizers": ["standard"], "step_sizes": [1], "iterations": 3, "theory": "none"}


def test_the_numbers_that_the_field_knows():
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    frame = compare(x, y, normalizers=["standard", "pca_sphere"], step_sizes=[1, 10], iterations=50)
    last = frame[frame.iteration == 50].set_index(["normalizer", "step_size"])
    assert last.loc[("standard", 1), "cost"] == pytest.approx(0.067773, abs=5e-7)
    assert last.loc[("standard", 1), "misclassifications"] == 8
    assert last.loc[("pca_sphere", 10), "cost"] == pytest.approx(0.052400, abs=5e-7)
    assert last.loc[("pca_sphere", 10), "misclassifications"] == 8


def test_the_frame_is_tidy(two_classes):
    frame = compare(*two_classes, step_sizes=[0.1, 1], iterations=5)
    assert list(frame.columns) == COLUMNS
    assert len(frame) == 3 * 2 * 6
    assert list(frame.normalizer.unique()) == ["identity", "standard", "pca_sphere"]


def test_frames_and_labels_of_any_kind_are_taken(two_classes):
    x, y = two_classes
    named = pd.DataFrame(x, columns=["length", "width", "depth"])
    words = pd.Series(np.where(y == 1, "yes", "no"))
    pd.testing.assert_frame_equal(
        compare(named, words, **SMALL).frame,
        compare(x, y, **SMALL).frame,
    )


def test_a_transformer_and_a_function_of_ones_own_are_taken(two_classes):
    def exponential(scores, targets):
        return anp.sum(anp.exp(-targets * scores[:, 0]), axis=-1)

    given = {"normalizers": [RobustScaler()], "step_sizes": [0.01], "iterations": 10}
    frame = compare(*two_classes, cost=exponential, **given)
    assert set(frame.normalizer) == {"RobustScaler"}
    assert frame.cost.iloc[0] == 1.0
    assert frame.cost.iloc[-1] < 1.0


def test_regression_has_no_misclassifications():
    x = np.arange(10.0)[:, None]
    frame = compare(x, 2 * x[:, 0] + 1, "least_squares", ["standard"], [0.1], 10)
    assert frame.misclassifications.isna().all()


@pytest.mark.parametrize("kind", ["objects", "decimals", "a frame's objects"])
def test_numbers_that_are_kept_as_objects_are_real_targets(kind):
    x, numbers = np.arange(10.0)[:, None], np.arange(10.0) / 4
    targets = pd.Series(map(Decimal, numbers) if kind == "decimals" else numbers, dtype=object)
    given = pd.DataFrame(x, columns=["x0"]) if kind.startswith("a frame") else x
    frames = [
        compare(points, values, "least_squares", **SMALL).frame
        for points, values in ((given, targets), (x, numbers))
    ]
    pd.testing.assert_frame_equal(*frames)


def test_masked_targets_of_a_frame_are_gaps():
    x, y = pd.DataFrame({"a": np.arange(6.0)}), np.ma.masked_equal([1.5, 2, -1, 3, 5, 7], -1)
    with pytest.raises(UserError, match=r"target of point 2 .* is nan"):
        compare(x, y, "least_squares", ["standard"], [0.1], 2)
    frames = [
        compare(points, targets, "least_squares", ["standard"], [0.1], 2, fill="drop").frame
        for points, targets in ((x, y), (x.drop(2), y.compressed()))
    ]
    pd.testing.assert_frame_equal(*frames)


def test_targets_of_another_length_are_told_of_a_frame_too():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]})
    with pytest.raises(UserError, match="targets have shape"):
        compare(frame.drop(columns="b"), [0, 1], fill="median")


@pytest.mark.parametrize(("offset", "task"), [(0.5, "regression"), (0, "classes")])
def test_a_cost_without_traits_takes_numbers_that_are_no_integers_as_they_are(offset, task):
    def logcosh(scores, targets):
        return anp.sum(anp.log(anp.cosh(scores[:, 0] - targets)), axis=-1)

    targets = np.arange(10.0) % 2 + offset
    frame = compare(np.arange(10.0)[:, None], targets, logcosh, ["identity"], [1e-9], 1)
    # Labels are -1 and 1 where the scores are one of two classes.
    used = targets if task == "regression" else np.where(targets > 0, 1, -1)
    assert frame.cost.iloc[0] == pytest.approx(np.log(np.cosh(used)).mean())
    assert frame.misclassifications.isna().all() == (task == "regression")


def test_starts_of_their_own_seed_repeat(two_classes):
    given = {"start": "normal", "starts": 3, **SMALL}
    first = compare(*two_classes, seed=1, **given)
    pd.testing.assert_frame_equal(first.frame, compare(*two_classes, seed=1, **given).frame)
    assert not first.cost.equals(compare(*two_classes, seed=2, **given).cost)


def test_one_normalizer_and_one_step_size_need_no_list(two_classes):
    one = compare(*two_classes, normalizers="standard", step_sizes=0.1, iterations=3)
    several = compare(*two_classes, normalizers=["standard"], step_sizes=[0.1], iterations=3)
    pd.testing.assert_frame_equal(one.frame, several.frame)
    alone = compare(*two_classes, normalizers=RobustScaler(), step_sizes=0.1, iterations=3)
    assert set(alone.frame.normalizer) == {"RobustScaler"}


def test_several_splits_are_one_row_a_scheme(two_classes):
    given = {"test_fraction": 0.25, **SMALL}
    several = compare(*two_classes, split_seed=[0, 1, 2], **given)
    assert set(several.table["medians of"]) == {"3 splits"}
    third = compare(*two_classes, split_seed=2, **given).frame
    own = several.frame[several.frame.normalizer.str.endswith(", dataset.split_seed=2")]
    pd.testing.assert_frame_equal(
        own.drop(columns="normalizer").reset_index(drop=True), third.drop(columns="normalizer")
    )
    with pytest.raises(UserError, match=r"split_seed=\[\]: is empty"):
        compare(*two_classes, split_seed=[], **given)


def test_the_steps_of_a_pipeline_are_its_label(two_classes):
    pipelines = [
        make_pipeline(StandardScaler(), PCA(2)),
        make_pipeline(RobustScaler(), PCA(2)),
        make_pipeline(RobustScaler(), PCA(1)),
    ]
    found = compare(*two_classes, normalizers=pipelines, step_sizes=0.1, iterations=3)
    labels = found.table["scheme"].tolist()
    assert labels[0] == "StandardScaler + PCA"
    assert labels[1].startswith("RobustScaler + PCA, pca__n_components=2")
    assert labels[2].startswith("RobustScaler + PCA, pca__n_components=1")


def test_the_table_shows_whole(two_classes):
    found = compare(*two_classes, step_sizes=0.1, iterations=3, test_fraction=0.25)
    with pd.option_context("display.width", 40, "display.max_columns", 3, "display.max_rows", 1):
        shown = repr(found.table)
        page = found.table._repr_html_()
    assert all(name in shown.splitlines()[0] for name in found.table)
    assert "..." not in shown + page


@pytest.mark.parametrize(
    ("named", "made"),
    [
        ("momentum", momentum()),
        ("preconditioned", preconditioned(PCASphere())),
        ("gradient_descent", gradient_descent()),
    ],
)
def test_an_optimizer_is_taken_as_by_its_name(two_classes, named, made):
    by_name, by_object = (compare(*two_classes, optimizer=one, **SMALL) for one in (named, made))
    assert by_name.frame.equals(by_object.frame)
    assert by_name.sentence == by_object.sentence
    tags = [set(one.sweep.runs[f"tags.{OPTIMIZER.key}"].dropna()) for one in (by_name, by_object)]
    assert tags == [{named}] * 2


def test_an_optimizer_of_other_settings_takes_other_steps(two_classes):
    half, none = (compare(*two_classes, optimizer=momentum(m), **SMALL) for m in (0.5, 0.0))
    assert not np.allclose(half.cost, none.cost)
    assert none.cost.equals(compare(*two_classes, **SMALL).cost)


@pytest.mark.parametrize("empty", [[], (), np.array([])])
def test_no_columns_to_drop_are_none(two_classes, empty):
    found = compare(*two_classes, drop=empty, encode=empty, missing=empty, **SMALL)
    assert found.sweep.of_role("scheme")["features"].tolist() == [3]


def test_rules_are_taken_by_their_names(two_classes):
    given = {"normalizers": ["standard"], "step_sizes": [0.1, 1], "iterations": 30}
    named = compare(*two_classes, rules={"variation": 0.5}, **given)
    assert named.frame.equals(compare(*two_classes, rules=Rules(variation=0.5), **given).frame)
    assert not named.frame.equals(compare(*two_classes, **given).frame)


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (lambda scores, targets: anp.sum(scores), r"cost <lambda>: gives shape \(\) for 1 runs"),
        (lambda scores, targets: anp.exp(scores[:, 0]), "gives shape .* for 1 runs"),
        (lambda scores, targets: scores @ anp.ones((7, 7)), "cost <lambda>: cannot be taken"),
        (3, "cost=3: is no cost"),
    ],
)
def test_a_cost_of_ones_own_is_checked_before_it_is_descended(two_classes, cost, words):
    with pytest.raises(UserError, match=words):
        compare(*two_classes, cost=cost, step_sizes=0.1)


class Margins:
    """A cost of one's own, an object: of two classes it takes a score for each."""

    traits = Traits(tasks=("binary", "multiclass"), score_per_class=True)

    def __call__(self, scores, targets):
        own = scores[:, targets, np.arange(len(targets))]
        return anp.sum(anp.log(anp.sum(anp.exp(scores), axis=1)) - own, axis=1)


def test_a_cost_may_be_an_object_whose_class_declares_traits(two_classes):
    given = {"normalizers": ["standard"], "step_sizes": [0.1], "iterations": 5}
    mine, built_in = (
        compare(*two_classes, cost, **given) for cost in (Margins(), "multiclass_softmax")
    )
    np.testing.assert_allclose(mine.cost, built_in.cost, rtol=1e-12)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"normalizers": "zscore"}, "normalizers='zscore': is called standard here"),
        ({"normalizers": [StandardScaler]}, "normalizers=StandardScaler: is a class"),
        (
            {"normalizers": [["contrast", "standard"]]},
            "pipeline.make_pipeline(Contrast(), Standard",
        ),
        (
            {"normalizers": [3]},
            "give an object of one, such as sklearn.preprocessing.StandardScaler",
        ),
        ({"cost": "logistic"}, "type cost='softmax'"),
        ({"rules": {"tial": 0.2}}, "rules: there is no tial; give some of tail"),
        ({"step_sizes": []}, "step_sizes=[]: is empty"),
        ({"step_sizes": [1, 1]}, "stands in it twice"),
        ({"step_sizes": [0]}, "not positive"),
        ({"step_sizes": [float("nan")]}, "not positive and finite"),
        ({"step_sizes": np.array([1, np.inf], np.float32)}, "not positive and finite"),
        ({"step_sizes": ["a"]}, "not a number"),
        ({"iterations": -3}, "iterations=-3: must be 0 or more"),
        ({"iterations": 2.5}, "must be a whole number"),
        ({"seed": -1}, "seed=-1: must be 0 or more"),
        ({"l2": -1}, "l2=-1: must be a finite number, 0 or more"),
        ({"l2": np.float32("inf")}, "l2=inf: must be a finite number, 0 or more"),
        ({"start": [1, 2]}, "has 2 weights; it takes 1 x 4"),
        ({"start": "ones"}, "zeros, normal, same_function, or a list"),
        ({"starts": 3}, "use start='normal' or start='same_function'"),
        ({"precision": "float16"}, "must be one of float64, float32"),
        ({"cost": "hinge"}, "cost='hinge': no such option; choose one of"),
        ({"normalizers": ["sphere"]}, "normalizers='sphere': no such option"),
        ({"normalizers": []}, "normalizers=[]: is empty"),
        ({"l2": 1, "l2_in": "weights"}, "l2_in='weights': must be one of transformed, features"),
        ({"optimizer": "adm"}, "optimizer='adm': no such option"),
        ({"optimizer": None}, "optimizer=None: is no optimizer; give a name, such as 'momentum'"),
        ({"optimizer": momentum}, "or an optimizer, such as normbench.optimizers.momentum(0.5)"),
        ({"model": Mlp}, "model=Mlp: is a class; give an object of it, such as model=Mlp()"),
        ({"model": None}, "model=None: is no model"),
        ({"drop": ["a"]}, "drop, encode, fill, missing: are for the columns of a pandas frame"),
        ({"fill": "median"}, "drop, encode, fill, missing: are for the columns of a pandas frame"),
    ],
)
def test_a_mistake_is_named(two_classes, given, words):
    with pytest.raises(UserError) as caught:
        compare(*two_classes, **given)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("split_sed", "did you mean split_seed"),
        ("epochs", "it is called iterations here"),
        ("lr", "it is called step_sizes here"),
        ("scaler", "it is called normalizers here"),
        ("zzz", "it takes x, y, cost, normalizers"),
    ],
)
def test_what_is_no_argument_is_a_type_error(two_classes, argument, words):
    with pytest.raises(TypeError, match=f"takes no {argument}; {words}"):
        compare(*two_classes, **{argument: 1})


def test_the_arguments_and_their_defaults_are_those_of_the_table(two_classes):
    told = signature(compare).parameters
    for name, row in settings.arguments():
        assert told[name].default == row.default
        assert f"    {name}: {row.help}." in compare.__doc__
    found = compare(*two_classes, normalizers=["standard"], iterations=1)
    assert sorted(set(found.frame.step_size)) == settings.powers_of_ten(-7, 2)
    known = found.sweep.of_role("scheme").iloc[0]
    recorded = {row.name for _, row in settings.arguments() if row.recorded}
    assert {f"params.{name}" for name in recorded} <= set(known.index)


def test_numbers_of_numpy_are_taken_as_those_of_python(two_classes):
    of_numpy = {"l2": np.float32(0.5), "step_sizes": np.float32([0.5, 1]), "seed": np.int64(3)}
    of_python = {"l2": 0.5, "step_sizes": [0.5, 1], "seed": 3}
    frames = [
        compare(*two_classes, **(SMALL | given), start="normal").frame
        for given in (of_numpy, of_python)
    ]
    pd.testing.assert_frame_equal(*frames)
    assert check_integer("seed", np.int64(2**53 + 1), at_least=0) == 2**53 + 1


def test_mistakes_after_a_comparison_are_told_as_at_the_command_line(two_classes):
    with pytest.raises(UserError):
        compare(*two_classes, split_seed=-1)


def test_points_that_no_one_can_descend_are_refused(two_classes):
    x, y = two_classes
    broken = x.copy()
    broken[7, 1] = np.nan
    with pytest.raises(UserError, match=r"feature 'x1' of point 7 .* is nan"):
        compare(broken, y)
    with pytest.raises(UserError, match="all points are of one class"):
        compare(x, np.ones(60))
    with pytest.raises(UserError, match="does not fit the targets"):
        compare(x, np.arange(60) % 3)


@pytest.mark.parametrize(
    ("x", "y", "given"),
    [
        ([[10**400, 1]] * 6, [0, 1] * 3, {}),
        (np.eye(6), [0, 1] * 3, {"step_sizes": [10**400]}),
        (np.eye(6), [0, 1] * 3, {"iterations": 10**400}),
        (np.eye(6), [0, 1] * 3, {"start": [10**400] * 7}),
    ],
)
def test_a_whole_number_that_no_float_holds_is_refused(x, y, given):
    with pytest.raises(UserError):
        compare(x, y, **{"normalizers": ["standard"], "iterations": 1, **given})


def test_a_start_is_a_list_or_an_array(two_classes):
    weights = [0.5, 0, 0, 0]
    first, again = (compare(*two_classes, start=w, **SMALL) for w in (weights, np.array(weights)))
    assert (first.cost == again.cost).all()
    assert first.cost.iloc[0] != np.log(2)


def test_an_empty_step_of_zero_iterations_has_the_start_alone(two_classes):
    found = compare(*two_classes, step_sizes=[1], iterations=0)
    frame = found.frame
    assert not {"best step", "verdict"} & {*found.table}
    assert "step size" not in found.sentence
    np.testing.assert_allclose(frame.cost, np.log(2))
    assert set(frame.misclassifications) == {60}


def test_points_are_held_out_as_at_the_command_line(two_classes):
    """Drawn class by class by a seed of their own; without them there is nothing of a test part."""
    x, labels = two_classes
    held = {"test_fraction": 0.25, "split_seed": 3, "iterations": 4, "step_sizes": [0.1, 1.0]}
    found = compare(x, labels, "softmax", ["standard"], **held)
    data = split(label_dataset("x", x, labels, "classes", source="arrays"), 0.25, 3)
    assert list(found.frame.columns[-2:]) == ["test_cost", "test_misclassifications"]
    first = found.frame[found.frame.iteration == 0]
    np.testing.assert_allclose(first.test_cost, np.log(2), rtol=1e-12)
    plain = Job(
        data, softmax, StandardScaler(), gradient_descent(), Settings((0.1, 1.0), iterations=4)
    )
    for step, size in zip(run(plain).steps, (0.1, 1.0), strict=True):
        mine = found.frame[found.frame.step_size == size]
        np.testing.assert_allclose(mine.test_cost, step.histories["test/cost"], rtol=1e-12)
    assert found.sweep.runs["params.dataset.test_fraction"].dropna().unique().tolist() == ["0.25"]
    assert "test_cost" not in compare(x, labels, **SMALL).frame


def test_points_that_are_orthogonal_to_all_training_points_are_of_the_first_class():
    # Sphered by all points, fewer than features: their scores are 0, and rounding chooses no class.
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((80, 100)), rng.integers(0, 3, 80)
    drawn = {"test_fraction": 0.25, "split_seed": 1, "fit_on": "all"}
    scheme = PCASphere(ridge=0)
    frame = compare(x, y, "multiclass_softmax", [scheme], [0.5], 5, theory="none", **drawn).frame
    assert set(frame["test_misclassifications"]) == {14}


def test_scores_of_held_out_points_count_beside_a_feature_of_large_numbers():
    # The large feature has a small weight, the small one a large weight: no score is rounding.
    rng = np.random.default_rng(0)
    seconds, small = 1.7e9 + 3e7 * rng.standard_normal(400), rng.random(400)
    score = (seconds - 1.7e9) / 3e7 + 3 * (small - 0.5) + 0.5 * rng.standard_normal(400)
    x, y = np.column_stack([seconds, small]), (score > 0).astype(int)
    options = {"optimizer": "newton", "iterations": 8, "test_fraction": 0.5}
    table = compare(x, y, normalizers=["identity", "standard"], step_sizes=[1], **options).table
    assert table["test cost"].to_list() == pytest.approx([0.235273] * 2, rel=1e-5)
    assert table["test misclassified"].nunique() == 1


def test_folds_and_copies_are_those_of_the_command_line(two_classes):
    x, labels = two_classes
    drawn = {"points": 40, "folds": 4, "repeats": 2, "split_seed": 1, "fit_on": "all"}
    drawn |= {"augment": "round", "augment_copies": 2, "augment_noise": 0.3}
    found = compare(x, labels, "softmax", ["standard"], [0.1, 1.0], 4, **drawn)
    data = Sampling(**drawn).apply(label_dataset("x", x, labels, "classes", source="arrays"))
    assert len(data.x) == 120
    plain = Job(
        data, softmax, StandardScaler(), gradient_descent(), Settings((0.1, 1.0), iterations=4)
    )
    known = run(plain).findings.metrics
    (row,) = found.cross_validation.to_dict("records")
    assert (row["folds"], row["seeds"]) == ("4", 2)
    assert row["error, %"] == pytest.approx(100 * known["folds/error"], rel=1e-12)
    assert row["cost"] == pytest.approx(known["folds/cost"], rel=1e-12)
    (scheme,) = found.sweep.of_role("scheme").to_dict("records")
    for name, value in drawn.items():
        assert scheme[f"params.dataset.{name}"] == str(value)
    assert compare(x, labels, **SMALL).cross_validation.empty


@pytest.mark.parametrize("unit", ["cells", "points"])
def test_outliers_are_those_of_the_command_line(two_classes, unit):
    x, labels = two_classes
    drawn = {"outliers": unit, "outlier_share": 0.1, "outlier_size": 50, "test_fraction": 0.25}
    found = compare(x, labels, "softmax", ["standard"], [0.1], 4, **drawn).frame
    data = Sampling(**drawn).apply(label_dataset("x", x, labels, "classes", source="arrays"))
    settings = Settings((0.1,), iterations=4)
    (step,) = run(Job(data, softmax, StandardScaler(), gradient_descent(), settings)).steps
    np.testing.assert_array_equal(found["cost"], step.histories["train/cost"])
    clean = compare(x, labels, "softmax", ["standard"], [0.1], 4, test_fraction=0.25).frame
    assert not np.allclose(found["cost"][1:], clean["cost"][1:], rtol=1e-3)


def test_outliers_that_are_no_unit_are_refused_in_the_words_of_python(two_classes):
    with pytest.raises(UserError, match=r"^outliers='rows': must be one of cells, points"):
        compare(*two_classes, outliers="rows")


def test_each_split_has_random_starts_of_its_own_as_at_the_command_line(two_classes):
    found = {
        (seed, share): compare(
            *two_classes,
            **SMALL | {"start": "normal", "record": ["path"]},
            **{"test_fraction": share, "split_seed": seed},
        ).sweep
        for seed in (0, 2)
        for share in (0, 0.25)
    }
    first = {
        case: sweep.arrays(sweep.of_role("scheme"), "path")["standard"]["weights"][0].tolist()
        for case, sweep in found.items()
    }
    assert first[2, 0] == first[0, 0] == first[0, 0.25]
    assert first[2, 0.25] == [
        (0.1 * np.random.default_rng([0, 2, 0]).standard_normal((1, 4))).tolist()[0]
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, r"Correct the frame, or add encode=\['ci ty'\] fill='median'$"),
        ({"encode": ["city"]}, "^encode='city': no such column; .* did you mean ci ty$"),
        ({"drop": ["ci ty"], "fill": "mean"}, "^fill='mean': must be one of median, drop"),
        (
            {"drop": ["ci ty", "age"], "test_fraction": 0.01},
            "^test_fraction=0.01: holds no point",
        ),
        ({"drop": ["ci ty", "age"], "test_fraction": 1}, "^test_fraction=1: must be a finite"),
        ({"drop": ["ci ty", "age"], "split_seed": -1}, "^split_seed=-1: must be 0 or more"),
        ({"drop": ["ci ty", "age"], "points": 13}, "^points=13: must be from 2 to 12$"),
        ({"drop": ["ci ty", "age"], "folds": 7}, "^folds=7: must be from 2 to 6$"),
        ({"drop": ["ci ty", "age"], "repeats": 0}, "^repeats=0: must be 1 or more$"),
        (
            {"drop": ["ci ty", "age"], "fit_on": "all"},
            "^fit_on='all': x has no test points; set test_fraction or folds$",
        ),
        (
            {"drop": ["ci ty", "age"], "augment": "rund"},
            "^augment='rund': must be one of aligned, round; did you mean round$",
        ),
        ({"drop": ["ci ty", "age"], "augment_copies": 0}, "^augment_copies=0: must be from 1 to"),
        ({"drop": ["ci ty", "age"], "augment_noise": 0}, "^augment_noise=0: must be a finite"),
    ],
)
def test_a_frame_is_refused_in_the_words_of_python(given, words):
    frame = pd.DataFrame({"ci ty": [*"abc"] * 4, "age": [1.0, None, 3.0] * 4, "x": range(12)})
    with pytest.raises(UserError, match=words):
        compare(frame, [0, 1] * 6, **given)


def test_labels_that_differ_by_capitals_are_noted_and_merged():
    x, y = np.arange(8.0)[:, None] % 3, ["Yes", "no", "yes", "No."] * 2
    comparison = compare(x, y, "multiclass_softmax", **SMALL)
    assert "; merge_labels=True joins them" in str(comparison)
    for points in (x, pd.DataFrame(x, columns=["a"])):
        merged = compare(points, y, "softmax", **SMALL, merge_labels=True)
        assert "joins them" not in str(merged)
        assert "target: 2 classes (No. 4, Yes 4)" in str(merged)


def descended(z, y, step_size):
    """Return the cost of softmax after 100 iterations of plain descent, by its formula alone."""
    rows = np.c_[np.ones(len(z)), z]
    weights = np.zeros(rows.shape[1])
    for _ in range(100):
        weights -= step_size * rows.T @ (1 / (1 + np.exp(-rows @ weights)) - y) / len(y)
    scores = rows @ weights
    return np.mean(np.logaddexp(0, scores) - y * scores)


def houses():
    """Return places of latitudes around 47.5 and of years of building, and which are dear."""
    rng = np.random.default_rng(3)
    latitude = 47.3 + 0.1 * rng.gamma(2.0, size=200)
    year = 1990 + rng.gamma(2.0, 6.0, size=200)
    x = np.c_[latitude, year, rng.lognormal(7.6, 0.3, 200)]
    return x, (10 * (latitude - 47.5) + 0.1 * (year - 2002) + rng.standard_normal(200) > 0) * 1


def test_latitudes_and_years_keep_their_variation_under_power():
    x, y = houses()
    frame = pd.DataFrame(x, columns=["lat", "year", "area"])
    schemes = [PowerTransformer(), "power"]
    found = compare(frame, y, normalizers=schemes, step_sizes=[10])
    theirs, ours = found.table["cost"]
    # Box-Cox's likelihood in logs is SciPy's; of values over their middle no digit is lost.
    columns = []
    for column in (x + 1).T:
        ratio = column / np.exp(np.log(column).mean())
        columns.append(stats.boxcox(ratio, stats.boxcox_normmax(ratio, method="mle")))
    z = np.array(columns).T
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    assert ours == pytest.approx(descended(z, y, 10), rel=1e-6)  # measured: 1e-9
    assert not theirs <= 2 * ours  # it may have diverged
    said = "PowerTransformer leaves 2 of 3 features without variation (lat, year), so no descent "
    assert said in found.sentence
    assert "power leaves" not in found.sentence


@pytest.mark.parametrize("unit", [1e-5, 1e-2])
def test_a_ridge_above_the_variances_is_in_every_answer_and_can_be_removed(unit, capsys):
    rng = np.random.default_rng(4)
    volts = rng.standard_normal((120, 4)) @ (np.eye(4) + 0.5)
    y = (volts[:, 0] - volts[:, 1] + 0.5 * rng.standard_normal(120) > 0) * 1
    schemes = ["standard", PCASphere(), PCASphere(ridge=0)]
    found = compare(unit * volts, y, normalizers=schemes, step_sizes=[1], shadows=False)
    whole = np.linalg.svd(volts - volts.mean(axis=0), full_matrices=False)[0] * np.sqrt(120)
    assert found.table["cost"].iloc[2] == pytest.approx(descended(whole, y, 1), rel=1e-6)
    said = "protects against division by zero matters under PCASphere, ridge=1e-07: "
    if unit > 1e-5:
        assert said not in found.sentence
        return
    terminal._say_answers(screen.console(), found.sweep)
    for text in (found.sentence, " ".join(capsys.readouterr().out.split())):
        assert said in text
        assert "4 of 4 directions are scaled too little; normalizer.ridge=0" in text
