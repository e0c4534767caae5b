"""A job's identity: what changes it, and what does not."""

import importlib
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler

from normbench import costs, optimizers
from normbench.choices import chain, on_columns
from normbench.datasets import Sampling, make_dataset
from normbench.datasets.tables import TableOptions, table_dataset
from normbench.engine.scheme import with_columns
from normbench.normalizers import PCASphere
from normbench.recording.reuse import identity as fingerprint
from normbench.settings import RANDOM_STARTS

PARAMS = {
    **{"cost": "softmax", "cost.l2": 0.0, "normalizer": "pca_sphere", "normalizer.ridge": 1e-7},
    **{"optimizer": "gradient_descent", "step_sizes": [0.1, 1.0], "iterations": 100},
    **{"start": "zeros", "start_scale": 0.1, "starts": 1, "seed": 0, "precision": "float64"},
    **{"record": ["path"], "theory": "auto", "shown_step": None, "rules.tail": 0.1},
    **{"search.critical": False, "search.width": 0.01},
    **{"dataset": "points", "dataset.path": "y.csv", "data_dir": "/here", "study.says": "fast"},
}
POINTS, LABELS = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])


def data(points=POINTS, labels=LABELS, classes=("a", "b")):
    return make_dataset("points", points, labels, class_names=classes, source="-")


def both(params=PARAMS, dataset=None, cost=costs.softmax, normalizer=None, optimizer=None):
    parts = (cost, normalizer or PCASphere(), optimizer or optimizers.gradient_descent())
    return fingerprint.identity(params, dataset or data(), parts)


def identity(*arguments, **named):
    return both(*arguments, **named).descent


def test_what_is_looked_for_beside_the_grid_makes_another_descent_of_the_same_grid():
    known = {**PARAMS, "refine": "auto", "shadows": True}
    beside = [{**known, "refine": False}, {**known, "shadows": False}]
    every = [both(known), *map(both, beside)]
    assert len({each.descent for each in every}) == 3
    assert len({each.grid for each in every}) == 1
    assert both({**known, "iterations": 101}).grid != every[0].grid


def test_what_changes_the_numbers_makes_the_identity():
    assert identity() == identity(normalizer=PCASphere())
    others = [
        identity({**PARAMS, "iterations": 101}),
        identity({**PARAMS, "normalizer.ridge": 1e-6}),
        identity({**PARAMS, "cost.l2": 0.1}),
        identity({**PARAMS, "optimizer": "sign"}),
        identity({**PARAMS, "step_sizes": [0.1]}),
        identity({**PARAMS, "precision": "float32"}),
        identity({**PARAMS, "start": [0.0, 1.0, 2.0]}),
        identity({**PARAMS, "start": "normal"}),
        identity(dataset=data(POINTS + 1)),
        identity(dataset=data(labels=1 - LABELS)),
        identity(dataset=data(classes=("a", "b", "c"))),
        identity(cost=costs.multiclass_softmax),
    ]
    assert len({identity(), *others}) == 1 + len(others)


def test_a_model_is_of_the_identity_and_the_linear_one_is_what_it_was():
    model = {**PARAMS, "model": "mlp", "model.hidden": [2], "model.normalize": "none"}
    others = [model, {**model, "model.hidden": [3]}, {**model, "model.normalize": "batch"}]
    linear = {**PARAMS, "model": "linear", "model.normalize": "none", "model.epsilon": 1e-5}
    assert identity(linear) == identity()
    others.append({**linear, "model.normalize": "batch"})
    assert len({identity(), *map(identity, others)}) == 5


@pytest.mark.parametrize(
    "other",
    [
        {"record": ["contours"]},
        {"theory": "full"},
        {"search.critical": True},
        {"rules.tail": 0.2},
        {"shown_step": 1.0},
        {"dataset.folds": 5, "dataset.repeats": 1, "dataset.split_seed": 0},
    ],
)
def test_what_is_asked_beside_the_numbers_is_apart_from_them(other):
    first, second = both(), both({**PARAMS, **other})
    assert first.descent == second.descent
    assert first.job != second.job


@pytest.mark.parametrize(
    "other",
    [
        {"data_dir": "/there", "dataset.path": "x.csv", "dataset.split_seed": 3},
        {"study.says": "slow"},
        {"seed": 1, "start_scale": 0.2},
        {"search.width": 0.1},
    ],
)
def test_what_changes_nothing_is_no_part_of_it(other):
    assert both() == both({**PARAMS, **other})


