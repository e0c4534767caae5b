"""What a `_target_` may name: a config is data, and no program."""

import importlib
import pickle
import sys
import types

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin

from normbench.choices import CONF, allow_packages, build, chain, import_target, options
from normbench.comparison import compare
from normbench.costs import softmax
from normbench.datasets import UserError
from normbench.datasets.bundled import iris
from normbench.optimizers import gradient_descent

FOREIGN = (
    "os.system",
    "subprocess.run",
    "builtins.eval",
    "posix.system",
    "pickle.loads",
    "joblib.load",
    "antigravity.fly",
    "normbench.command.sweep.sweeper.subprocess",
    "normbench.command.sweep.sweeper.shutil",
    "normbench.record.archive.count",
    "sklearn.utils.parallel.joblib",
    "sklearn.datasets._base.gzip",
    "eval",
    "",
    None,
)


def test_what_a_caller_writes_into_an_options_entries_is_not_there_the_next_time():
    entries = options("normalizer", "robust")
    entries["_target_"] = "another"
    entries["quantile_range"].clear()
    assert options("normalizer", "robust")["_target_"] != "another"
    assert len(options("normalizer", "robust")["quantile_range"]) == 2


def test_an_option_whose_file_changes_is_read_anew(tmp_path, monkeypatch):
    monkeypatch.setattr("normbench.choices.CONF", tmp_path)
    file = tmp_path / "normalizer" / "own.yaml"
    file.parent.mkdir()
    for value in (1, 2):
        file.write_text(f"part: {value}")
        assert options("normalizer", "own") == {"part": value}


@pytest.mark.parametrize("target", FOREIGN)
@pytest.mark.parametrize("group", ["cost", "normalizer", "dataset", "optimizer", "model"])
def test_code_from_elsewhere_is_refused_unread(group, target):
    told = "=" if target else ": is missing"
    with pytest.raises(UserError, match=f"{group}._target_{told}") as caught:
        import_target(group, target)
    assert len(str(caught.value).splitlines()) == 1
    assert "antigravity" not in sys.modules


def test_a_scheme_within_a_chain_is_no_way_around():
    links = [{"standard": {"_target_": "os.getcwd"}}]
    for schemes in (links, [{"chain": {"schemes": links}}]):
        with pytest.raises(UserError, match=r"normalizer\.schemes=os\.getcwd: is of"):
            build("normalizer", {"_target_": "normbench.choices.chain", "schemes": schemes})


@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        ({"pca": {"foo": 1}}, r"optimizer\.scheme\.pca\.foo=1: .*unexpected keyword"),
        ("pcx", r"^optimizer\.scheme=pcx: no such option; did you mean pca, or one of"),
        ("os.getcwd", r"^optimizer\.scheme=os\.getcwd: is of os"),
        ("normbench.job.run", r"^optimizer\.scheme=normbench\.job\.run: is named by no option"),
        ("sklearn.decomposition.No", r"^optimizer\.scheme=sklearn\.decomposition\.No: cannot be"),
        ("sklearn.svm.SVC", r"^optimizer\.scheme=sklearn\.svm\.SVC: is no scheme"),
    ],
)
def test_a_mistake_in_the_scheme_of_an_optimizer_names_that_setting(scheme, words):
    choice = options("optimizer", "preconditioned") | {"scheme": scheme}
    with pytest.raises(UserError, match=words) as caught:
        build("optimizer", choice)
    assert "normalizer" not in str(caught.value).partition(":")[0]


def test_a_package_that_the_user_names_is_allowed_as_long_as_it_is_named():
    with allow_packages(["operator"]):
        assert import_target("cost", "operator.mul")(2, 3) == 6
    with pytest.raises(UserError, match=r"add packages=\[operator\]"):
        import_target("cost", "operator.mul")


def test_a_chain_takes_classes_by_their_path():
    made = chain(["centre", "sklearn.preprocessing.MinMaxScaler"])
    assert [type(scheme).__name__ for _, scheme in made.steps] == ["StandardScaler", "MinMaxScaler"]
    with pytest.raises(UserError, match=r"add packages=\[operator\]"):
        chain(["operator.mul"])


# What a place takes, known before anything is called.


GROUPS = ("cost", "dataset", "normalizer", "optimizer", "model")
OWN = {
    "cost": ("normbench.costs.count_misclassified", "normbench.costs.declaration.declare"),
    "dataset": ("normbench.datasets.idx.read_idx", "normbench.datasets.split"),
    "normalizer": ("normbench.normalizers.decomposition.fix_signs", "normbench.choices.build"),
    "optimizer": ("normbench.optimizers.check_option", "normbench.optimizers.Optimizer"),
    "model": ("normbench.models.network.Layout", "normbench.models.network.Forward"),
}


@pytest.mark.parametrize("group", GROUPS)
def test_what_an_option_names_fits_its_group_and_no_other(group):
    for file in sorted((CONF / group).glob("*.yaml")):
        target = options(group, file.stem)["_target_"]
        assert callable(import_target(group, target))
        for other in set(GROUPS) - {group}:
            with pytest.raises(UserError, match=rf"{other}\._target_="):
                import_target(other, target)


@pytest.mark.parametrize("group", GROUPS)
def test_of_this_project_only_what_an_option_names_is_one(group):
    for target in (*OWN[group], "normbench.tests.nothing.there"):
        with pytest.raises(UserError, match=f"is named by no option of this project; .*{group}="):
            import_target(group, target)
    assert "normbench.tests" not in sys.modules


def of_scikit_learn():
    """Yield every name of some of scikit-learn's public modules, and whether it is a scheme."""
    for module in ("preprocessing", "decomposition", "datasets", "svm", "metrics"):
        home = importlib.import_module(f"sklearn.{module}")
        for name in home.__all__:
            found = getattr(home, name)
            scheme = isinstance(found, type) and issubclass(found, BaseEstimator)
            yield f"sklearn.{module}.{name}", scheme and hasattr(found, "transform")


