"""The jobs of a sweep: what is combined, which option is for which choice, what is composed."""

import os
from dataclasses import FrozenInstanceError

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import setup_globals
from hydra.types import RunMode
from omegaconf import OmegaConf

from normbench.choices import CONF
from normbench.command.config import compose as configs
from normbench.command.config import resolvers
from normbench.command.config.grid import (
    Grid,
    _has,
    _last_by_key,
    _refuse_many,
    notes_on_overridden,
    split_option_overrides,
)
from normbench.command.sweep.specs import Specs
from normbench.datasets import UserError
from tests.conftest import ROOT


class Loader(ConfigLoaderImpl):
    """Hydra's loader, which counts how often it composes a job."""

    composed = 0

    def load_sweep_config(self, master_config, sweep_overrides):
        self.composed += 1
        return super().load_sweep_config(master_config, sweep_overrides)


@pytest.fixture
def grid():
    """Return a function that gives the grid of a command line."""
    setup_globals()
    resolvers.register()

    def make(*words):
        loader = Loader(config_search_path=create_config_search_path(str(CONF)))
        arguments, held = split_option_overrides(words)
        plain = [word for word in arguments if "," not in word and "(" not in word]
        plain.append("hydra.sweeper._target_=none.at.All")  # as if it were another's
        master = loader.load_configuration("config", plain, RunMode.MULTIRUN)
        OmegaConf.set_readonly(master.hydra, True)  # as it is while a sweep runs
        return Grid(loader, master, arguments, held)

    return make


def test_every_combination_is_a_job_in_order(grid):
    made = grid("normalizer=standard,pca_sphere", "iterations=1,2", "seed=3")
    assert made.jobs == [
        (f"normalizer={name}", f"iterations={number}", "seed=3")
        for name in ("standard", "pca_sphere")
        for number in (1, 2)
    ]


def test_an_option_goes_to_the_choices_that_have_it_and_equal_jobs_are_one(grid):
    made = grid("normalizer=standard,pca_sphere,pca", "normalizer.ridge=0,1e-3")
    assert made.jobs == [
        ("normalizer=standard",),
        ("normalizer=pca_sphere", "normalizer.ridge=0"),
        ("normalizer=pca_sphere", "normalizer.ridge=0.001"),
        ("normalizer=pca",),
    ]
    assert made.notes() == ["normalizer.ridge: for pca_sphere; not for standard, pca"]
    ridges = [made.config(words).normalizer.get("ridge") for words in made.jobs]
    assert ridges == [None, 0, 1e-3, None]


def test_what_stands_last_counts(grid):
    words = ("iterations=1", "iterations=2,3", "-m", "seed=1", "iterations=4")
    assert grid(*words[:2], words[-1]).jobs == [("iterations=4",)]
    assert notes_on_overridden(words) == [
        f"{word}: does not count; iterations=4 comes after it" for word in words[:2]
    ]


def test_an_option_that_none_has_is_refused_with_the_nearest(grid):
    with pytest.raises(
        UserError, match=r"normalizer\.rige: no such .*standard, pca_sphere; did you"
    ):
        grid("normalizer=standard,pca_sphere", "normalizer.rige=0")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("normalizer=standard", "normalizer.ridge=0"),
            "standard; it is a setting of normalizer=cholesky, ",
        ),
        (
            ("dataset.path=a.csv",),
            "breast_cancer; it is a setting of dataset=csv, npy, npz, parquet, svmlight$",
        ),
        (("optimizer=momentum", "optimizer.zzz=1"), r"momentum; choose of optimizer\.momentum$"),
    ],
)
def test_the_choices_that_have_an_option_are_named(grid, words, told):
    with pytest.raises(UserError, match=f"no such setting of {told}"):
        grid(*words)