def test_statistics_of_all_points_are_another_descent_and_other_folds_another_job():
    assert identity({**PARAMS, "dataset.fit_on": "all"}) != identity()
    assert identity({**PARAMS, "dataset.fit_on": "train"}) == identity()
    folds = {**PARAMS, "dataset.folds": 5, "dataset.repeats": 2, "dataset.split_seed": 0}
    others = [
        both({**folds, key: 3})
        for key in ("dataset.folds", "dataset.repeats", "dataset.split_seed")
    ]
    assert len({both(folds).job, both().job, *(other.job for other in others)}) == 5


def on_named(columns, names):
    data = SimpleNamespace(feature_names=names)
    return with_columns(on_columns(PCASphere(), columns), data)


def test_the_columns_of_a_scheme_are_of_its_identity():
    every = {
        identity(),
        identity(normalizer=on_named(["a"], ("a", "b"))),
        identity(normalizer=on_named(["a"], ("b", "a"))),
        identity(normalizer=ColumnTransformer([("s", MinMaxScaler(), [0])])),
        identity(normalizer=ColumnTransformer([("s", MinMaxScaler(clip=True), [0])])),
        identity(normalizer=ColumnTransformer([("s", MinMaxScaler(), [1])])),
        identity(normalizer=ColumnTransformer([("s", MinMaxScaler(), slice(0, 1))])),
    }
    assert len(every) == 7
    assert identity({**PARAMS, "normalizer.columns": None}) == identity()
    assert identity({**PARAMS, "normalizer.columns": "numeric"}) != identity()


@pytest.mark.parametrize(
    "settings",
    [([2, 3], [2, 4]), ([2, 3], [np.int64(2), 4]), (np.array([2, 3]), np.array([2, 4]))],
)
def test_settings_of_a_scheme_in_another_that_are_lists_and_arrays_are_of_its_identity(settings):
    one, other = (
        identity(normalizer=make_pipeline(KBinsDiscretizer(n_bins=bins))) for bins in settings
    )
    assert one != other
    assert one == identity(normalizer=make_pipeline(KBinsDiscretizer(n_bins=settings[0])))


def test_the_share_of_outliers_counts_in_folds_whose_points_are_fewer():
    folds = {**PARAMS, "dataset.folds": 5, "dataset.outliers": "points"}
    jobs = [both({**folds, "dataset.outlier_share": share}) for share in (0.0062, 0.0068)]
    assert jobs[0].descent == jobs[1].descent  # of data of one content
    assert jobs[0].job != jobs[1].job
    alone = {**PARAMS, "dataset.outliers": "points", "dataset.outlier_share": 0.1}
    assert both(alone) == both({**alone, "dataset.outlier_share": 0.2})


def test_folds_of_a_table_with_gaps_are_not_those_of_its_filled_one():
    table = pd.DataFrame({"age": [1.0, 2.0, np.nan, 9.0, 7.0, 3.0], "label": ["a", "b"] * 3})
    options = TableOptions(fill="median", target="label")
    with_gaps, filled = (
        table_dataset("t", rows, options, source="-")
        for rows in (table, table.fillna({"age": 3.0}))
    )
    assert identity(dataset=with_gaps) == identity(dataset=filled)
    folds = Sampling(folds=3)
    again, first, other = (identity(dataset=folds.apply(d)) for d in (filled, filled, with_gaps))
    assert again == first != other


def test_a_seed_counts_where_it_draws_the_start():
    for start in RANDOM_STARTS:
        drawn = {**PARAMS, "start": start}
        assert identity(drawn) != identity({**drawn, "seed": 1})
        assert identity(drawn) != identity({**drawn, "start_scale": 0.2})


def test_what_is_recorded_covers_what_is_asked_of_less_and_of_no_other():
    recorded = {key: str(value) for key, value in PARAMS.items()}
    assert fingerprint.covers(recorded, PARAMS)
    assert fingerprint.covers(recorded, {**PARAMS, "record": []})
    assert fingerprint.covers({**recorded, "record": "['fit', 'path']"}, PARAMS)
    assert not fingerprint.covers(recorded, {**PARAMS, "record": ["path", "fit"]})
    assert not fingerprint.covers(recorded, {**PARAMS, "theory": "full"})
    assert not fingerprint.covers(recorded, {**PARAMS, "search.critical": True})
    assert fingerprint.judging_settings(recorded) == fingerprint.judging_settings(PARAMS)
    assert fingerprint.judging_settings(recorded) != fingerprint.judging_settings(
        {**PARAMS, "rules.tail": 0.2}
    )


def test_every_link_of_a_chain_and_its_settings_make_the_identity():
    def chained(*schemes):
        return identity(normalizer=chain(schemes))

    whole = chained({"pca": {"components": 5}}, "standard")
    assert whole == chained({"pca": {"components": 5}}, "standard")
    assert whole != chained({"pca": {"components": 4}}, "standard")
    members = fingerprint._members(chain(["pca_sphere", "minmax"]))
    assert [fingerprint._definition_of(member).__module__.split(".")[-1] for member in members] == [
        "whitening",
        "_data",
    ]


