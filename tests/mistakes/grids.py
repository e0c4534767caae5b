"""Grids of values that are none, folders of options without end, and options of a figure."""

from collections.abc import Callable
from pathlib import Path

from tests.mistakes.bench import Case, typed

LAUGHS = "a: &a [x,x]\n" + "".join(
    f"b{n}: &b{n} [{','.join([f'*b{n - 1}' if n else '*a'] * 10)}]\n" for n in range(9)
)


def options(text: str) -> Callable[[Path], list[str]]:
    """Return words for a folder of options with one data set of a text."""

    def words(folder: Path) -> list[str]:
        (folder / "dataset").mkdir()
        (folder / "dataset" / "mine.yaml").write_text(text)
        return ["--config-dir", str(folder)]

    return words


# The words, and a fragment of the answer.
WRONG = {
    ("normalizer=standard,pca_sphere", "normalizer.rige=0"): "standard, pca_sphere; did you",
    ("normalizer=standard", "normalizer.ridge=0"): "it is a setting of normalizer=cholesky, ",
    ("dataset.path=a.csv",): "it is a setting of dataset=csv, npy, npz, parquet, svmlight",
    ("optimizer=momentum", "optimizer.zzz=1"): "momentum; choose of optimizer.momentum",
    ("start=zeros,[1]", "starts=1,5"): "starts=5",
    ("normalizer=standard,pca", "iterations=-3,5"): "iterations=-3",
    ("tracking=local,other",): "tracking: one choice",
    ("dataset=glob(nothing*)",): "comparison of no jobs",
    ("seed=1,2", "starts=range(0,50000)", "iterations=1,2"): "makes more than 100,000 jobs",
    ("seed=range(0,200000,2)", "iterations=1,2"): "makes more than 100,000 jobs",
    ("seed=range(0,3,0)", "iterations=1,2"): "seed=range(0,3,0)",
    ("cost.l2=interval(0,1)",): "is no list of values; separate them by commas",
    ("hydra.verbose=1,2",): "Sweeping over Hydra's configuration is not supported",
    ("results", "tabel"): "there is no such command; did you mean table",
    ("results", "figure", "data", "--scale", "excess"): "--scale excess: is of histories and",
    ("results", "figure", "data", "--by", "seconds"): "--by seconds: is of histories and closer",
    ("results", "figure", "components", "--dark"): "--dark: components shows images, which are",
    ("results", "show", "--first-iteration", "-1"): "--first-iteration -1: must be 0 or more",
    ("results", "figure", "loadings", "--components", "0"): "--components 0: must be 1 or more",
    ("results", "figure", "histories", "--steps", "0.1,0"): "must be positive numbers with commas",
    ("results", "figure", "histories", "--steps", "nan,1"): "--steps nan,1: must be positive",
    ("results", "table", "--where", "x", "s", "t"): "--where: finds runs of every comparison",
}
CASES = (
    *(Case(" ".join(words), typed(*words), (answer,)) for words, answer in WRONG.items()),
    Case("aliases that laugh", options(LAUGHS), ("mine.yaml: has 90 aliases",)),
    Case("an option of 150,000 bytes", options("a: 1\n" * 30_000), ("has 150000 bytes, and",)),
)