@pytest.mark.commands
@pytest.mark.parametrize(
    "words",
    [
        ("normalizer=robust,zca_sphere", "normalizer.ridge=0.5", "iterations=3"),
        ("dataset=csv,iris", "dataset.path='\"a, b=c.csv\"'", "dataset.test_fraction=0.2"),
        ("optimizer=momentum,adam", "optimizer.momentum=0.5", "'step_sizes=[0.1, 1]'"),
        ("normalizer=pca", "normalizer.components=2,0.9", "record=[points],[path]"),
        ("cost.l2=0,0.1", "step_sizes=${decades:-3,0},[1]", "data_dir=/here"),
        ("experiment=textbook/pca_2d", "normalizer=pca_sphere,standard"),
        ("normalizer=pca_sphere,standard", "+normalizer.whiten=1"),
        ("dataset=iris,wine", "cost=softmax,multiclass_softmax", "normalizer=pca,standard"),
    ],
)
def test_a_config_is_the_one_that_hydra_composes(grid, words):
    words = [word.strip("'") if word.startswith("'") else word for word in words]
    words = [word.replace("='\"", '="').replace("\"'", '"') for word in words]
    made = grid(*words)
    for job in made.jobs:
        mine = made.config(job)
        whole = made._loader.load_sweep_config(made._master, list(job))
        assert mine.hydra.runtime == whole.hydra.runtime
        for config in (mine, whole):
            del config.hydra
        assert OmegaConf.to_container(mine) == OmegaConf.to_container(whole)


def test_choices_are_composed_once_however_many_jobs_there_are(grid):
    made = grid("dataset=iris,wine", "normalizer=standard,pca_sphere,pca", "seed=range(100)")
    configs_made = [made.config(words) for words in made.jobs[::50]]
    assert len(made.jobs) == 600
    assert {config.seed for config in configs_made} == {0, 50}
    assert made._loader.composed == 0


@pytest.mark.parametrize("word", ["reuse=false", "seed=007", "cost.l2=1E-3"])
def test_a_word_that_hydra_writes_otherwise_is_composed_once_too(grid, word):
    made = grid(word, "normalizer=standard,pca_sphere")
    configs_made = [made.config(words) for words in made.jobs]
    assert made._loader.composed == 0
    plain = grid("normalizer=standard,pca_sphere")
    key = word.partition("=")[0]
    for config, other in zip(configs_made, [plain.config(words) for words in plain.jobs]):
        assert OmegaConf.select(config, key) != OmegaConf.select(other, key)


def test_what_a_study_adds_to_choices_is_composed_once(grid):
    made = grid("experiment=textbook/pca_2d", "normalizer=standard,pca_sphere,pca", "seed=1,2")
    every = [made.config(words) for words in made.jobs]
    assert [config.seed for config in every] == [1, 2] * 3
    assert made._loader.composed == 1 + 2


def test_jobs_of_many_choices_are_few_representatives(grid):
    made = grid("dataset=iris,wine", "normalizer=standard,pca_sphere,pca", "seed=range(100)")
    assert len(made.representatives(set())) == 6


def test_numbers_of_a_choice_are_tried_without_composing(grid, monkeypatch):
    """A thousand would take ten seconds; what is no number may be another setting's value."""
    made = grid("normalizer=standard,pca", "normalizer.components=3,0.9,1,null,${iterations}")
    asked, config = [], made.config
    monkeypatch.setattr(made, "config", lambda words: asked.append(words) or config(words))
    specs = Specs()
    for words in made.representatives(set()).values():
        whole = configs.JobSpec.from_config(config(words))
        spec = specs.get(made, words)
        assert (spec.plain_settings, spec.choices) == (whole.plain_settings, whole.choices)
    values = [words[-1].split("=")[1].replace("\\", "") for words in asked]
    assert values == ["standard", "3", "null", "${iterations}"]


def test_a_job_that_is_asked_for_again_is_not_composed_again(grid, monkeypatch):
    made = grid("dataset=iris,wine", "normalizer=standard,pca_sphere")
    asked, config = [], made.config
    monkeypatch.setattr(made, "config", lambda words: asked.append(words) or config(words))
    specs = Specs()
    first, again = ([specs.get(made, words) for words in made.jobs] for _ in range(2))
    assert asked == made.jobs
    assert first == again


@pytest.mark.parametrize("seed", ["7", "'${dataset.split_seed}'", "'${.dataset.split_seed}'"])
def test_a_setting_that_refers_to_one_that_differs_follows_it(grid, seed):
    made = grid("dataset.test_fraction=0.25", "dataset.split_seed=1,2,3", f"seed={seed}")
    specs = Specs()
    found = [specs.get(made, words) for words in made.jobs]
    wanted = [configs.JobSpec.from_config(made.config(words)) for words in made.jobs]
    assert [spec.plain_settings for spec in found] == [spec.plain_settings for spec in wanted]
    assert [spec.overrides for spec in found] == [spec.overrides for spec in wanted]


TEXTS = ["0", "-0", "7", "-12", "007", "1_000", "1.", "1.5", "-0.25", "1.0e-05", "1e5", "1.5e3"]