def test_every_scheme_of_a_union_makes_the_identity():
    union = FeatureUnion([("s", MinMaxScaler()), ("p", chain(["pca_sphere"]))])
    names = [type(member).__name__ for member in fingerprint._members(union)]
    assert names == ["FeatureUnion", "MinMaxScaler", "PCASphere"]


def test_the_link_of_a_chain_of_one_counts_with_its_settings():
    assert identity(normalizer=chain(["pca"])) != identity(normalizer=chain(["pca_sphere"]))
    one, other = (chain([{"pca_sphere": {"ridge": ridge}}]) for ridge in (1e-7, 1e-6))
    assert identity(normalizer=one) != identity(normalizer=other)


def test_the_scheme_of_an_optimizer_counts_with_its_settings_and_code(monkeypatch):
    def of_scheme(scheme):
        optimizer = optimizers.preconditioned(scheme)
        return identity(normalizer=MinMaxScaler(), optimizer=optimizer)

    assert of_scheme(PCASphere()) == of_scheme(PCASphere())
    assert of_scheme(PCASphere()) != of_scheme(PCASphere(ridge=0.1))  # by the option's file
    assert of_scheme(chain([{"pca": {"components": 1}}])) != of_scheme(chain(["pca"]))
    known = of_scheme(PCASphere())
    real = fingerprint.code_identity
    edited = {PCASphere.__module__: "edited"}
    monkeypatch.setattr(fingerprint, "code_identity", lambda name: edited.get(name) or real(name))
    assert of_scheme(PCASphere()) != known


SOURCE = """
\"\"\"A cost of a user's own.\"\"\"

import numpy as np


def own(scores, targets):
    \"\"\"Return the cost.\"\"\"
    if scores.ndim != 3:
        raise ValueError("bad scores")
    return np.sum(scores[:, 0] - targets, axis=-1)
"""


@pytest.fixture
def changed(tmp_path, monkeypatch):
    """Return a function that changes a user's module and gives the identity of a job with it."""
    file = tmp_path / "a_users_cost.py"
    monkeypatch.syspath_prepend(tmp_path)

    def change(before="", after=""):
        assert before in SOURCE
        file.write_text(SOURCE.replace(before, after))
        sys.modules.pop(file.stem, None)
        importlib.invalidate_caches()
        fingerprint.code_identity.cache_clear()
        fingerprint._user_imports.cache_clear()
        return identity(cost=importlib.import_module(file.stem).own)

    yield change
    sys.modules.pop(file.stem, None)
    fingerprint.code_identity.cache_clear()
    fingerprint._user_imports.cache_clear()


def test_a_formula_of_a_users_own_changes_the_identity(changed):
    assert changed("scores[:, 0] - targets", "scores[:, 0] * targets") != changed()


MODEL = """
from dataclasses import dataclass

from normbench.models import Mlp


@dataclass(frozen=True)
class Own(Mlp):
    def scores(self, *arguments, **named):
        return FACTOR * super().scores(*arguments, **named)
"""


def test_the_code_of_a_model_of_a_users_own_changes_the_identity(tmp_path, monkeypatch):
    """Two classes of one name and equal fields are two models."""
    monkeypatch.syspath_prepend(tmp_path)
    params = {**PARAMS, "model": "own", "model.hidden": [2]}
    parts = costs.softmax, PCASphere(), optimizers.gradient_descent()
    digests = []
    for name, factor in (("a_users_model", 1.0), ("another_model", 1.0), ("a_third_model", 2.0)):
        (tmp_path / f"{name}.py").write_text(MODEL.replace("FACTOR", str(factor)))
        importlib.invalidate_caches()
        model = importlib.import_module(name).Own([2])
        digests.append(fingerprint.identity(params, data(), (*parts, model)).descent)
        sys.modules.pop(name)
    assert len({fingerprint.identity(params, data(), parts).descent, *digests}) == 4


IMPORTING = "import numpy as np"