def test_of_scikit_learn_only_classes_that_transform_are_schemes():
    kinds = dict(of_scikit_learn())
    assert sum(kinds.values()) >= 25
    for target, scheme in kinds.items():
        if scheme:
            assert isinstance(import_target("normalizer", target), type)
        else:
            with pytest.raises(UserError, match="is no scheme: a class with fit and transform"):
                import_target("normalizer", target)


@pytest.mark.parametrize(
    "target", ["sklearn.preprocessing._data.StandardScaler", "sklearn.clone", "sklearn.utils.Bunch"]
)
def test_a_scheme_of_scikit_learn_stands_in_a_public_module(target):
    with pytest.raises(UserError, match="in no public module of scikit-learn"):
        import_target("normalizer", target)


class Ran:
    """A pickle that says when it is loaded."""

    loaded = False

    def __reduce__(self):
        return setattr, (Ran, "loaded", True)


def test_nothing_is_called_on_the_way_to_a_refusal(tmp_path):
    (tmp_path / "thesis").write_text("years")
    (tmp_path / "20news-bydate_py3.pkz").write_bytes(pickle.dumps(Ran()))
    for loader in ("fetch_20newsgroups", "clear_data_home"):
        inside = {"_target_": f"sklearn.datasets.{loader}", "data_home": str(tmp_path)}
        links = [{"standard": inside}]
        for schemes in (links, [{"chain": {"schemes": links}}]):
            with pytest.raises(UserError, match=rf"sklearn\.datasets\.{loader}: is no scheme"):
                build("normalizer", {"_target_": "normbench.choices.chain", "schemes": schemes})
    assert (tmp_path / "thesis").exists()
    assert not Ran.loaded


def test_a_folder_of_pickles_is_no_option(tmp_path):
    choice = {"_target_": "sklearn.cluster.FeatureAgglomeration", "memory": str(tmp_path)}
    with pytest.raises(UserError, match=r"normalizer\.memory=.*pickles"):
        build("normalizer", choice)
    assert build("normalizer", {**choice, "memory": None}).memory is None


class Scale(TransformerMixin, BaseEstimator):
    """A scheme as a user writes one: no list of its options' types."""

    def __init__(self, factor=2.0):
        self.factor = factor

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return self.factor * X


class Plain:
    """One without scikit-learn's base classes."""

    def fit(self, x):
        return self

    def transform(self, x):
        return 2.0 * x


@pytest.fixture
def mine(monkeypatch):
    """A module of the user's own, by the name `mine`, which the config allows."""
    module = types.ModuleType("mine")
    module.Scale, module.Plain, module.scale = Scale, Plain, lambda: Scale(3.0)
    module.three, module.number, module.Nothing = 3, lambda: 3, type("Nothing", (), {})
    module.cost = lambda scores, targets: softmax(scores, targets)
    module.few = lambda scores: scores
    module.loader, module.rule = iris, gradient_descent
    monkeypatch.setitem(sys.modules, "mine", module)
    with allow_packages(["mine"]):
        yield


@pytest.mark.usefixtures("mine")
def test_things_of_ones_own_are_taken_where_they_fit():
    assert build("normalizer", {"_target_": "mine.Scale", "factor": 3}).factor == 3
    assert build("normalizer", {"_target_": "mine.scale"}).factor == 3
    assert build("normalizer", {"_target_": "mine.Plain"}).transform(1) == 2
    assert build("dataset", {"_target_": "mine.loader"}).name == "iris"
    assert build("optimizer", {"_target_": "mine.rule"}).step
    assert import_target("cost", "mine.cost")


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize(
    ("group", "name", "rule"),
    [
        ("cost", "three", "is no cost"),
        ("cost", "Scale", "is no cost"),
        ("cost", "few", "is no cost"),
        ("normalizer", "three", "is no scheme"),
        ("normalizer", "Nothing", "is no scheme"),
        ("normalizer", "number", "gives int; it must be a scheme"),
        ("dataset", "three", "is no loader"),
        ("dataset", "number", "gives int; it must be a loader"),
        ("optimizer", "three", "is no function"),
        ("optimizer", "number", "gives int; it must be a function"),
        ("optimizer", "Plain", "gives Plain; it must be a function"),
    ],
)
def test_things_of_ones_own_are_refused_where_they_do_not_fit(group, name, rule):
    with pytest.raises(UserError, match=rf"{group}\._target_=mine\.{name}: {rule}"):
        build(group, {"_target_": f"mine.{name}"})


def test_a_module_that_cannot_be_imported_is_one_line(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for number, text in enumerate(("1 +", "raise SystemExit(3)", "nothing", "raise KeyError")):
        (tmp_path / f"broken{number}.py").write_text(text)
        with (
            allow_packages([f"broken{number}"]),
            pytest.raises(UserError, match=r"cannot be imported.*give the dotted path"),
        ):
            import_target("cost", f"broken{number}.cost")


def test_an_ordinary_class_is_a_scheme_from_python_too(two_classes):
    frames = compare(*two_classes, normalizers=[Scale(), Plain()], step_sizes=[0.1], iterations=3)
    costs = [part["cost"].to_numpy() for _, part in frames.groupby("normalizer")]
    np.testing.assert_array_equal(*costs)


@pytest.mark.parametrize("packages", ["os", 3, [1], ["a.b"], [""], None, {"a": 1, "b c": 2}])
def test_packages_are_a_list_of_names(packages):
    with pytest.raises(UserError, match="packages="), allow_packages(packages):
        pass