@pytest.mark.parametrize("text", [*TEXTS, "1.2e+3", "0.1E2", "nan", "true", "'1'", "[1]"])
def test_a_number_is_what_hydra_reads(grid, text):
    made = grid("normalizer=standard")
    found, theirs = (parse(f"seed={text}") for parse in (made._parse, made._parser.parse_override))
    theirs = theirs.value()
    assert type(found) is type(theirs)
    assert str(found) == str(theirs)


def test_a_wrong_setting_is_not_what_a_combination_is_tried_with(grid):
    made = grid("normalizer=standard,pca", "iterations=-3,5")
    tried = made.representatives({"iterations=-3"})
    assert [words[1] for words in tried.values()] == ["iterations=5", "iterations=5"]
    with pytest.raises(UserError, match="iterations=-3"):
        configs.overrides_wrong_in_first_job(made)


def test_a_setting_that_fits_some_of_its_jobs_is_no_mistake(grid):
    made = grid("start=zeros,normal", "starts=1,5", "seed=range(3)")
    assert configs.overrides_wrong_in_first_job(made) == {"starts=5"}
    with pytest.raises(UserError, match="starts=5"):
        configs.overrides_wrong_in_first_job(grid("start=zeros,[1]", "starts=1,5"))


def test_the_tracking_of_a_sweep_is_one(grid):
    with pytest.raises(UserError, match="tracking: one choice"):
        grid("tracking=local,other")


def test_a_sweep_of_no_jobs_is_refused(grid):
    with pytest.raises(UserError, match="comparison of no jobs"):
        grid("dataset=glob(nothing*)")


def test_grids_leave_the_environment_alone(grid):
    before = dict(os.environ)
    grid("seed=1,2").config(("seed=1",))
    assert dict(os.environ) == before


def test_a_job_is_read_once_and_what_cannot_be_resolved_stands_as_it_is_written(grid):
    words = ("normalizer=standard", "iterations=5", "starts='${per_scheme:{identity:1}}'")
    made = grid(*words)
    spec = configs.JobSpec.from_config(made.config(made.jobs[0]))
    assert (spec.choices["normalizer"], spec.plain_settings["iterations"]) == ("standard", 5)
    assert spec.parameters()["starts"] == "${per_scheme:{identity:1}}"
    with pytest.raises(UserError, match="per_scheme: has no value for normalizer=standard"):
        spec.job()
    with pytest.raises(FrozenInstanceError):
        spec.number = 2


def test_hydras_own_state_is_read_in_one_place():
    texts = [file.read_text() for file in (ROOT / "harness").rglob("*.py")]
    assert sum(text.count("HydraConfig.get(") for text in texts) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("seed=range(0,100000)",),
        ("seed=range(0,200000,2)",),
        ("seed=range(100000,0,-1)",),
        ("seed=range(0,1000)", "data_seed=range(0,100)"),
        ("seed=1,2", "data_seed=range(0,50000)"),
        ("cost.l2=interval(0,1)",),
    ],
)
def test_as_many_jobs_as_there_may_be(words):
    parser = OverridesParser.create()
    if "interval" in words[0]:
        with pytest.raises(UserError, match="is no list of values; separate them by commas"):
            _last_by_key(parser.parse_overrides(list(words)))
    else:
        _refuse_many(parser.parse_overrides(list(words)))
        with pytest.raises(UserError, match="makes more than 100,000 jobs; compare fewer values"):
            _refuse_many(parser.parse_overrides([*words, "iterations=1,2"]))


def test_settings_of_hydras_cannot_be_swept():
    parser = OverridesParser.create()
    with pytest.raises(UserError, match=r"^hydra\.verbose=1,2: of Hydra's settings none can be"):
        _refuse_many(parser.parse_overrides(["seed=1", "hydra.verbose=1,2"]))
    with pytest.raises(UserError, match="makes more than"):  # a step of 0 never ends
        _refuse_many(parser.parse_overrides(["seed=range(0,3,0)"]))


def test_a_config_has_a_key_whatever_its_value():
    config = OmegaConf.create(
        {"a": {"b": None, "c": "${missing}", "d": {"e": 0}}, "none": None, "list": [{"x": 1}]}
    )
    for key in ("a", "a.b", "a.c", "a.d.e", "none", "list"):
        assert _has(config, key), key
    for key in ("b", "a.x", "a.b.c", "none.x", "list.x", "a.d.e.f"):
        assert not _has(config, key), key