@pytest.mark.parametrize(
    ("imported", "file", "is_part"),
    [
        ("from a_users_helper import scale", "a_users_helper.py", True),
        ("import a_users_helper", "a_users_helper.py", True),
        ("def late():\n    import a_users_folder.helper", "a_users_folder/helper.py", True),
        ("from a_users_folder import helper", "a_users_folder/deep.py", True),
        ("import numpy", "a_users_helper.py", False),
        ("import no_such_module", "a_users_helper.py", False),
    ],
)
def test_modules_that_a_users_module_imports_are_of_the_identity(
    changed, tmp_path, imported, file, is_part
):
    (tmp_path / "a_users_folder").mkdir()
    (tmp_path / "a_users_folder" / "helper.py").write_text("from . import deep\n")
    (tmp_path / "a_users_folder" / "deep.py").write_text("")
    if imported == "import no_such_module":
        imported = f"def late():\n    {imported}"
    digests = []
    for factor in (1, 2):
        (tmp_path / file).write_text(f"def scale(x):\n    return {factor} * x\n")
        digests.append(changed(IMPORTING, f"{IMPORTING}\n{imported}"))
    for name in ("a_users_helper", "a_users_folder", "a_users_folder.helper"):
        sys.modules.pop(name, None)
    assert (digests[0] != digests[1]) == is_part


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return a function that writes files into `site-packages` and gives a cost's identity."""
    folder = tmp_path / "site-packages"
    (folder / "a_lab").mkdir(parents=True)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.syspath_prepend(tmp_path)
    (folder / "a_lab" / "__init__.py").touch()
    (folder / "a_lab" / "costs.py").write_text("from a_lab.scales import SCALE\n" + SOURCE)
    (folder / "a_tool.py").write_text(SOURCE)
    (tmp_path / "a_users_cost.py").write_text(f"import a_tool\nfrom a_lab import scales\n{SOURCE}")
    (folder / "a_lab" / "scales.py").write_text("SCALE = 1\n")

    def forget():
        for name in [
            name for name in sys.modules if name.startswith(("a_lab", "a_tool", "a_users"))
        ]:
            sys.modules.pop(name)
        importlib.invalidate_caches()
        for cached in ("code_identity", "_user_imports", "_package_digest"):
            getattr(fingerprint, cached).cache_clear()

    def identity_of(module, files=()):
        for name, text in dict(files).items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        forget()
        return identity(cost=importlib.import_module(module).own)

    yield identity_of
    forget()


@pytest.mark.parametrize(
    ("module", "file", "text"),
    [
        ("a_lab.costs", "a_lab/scales.py", "SCALE = 3\n"),
        ("a_lab.costs", "a_lab/deep.py", "a new module\n"),
        ("a_lab.costs", "a_lab-2.dist-info/METADATA", "Name: a_lab\nVersion: 2\n"),
        ("a_tool", "a_tool.py", f"{SOURCE}\nSCALE = 3\n"),
        ("a_users_cost", "a_lab/scales.py", "SCALE = 3\n"),
        ("a_users_cost", "a_tool.py", f"{SOURCE}\nSCALE = 3\n"),
    ],
)
def test_a_changed_file_of_an_installed_package_is_another_job(installed, module, file, text):
    before = installed(module)
    assert installed(module) == before
    assert installed(module, {file: text}) != before


def test_another_installed_package_changes_nothing(installed):
    before = installed("a_lab.costs")
    assert installed("a_lab.costs", {"a_tool.py": "SCALE = 3\n"}) == before


def test_a_module_is_read_in_the_encoding_that_it_says(changed, tmp_path):
    before = changed()
    text = "# coding: latin-1\n" + SOURCE.replace("A cost of", "Ein Maß für")
    (tmp_path / "a_users_cost.py").write_bytes(text.encode("latin-1"))
    fingerprint.code_identity.cache_clear()
    assert identity(cost=sys.modules["a_users_cost"].own) == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import numpy", "# a remark\nimport numpy"),
        ("Return the cost.", "The cost."),
        ("A cost of a user's own.", "A cost."),
        ("bad scores", "scores must be (R, C, P)"),
    ],
)
def test_remarks_and_the_words_of_an_error_do_not(changed, before, after):
    assert changed(before, after) == changed()


def test_every_part_is_told_by_its_module_and_the_engine_by_its_number(monkeypatch):
    """So no engine's constant throws away what is recorded, and a new formula of a part does."""
    before, seen = identity(), []
    real = fingerprint.code_identity
    monkeypatch.setattr(fingerprint, "code_identity", lambda name: seen.append(name) or real(name))
    identity(normalizer=chain(["standard", "pca_sphere"]))
    assert seen == [
        "normbench.costs",
        "normbench.normalizers.whitening",
        "normbench.optimizers",
        "sklearn.preprocessing._data",
    ]
    monkeypatch.setattr(fingerprint, "NUMBERS", fingerprint.NUMBERS + 1)
    assert identity() != before


def test_another_version_of_scikit_learn_is_another_scheme(monkeypatch):
    def standard():
        fingerprint.code_identity.cache_clear()
        return identity(normalizer=chain(["standard"])), identity()

    scheme, own = standard()
    monkeypatch.setattr(fingerprint, "version", lambda name: "99")
    other = standard()
    fingerprint.code_identity.cache_clear()
    assert other[0] != scheme
    assert other[1] == own
