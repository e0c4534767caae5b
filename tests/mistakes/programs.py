"""A config that would be a program: targets of the wrong kind, pickles, callbacks, logs."""

import codecs
import os
import pickle
from collections.abc import Callable
from pathlib import Path

from tests.mistakes.bench import Case, typed

OWN = """
from sklearn.base import BaseEstimator, TransformerMixin

three = 3


def number(*arguments, **named):
    return 3


def nothing(scores, targets):
    return None


def breaks(scores, targets):
    return scores[:, 7]


class Fits(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self
"""
HANDLERS = "{version: 1, root: {handlers: [a]}, handlers: {a: {(): os.mkdir, path: FOLDER/RAN}}}"


class Ran:
    """A pickle that leaves a folder where it is loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple:
        return os.mkdir, (str(self.folder / "RAN"),)


def chained(entry: str) -> list[str]:
    return ["normalizer=chain", "normalizer.schemes=[{identity:{" + entry + "}}]"]


def newsgroups(folder: Path) -> list[str]:
    packed = codecs.encode(pickle.dumps(Ran(folder)), "zlib_codec")
    (folder / "20news-bydate_py3.pkz").write_bytes(packed)
    target = "sklearn.datasets.fetch_20newsgroups"
    return chained(f"_target_:{target},data_home:'{folder}',download_if_missing:false")


def clear_home(folder: Path) -> list[str]:
    (folder / "thesis").write_text("years of work")
    return chained(f"_target_:sklearn.datasets.clear_data_home,data_home:'{folder}'")


def memory(folder: Path) -> list[str]:
    where = f"n_clusters:2,memory:'{folder}'"
    return chained(f"_target_:sklearn.cluster.FeatureAgglomeration,{where}")


def rerun(folder: Path) -> list[str]:
    (folder / "config.pickle").write_bytes(pickle.dumps(Ran(folder)))
    return [f"--experimental-rerun={folder / 'config.pickle'}"]


def config_dir(text: str) -> Callable[[Path], list[str]]:
    """Return the words for a folder of options of the user's own, with one experiment."""

    def words(folder: Path) -> list[str]:
        (folder / "conf" / "experiment").mkdir(parents=True)
        told = "# @package _global_\n" + text.replace("FOLDER", str(folder))
        (folder / "conf" / "experiment" / "mine.yaml").write_text(told)
        return ["--config-dir", str(folder / "conf"), "experiment=mine"]

    return words


def own(*words: str) -> Callable[[Path], list[str]]:
    """Return words that name things of a module of the user's own."""

    def made(folder: Path) -> list[str]:
        (folder.parent / "work" / "mine.py").write_text(OWN)
        return ["packages=[mine]", *words]

    return made


def target(group: str, name: str, *words: str, kind: str = "") -> Case:
    """Return the case of a `_target_` that does not fit its group."""
    setting = f"{group}._target_={name}"
    return Case(kind or f"{name} as {group}", typed(*words, setting), (setting,))


def mine(group: str, name: str, *words: str, said: str = "") -> Case:
    setting = f"{group}._target_=mine.{name}"
    return Case(f"mine.{name} as {group}", own(*words, setting), (said or setting,))


IDENTITY = "normalizer=identity"
CASES = (
    Case("a chain that unpickles a file", newsgroups, ("fetch_20newsgroups: is no scheme",)),
    Case("a chain that deletes a folder", clear_home, ("clear_data_home: is no scheme",)),
    Case("a chain that keeps pickles", memory, ("normalizer.schemes.", ".memory=", "pickles")),
    target("dataset", "sklearn.datasets.load_iris", "dataset=iris"),
    target("normalizer", "sklearn.datasets.load_iris", IDENTITY),
    target("normalizer", "sklearn.svm.SVC", IDENTITY),
    target("cost", "sklearn.metrics.log_loss"),
    target("cost", "normbench.costs.count_misclassified"),
    target("cost", "os.system"),
    target("optimizer", "sklearn.preprocessing.StandardScaler"),
    target("dataset", "normbench.datasets.idx.read_idx", "dataset=iris"),
    Case(
        "no target",
        typed("cost._target_=null"),
        ("cost._target_: is missing", "normbench.costs.softmax"),
    ),
    mine("cost", "three"),
    mine("cost", "nothing", said="cost nothing: gives shape ()"),
    mine("cost", "breaks", said="cost breaks: cannot be taken (IndexError"),
    mine("normalizer", "Fits", IDENTITY),
    mine("optimizer", "number"),
    mine("dataset", "number", "dataset=iris"),
    Case("a pickle of a config", rerun, ("--experimental-rerun",)),
    Case("a callback", typed("+hydra.callbacks.x._target_=os.getcwd"), ("hydra.callbacks",)),
    Case(
        "a callback in a file",
        config_dir("hydra: {callbacks: {x: {_target_: os.mkdir, path: FOLDER/RAN}}}"),
        ("hydra.callbacks",),
    ),
    Case(
        "a callback in a file, for help",
        lambda folder: [
            *config_dir(f"hydra: {{hydra_logging: {HANDLERS}}}")(folder),
            "--help",
        ],
        ("hydra.hydra_logging",),
    ),
    Case(
        "a log in a file",
        config_dir(f"hydra: {{hydra_logging: {HANDLERS}}}"),
        ("hydra.hydra_logging",),
    ),
    Case(
        "a job's log in a file",
        config_dir(f"hydra: {{job_logging: {HANDLERS}}}"),
        ("hydra.job_logging",),
    ),
    Case(
        "a job's log that is swept",
        config_dir("hydra: {sweeper: {params: {hydra.job_logging.root: 3}}}"),
        ("hydra.job_logging.root=3",),
    ),
    Case("an environment", config_dir("hydra: {job: {env_set: {A: B}}}"), ("hydra.job.env_set",)),
)
