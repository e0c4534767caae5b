"""The columns of a scheme: found by name, position or kind, again in each fold, or refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from normbench import compare, names, optimizers
from normbench.choices import build, chain, on_columns, options
from normbench.costs import softmax
from normbench.datasets import Sampling, UserError, make_dataset
from normbench.datasets.tables import TableOptions, find_features, table_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.optimizers import gradient_descent

RNG = np.random.default_rng(2)
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(50, 20, 60),
        "city": np.where(np.arange(60) == 7, "Bern", RNG.choice(["Oslo", "Rome"], 60)),
        "income": RNG.normal(3, 1, 60),
        "smokes": RNG.integers(0, 2, 60),
    }
)
LABELS = pd.Series(np.where(FRAME["age"] + RNG.normal(0, 10, 60) > 50, "old", "young"), name="y")
TABLE = pd.concat([FRAME, LABELS], axis=1)
DATA = table_dataset("t", TABLE, TableOptions(encode=["city"], target="y"), source="-")
NUMERIC = [0, 4]  # age, city=Bern, city=Oslo, city=Rome, income, smokes
GRID = {"step_sizes": [0.1, 1.0], "iterations": 10}


@pytest.mark.parametrize(
    ("columns", "positions"),
    [
        ("numeric", NUMERIC),
        (["income", "age"], NUMERIC),
        ("age", [0]),
        (["city"], [1, 2, 3]),
        (["city=Oslo", "smokes"], [2, 5]),
        ([0, -1], [0, 5]),
        ((0, 4), NUMERIC),
        (4, [4]),
        ([0, "age"], [0]),
    ],
)
def test_columns_are_found_as_they_are_named(columns, positions):
    assert find_features(DATA, columns, "normalizer.columns") == positions


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("agee", "columns='agee': no such column; give a name of age, city=Bern"),
        (["city", "towns"], "columns='towns': no such column"),
        ([9], "columns=9: no such column; give a name of age, "),
        ([], "columns=[]: no feature of x is such (0 and 1 alone are not numeric); take "),
        (2.5, "columns=2.5: must be a list of columns"),
    ],
)
def test_a_column_that_is_not_there_is_a_line(columns, words):
    with pytest.raises(UserError) as error:
        compare(FRAME, LABELS, encode=["city"], columns=columns, **GRID)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_without_a_numeric_column_there_is_nothing_to_scale():
    with pytest.raises(UserError, match=r"no feature of x is such .0 and 1 alone are not numeric"):
        compare(FRAME[["smokes"]], LABELS, columns="numeric", **GRID)


def frame_of(**settings):
    return compare(FRAME, LABELS, encode=["city"], **GRID, **settings).frame


def by_hand(positions, width=6):
    rest = [n for n in range(width) if n not in positions]
    return ColumnTransformer([("s", StandardScaler(), positions), ("rest", "passthrough", rest)])


@pytest.mark.slow
def test_compare_takes_columns_and_column_transformers_by_position_and_by_name():
    ours = frame_of(normalizers="standard", columns="numeric")
    named = ColumnTransformer([("s", StandardScaler(), ["age", "income"])], remainder="passthrough")
    numeric = ColumnTransformer([("s", StandardScaler(), "numeric")], remainder="passthrough")
    for scheme in (by_hand(NUMERIC), named, numeric):
        theirs = frame_of(normalizers=[scheme])
        np.testing.assert_allclose(theirs["cost"], ours["cost"], rtol=1e-12)
    in_a_chain = frame_of(normalizers=[make_pipeline(named, StandardScaler())])
    assert not np.allclose(in_a_chain["cost"], ours["cost"])
    assert named.transformers[0][2] == ["age", "income"]  # that of the user stays as it was


def test_a_column_transformer_that_names_no_column_is_a_line():
    named = ColumnTransformer([("s", StandardScaler(), ["agee"])])
    with pytest.raises(UserError, match=r"^transformers='agee': no such column; .*mean age"):
        frame_of(normalizers=[named])
    of_frames = ColumnTransformer([("s", StandardScaler(), make_column_selector("age"))])
    with pytest.raises(UserError, match="make_column_selector"):
        frame_of(normalizers=[of_frames])


def job(scheme, data=DATA, **settings):
    return Job(
        data, softmax, scheme, gradient_descent(), Settings((0.1,), iterations=5, **settings)
    )


def test_an_option_of_the_config_names_the_schemes_of_a_column_transformer():
    choice = {
        "_target_": "sklearn.compose.ColumnTransformer",
        "transformers": [["s", {"standard": {"with_mean": False}}, "numeric"], ["d", "drop", [1]]],
        "remainder": "centre",
    }
    built = build("normalizer", choice)
    assert built.transformers[0][1].with_mean is False
    assert built.remainder.with_std is False
    assert run(job(built)).features == 5
    with pytest.raises(UserError, match=r"transformers=standrd: no such option; .*mean standard"):
        build("normalizer", choice | {"transformers": [["s", "standrd", [0]]]})
    with pytest.raises(UserError, match=r"transformers=\[\['s', 'standard'\]\]: must be a list of"):
        build("normalizer", choice | {"transformers": [["s", "standard"]]})


def test_a_link_of_a_chain_has_columns_of_its_own():
    centred = chain([{"standard": {"columns": "numeric"}}, "centre"])
    z = run(job(centred)).scheme.transform(DATA.x)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    deviations = DATA.x.std(axis=0)
    deviations[NUMERIC] = 1
    np.testing.assert_allclose(z.std(axis=0), deviations)
    with pytest.raises(UserError, match="it gets 2; put it first in a chain"):
        run(job(chain([{"pca": {"components": 2}}, {"standard": {"columns": "numeric"}}])))


@pytest.mark.parametrize("preconditions", [False, True])
def test_columns_of_a_users_own_scheme_stay_as_they_were_named(preconditions):
    """A job selects the columns in its copy, of its normalizer and of a preconditioner."""
    own = ColumnTransformer([("a", StandardScaler(), ["age", "income"])])
    schemes = [own, make_pipeline(own), on_columns(StandardScaler(), "age")]
    for scheme in schemes:
        before = repr(scheme.get_params())
        rule = optimizers.preconditioned(scheme) if preconditions else gradient_descent()
        normalizer = StandardScaler() if preconditions else scheme
        run(Job(DATA, softmax, normalizer, rule, Settings(**GRID)))
        assert repr(scheme.get_params()) == before
    assert own.transformers[0][2] == ["age", "income"]
    assert not schemes[2].columns.feature_names


def test_a_fold_without_a_category_has_the_same_columns():
    # Bern is one point: the folds that hold it out have no feature of it, and the others move up.
    data = Sampling(folds=3).apply(DATA)
    scheme = on_columns(build("normalizer", options("normalizer", "standard")), ["age", "city"])
    assert run(job(scheme, data)).findings.metrics[names.FOLDS_ERROR.key] < 0.5
    without = pd.DataFrame(DATA.x, columns=DATA.feature_names).drop(columns="city=Bern")
    fold = make_dataset(
        "t", without, DATA.y, class_names=["a", "b"], source="-", feature_names=[*without]
    )
    moved = job(scheme, fold).scheme
    assert [moved.columns.feature_names[n] for n in moved.columns.positions] == [
        *("age", "city=Oslo", "city=Rome")
    ]
