"""A user's own scheme that has a mistake, beside schemes that have none."""

from collections.abc import Callable
from pathlib import Path

from tests.mistakes.bench import Case, typed

SCHEME = """
from sklearn.base import BaseEstimator, TransformerMixin


class Tanh(TransformerMixin, BaseEstimator):
    def __init__(self, width=1):
        self.width = width

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X / self.width
"""
BESIDE = ("normalizer=standard,tanh", "iterations=5")


def scheme(text: str, *words: str, name: str = "tanh") -> Callable[[Path], list[str]]:
    """Return words for a folder of options in which a text is a scheme."""

    def made(folder: Path) -> list[str]:
        (folder / "normalizer").mkdir()
        (folder / "normalizer" / f"{name}.yaml").write_text(text)
        (folder.parent / "work" / "mylab.py").write_text(SCHEME)
        return ["--config-dir", str(folder), *words]

    return made


MINE = "_target_: mylab.Tanh\n"
ALLOWED = ("packages=[mylab]", *BESIDE)
CASES = (
    Case("a scheme of no package beside another", scheme(MINE, *BESIDE), ("packages=[mylab]",)),
    Case("a scheme's typo", scheme(f"{MINE}widht: 2", *ALLOWED), ("normalizer.widht=2",)),
    Case(
        "a scheme's wrong class",
        scheme("_target_: mylab.Tahn", *ALLOWED),
        ("_target_=mylab.Tahn: cannot be imported",),
    ),
    Case(
        "a scheme of another folder",
        scheme("_target_: theirs.Tanh", "packages=[theirs]", *BESIDE),
        ("no package or module theirs in the working folder (/",),
    ),
    Case(
        "no scheme in its module",
        scheme("_target_: mylab.schemes.Tanh", *ALLOWED),
        ("cannot be imported", "such as sklearn.preprocessing.StandardScaler"),
    ),
    Case(
        "a scheme with a name of ours",
        scheme(MINE, *ALLOWED, name="standard"),
        ("normalizer/standard is the name of an option of normbench",),
    ),
    Case("a scheme of no class", scheme("width: 2", *BESIDE), ("_target_: is missing",)),
    Case(
        "a key twice", scheme(f"{MINE}width: 2\nwidth: 3", *ALLOWED), ("tanh.yaml, line 3: is no",)
    ),
    Case("one of two numbers", typed("-m", "iterations=5,x"), ("iterations=x: must be a whole",)),
    Case(
        "a scheme without a step size",
        typed("normalizer=identity,centre", "step_sizes='${per_scheme:{identity:[1e-6]}}'"),
        ("has no value for normalizer=centre",),
    ),
    Case(
        "an optimizer without iterations",
        typed("optimizer=adam", "iterations='${per_optimizer:{newton:6}}'"),
        ("per_optimizer: has no value for optimizer=adam, only for newton; add one",),
    ),
    Case(
        "another data set's option",
        typed("dataset.path=churn.csv", "dataset.target=churn"),
        ("it is a setting of dataset=csv, npy, npz, parquet",),
    ),
)
