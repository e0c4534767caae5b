"""The golden commands: scenes of commands that run one after the other in a folder of their own."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Scene:
    """Commands in one folder, in order.

    Attributes:
        commands: What a user types after `normbench`, as a shell splits it; or `python FILE`.
            `{last}` is the identifier of the newest comparison.
        files: The files of the folder before the first command, by their names.
        prepare: Writes those that are no text, or None.
        processes: Whether each command is a process of its own, and not one that is forked.
        copied: Whether comparisons are copied to MLflow, which takes seconds.
    """

    commands: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)
    prepare: Callable[[Path], None] | None = None
    processes: bool = False
    copied: bool = False


def write_arrays(folder: Path) -> None:
    """Write points (200, 5) of two classes in each format that arrays are read from."""
    import pandas as pd
    from sklearn.datasets import dump_svmlight_file

    x = np.random.default_rng(0).standard_normal((200, 5)) * [1, 10, 0.1, 3, 1] + 1
    y = (x[:, 0] + x[:, 4] > 2).astype(int)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    np.savez(folder / "xy.npz", x=x, y=y)
    pd.DataFrame(x, columns=list("abcde")).assign(y=y).to_parquet(folder / "t.parquet")
    dump_svmlight_file(np.where(abs(x) > 1, x, 0), y, str(folder / "s.svm"))


CLIENTS = "age,income,city,label\n" + "".join(
    f"{20 + 7 * n % 40},{1000 + 137 * n % 900},{'ABC'[n % 3]},"
    f"{'yes' if 7 * n % 40 > 20 or n % 5 == 0 else 'no'}\n"
    for n in range(60)
)
APPS = "size,rating\n" + "".join(
    f"{('15M', '201k', '1.2M', 'Varies with device')[n % 4]},{(n * 7) % 40 / 10}\n"
    for n in range(60)
)
PRICES = "rooms;price\n" + "".join(f"{1 + n % 7};{100 + 31 * n % 97},{n % 10}\n" for n in range(60))
OWN_PACKAGE = """
import autograd.numpy as np
from sklearn.base import BaseEstimator, TransformerMixin


class Halve(TransformerMixin, BaseEstimator):
    def fit(self, x, y=None):
        self.size_ = 2 * abs(x).max(axis=0)
        return self

    def transform(self, x):
        return x / self.size_


class Refuse(Halve):
    def fit(self, x, y=None):
        print("looks at \\x1b[31mall points")
        raise ValueError("refuses all points")


def exponential(scores, targets):
    return np.sum(np.exp(-targets * scores[:, 0]), axis=-1)
"""
COMPARED = """
from sklearn.datasets import load_iris

from normbench import compare

x, y = load_iris(return_X_y=True)
comparison = compare(
    x,
    y,
    cost="multiclass_softmax",
    normalizers=["identity", "standard", "pca_sphere"],
    step_sizes=[0.1, 1, 10],
    iterations=15,
    test_fraction=0.2,
    split_seed=[0, 1],
)
print(comparison.sentence)
print(comparison.table.to_csv())
print(comparison.frame.drop(columns=[c for c in comparison.frame if "seconds" in c]).to_csv())
comparison.figure("melt").savefig("melt.png")
comparison.report("report.html")
"""
LOADED = """
import normbench

comparison = normbench.load()
print(comparison.sentence)
print(comparison.table.to_csv())
print(comparison.histories)
"""
NARROW = """
import os
import sys

from normbench.__main__ import main

os.environ["COLUMNS"] = "80"
sys.argv[1:] = ["results", "--help"]
main()
"""
PAIRS = """
import re
from pathlib import Path

(report,) = Path("moved").glob("*/report.html")
text = report.read_text().partition("To repeat it")[2]
print(*re.findall("<dt>(.*?)</dt>", text), sep="\\n")
"""
READ_ONLY = """
import ctypes
import os
from pathlib import Path

import normbench

# Permissions hold for root as well without the capabilities 1 and 2, which pass them over.
library, header = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522, 0)
sets = (ctypes.c_uint32 * 6)()
library.capget(header, sets)
sets[0], sets[1] = sets[0] & ~6, sets[1] & ~6  # those in effect, and those permitted
library.capset(header, sets)
folder = Path("moved")
folder.chmod(0o500)
try:
    print(os.access(folder, os.W_OK), normbench.load(folder="moved").sentence)
finally:
    folder.chmod(0o700)
"""
VIEWS = """
import base64
import json
import zlib

from mlflow import MlflowClient

client = MlflowClient("sqlite:///mlflow.db")
for experiment in client.search_experiments(order_by=["name"]):
    for key, text in sorted(experiment.tags.items()):
        if "sharedViewState" in key:
            view = json.loads(text)
            state = json.loads(zlib.decompress(base64.b64decode(view["state"].partition(";")[2])))
            runs = client.search_runs([experiment.experiment_id], state["searchFilter"])
            print(view["name"], sorted(run.data.tags["role"] for run in runs))
"""
IRIS = "dataset=iris cost=multiclass_softmax"

SCENES = {
    "default": Scene(
        (
            "",
            "",
            "results",
            "results list",
            "results theory",
            "results table",
            "results table --format latex",
            "results table --histories --format csv --out tables",
            "results words",
            "results report --out again",
            "results figure histories --first-iteration 1 --format slide",
            "results figure histories --scale excess --by seconds --out by_seconds",
            "results figure melt --dark --out dark",
            "results figure windwos",
            "results profile --out profiles",
        ),
        copied=True,
    ),
    "costs": Scene(
        (
            "dataset=iris,wine cost=multiclass_softmax,multiclass_perceptron,least_squares "
            "normalizer=identity,pca_sphere iterations=20 step_sizes=[0.1,1] "
            "figures=[overview,phase_diagram]",
            "results profile",
            "results theory",
        ),
    ),
    "two_class_costs": Scene(
        (
            "cost=softmax,squared_margin,perceptron normalizer=standard,unit_norm iterations=20 "
            "step_sizes=[0.1,1] figures=[step_sizes]",
        ),
    ),
    "regression": Scene(
        (
            "dataset=diabetes cost=least_squares,least_absolute_deviations "
            "normalizer=identity,standard,pca_sphere dataset.target_scheme=standard "
            "dataset.test_fraction=0.25 iterations=20 step_sizes=[0.01,0.1,1]",
        ),
    ),
    "schemes": Scene(
        (
            "normalizer=glob(*,exclude=[chain]) dataset=wine cost=multiclass_softmax "
            "iterations=10 step_sizes=[0.1,1] figures=[overview]",
        ),
    ),
    "optimizers": Scene(
        (
            f"optimizer=glob(*) normalizer=standard {IRIS} iterations=10 step_sizes=[0.1,1] "
            "figures=[histories]",
            f"optimizer=momentum,adam normalizer=identity,standard {IRIS} iterations=10 "
            "step_sizes=[0.1,1] figures=[]",
        ),
    ),
    "splits": Scene(
        (
            "dataset=wine cost=multiclass_softmax dataset.test_fraction=0.25 "
            "dataset.split_seed=range(0,7) iterations=15 step_sizes=[0.1,1] "
            "figures=[histories,overview]",
            "results profile --out profiles",
            "results table --format markdown",
            "results theory",
        ),
    ),
    "folds": Scene(
        (
            f"{IRIS} dataset.folds=3 dataset.repeats=6 dataset.points=90 iterations=10 "
            "step_sizes=[1,10] figures=[]",
            "results theory",
            "dataset=wine cost=multiclass_softmax dataset.test_fraction=0.3 "
            "dataset.split_seed=range(0,7) normalizer=standard,robust iterations=20 "
            "step_sizes=[0.1,1,10] figures=[]",
        ),
    ),
    "starts": Scene(
        (
            "start=normal starts=5 normalizer=standard,pca_sphere iterations=15 "
            "step_sizes=[0.1,1,10] figures=[histories]",
        ),
    ),
    "same_function": Scene(
        (
            f"start=same_function normalizer=identity,standard,zca_sphere {IRIS} iterations=10 "
            "step_sizes=[0.1,1] figures=[]",
        ),
    ),
    "batches": Scene(
        (
            "batch=32 iterations=6 step_sizes=[0.01,0.1,1] figures=[histories]",
            "batch=8,32 batch_order=cyclic records_per_pass=4 normalizer=standard iterations=4 "
            "step_sizes=[0.1,1] figures=[batch_sizes,histories]",
            "results figure histories --by updates",
        ),
    ),
    "gains": Scene(
        ("batch=4,8,16,null normalizer=standard iterations=40 step_sizes=[0.01,0.1,1] figures=[]",),
    ),
    "online": Scene(
        (
            f"{IRIS} batch=15 normalizer=standard normalizer.statistics=fitted,batch,running "
            "iterations=5 step_sizes=[0.1,1] figures=[histories]",
            f"{IRIS} batch=15 normalizer=standard normalizer.statistics=window "
            "normalizer.window=30 iterations=3 step_sizes=[1] figures=[]",
        ),
    ),
    "networks": Scene(
        (
            f"model=mlp {IRIS} model.hidden=[5] model.normalize=none,batch,layer "
            "normalizer=identity,standard iterations=15 step_sizes=[0.1,1] "
            "record=[by_layer,weight_norms] figures=[histories,by_layer]",
        ),
    ),
    "inside": Scene(
        (
            f"model=mlp {IRIS} model.hidden=[5] model.normalize=pca,zca,newton,weight "
            "normalizer=standard iterations=8 step_sizes=[0.1,1] figures=[]",
            f"model=mlp {IRIS} model.hidden=[5] model.normalize=zca normalizer=standard "
            "iterations=3 step_sizes=[1,1e200] figures=[]",
        ),
    ),
    "network_batches": Scene(
        (
            f"model=mlp {IRIS} model.hidden=[6,4] model.activation=relu model.start_scale=he "
            "model.normalize=batch batch=30 iterations=4 step_sizes=[0.1,1] normalizer=standard "
            "figures=[]",
            "results figure film",
        ),
    ),
    "records": Scene(
        (
            f"{IRIS} "
            "record=[points,biplot,features,spectrum,sharpness,path,landing,curvature] "
            "normalizer=identity,pca_sphere iterations=10 step_sizes=[0.1,1] "
            "dataset.test_fraction=0.2",
        ),
    ),
    "planes": Scene(
        (
            "dataset=gaussian dataset.features=2 dataset.offset=2 cost=least_squares "
            "record=[path,contours,film,boundary,points,projection,hessian] iterations=4 "
            "normalizer=identity,pca_sphere step_sizes=[0.1,1] "
            "figures=[boundary,contours,data,film,projection]",
            "dataset=gaussian dataset.task=regression dataset.features=1 "
            "dataset.condition_number=1 cost=least_squares normalizer=standard "
            "record=[fit,contours] iterations=6 step_sizes=[0.1,1] figures=[contours,fit]",
            "results figure film --scheme pca_sphere --out film",
        ),
    ),
    "images": Scene(
        (
            "dataset=digits dataset.points=80 cost=multiclass_softmax "
            "normalizer=standard,zca_sphere record=[components,exemplars,formulas,spectrum] "
            "iterations=5 step_sizes=[1] "
            "figures=[components,exemplars,formulas,reconstruction,spectrum,weighted]",
            "results figure components --components 4 --out four",
        ),
    ),
    "unlabelled": Scene(
        (
            "dataset=nonorthogonal,ferris_wheel normalizer=pca,pca_sphere iterations=0 "
            "record=[points,spectrum,features] figures=[data,spectrum,features]",
            "dataset=china normalizer=zca_sphere iterations=0 record=[colours] figures=[colours]",
        ),
    ),
    "theory": Scene(
        (
            "cost=least_squares theory=full search.critical=true normalizer=identity,standard "
            "iterations=15 step_sizes=[0.01,0.1,1] figures=[]",
            "results theory",
        ),
    ),
    "penalty": Scene(
        (
            f"cost.l2=0.01 cost.l2_in=transformed,features {IRIS} dataset.points=80 "
            "normalizer=identity,standard iterations=10 step_sizes=[0.1,1] figures=[]",
        ),
    ),
    "ridges": Scene(
        (
            "normalizer=standard,pca_sphere normalizer.ridge=0,1e-3,1e-1 dataset=wine "
            "cost=multiclass_softmax dataset.test_fraction=0.25 iterations=10 step_sizes=[1,10] "
            "figures=[dial,histories]",
            "normalizer=maxabs,standard,pca_sphere normalizer.ridge=0.1 dataset=wine "
            "cost=multiclass_softmax iterations=10 step_sizes=[0.1,1] figures=[]",
        ),
    ),
    "schedule": Scene(
        (
            "step_schedule=[5,0.5] normalizer=standard iterations=12 step_sizes=[1,10] "
            "precision=float32 figures=[]",
            f"cost.l2=0.01 cost.l2_in=features precision=float32 {IRIS} iterations=5 "
            "normalizer=pca_sphere step_sizes=[1] theory=none figures=[]",
            "results theory",
        ),
    ),
    "columns": Scene(
        (
            "dataset=csv dataset.path=clients.csv dataset.target=label dataset.encode=[city] "
            "normalizer=standard,minmax normalizer.columns=numeric iterations=10 "
            "step_sizes=[0.1,1] figures=[histories,features]",
            "dataset=csv dataset.path=clients.csv dataset.target=label",
            "dataset=csv dataset.path=gap.csv dataset.target=label dataset.encode=[city]",
            "dataset=csv dataset.path=gap.csv dataset.target=label dataset.encode=[city] "
            "dataset.fill=median normalizer=standard iterations=5 step_sizes=[1] figures=[]",
            "dataset=csv dataset.path=none.csv dataset.target=label",
            "dataset=csv dataset.path=clients.csv dataset.target=lable",
            "dataset=csv dataset.path=prices.csv dataset.target=price cost=least_squares",
            "dataset=csv dataset.path=prices.csv dataset.target=price cost=least_squares "
            "dataset.decimal=comma normalizer=standard iterations=5 step_sizes=[0.1] figures=[]",
            "dataset=csv dataset.path=apps.csv dataset.target=rating cost=least_squares",
            "dataset=csv dataset.path=apps.csv dataset.target=rating cost=least_squares "
            "dataset.decimal=point 'dataset.missing=[Varies with device]' dataset.fill=median "
            "normalizer=standard iterations=5 step_sizes=[0.1] figures=[]",
        ),
        files={
            "clients.csv": CLIENTS,
            "gap.csv": CLIENTS.replace("27,1137", ",1137"),
            "prices.csv": PRICES,
            "apps.csv": APPS,
        },
    ),
    "own": Scene(
        (
            "--config-dir options packages=[mine] normalizer=standard,halve iterations=5 "
            "step_sizes=[1] figures=[]",
            "packages=[mine] normalizer=chain normalizer.schemes=[centre,mine.Halve] "
            "iterations=5 step_sizes=[1] figures=[]",
            "packages=[mine] cost._target_=mine.exponential normalizer=standard iterations=5 "
            "step_sizes=[0.1] figures=[]",
        ),
        files={"mine.py": OWN_PACKAGE, "options/normalizer/halve.yaml": "_target_: mine.Halve\n"},
    ),
    "refused": Scene(
        (
            f"packages=[mine] normalizer=chain,standard {IRIS} "
            "'normalizer.schemes=[centre,mine.Refuse]' iterations=5 step_sizes=[1] figures=[]",
            "results list",
            "normalizer=standard,power normalizer.method=box-cox iterations=5 step_sizes=[1] "
            "figures=[]",
            "results",
            "results",
            "results results",
            "results report --out /proc/none",
            "python narrow.py",
        ),
        files={"mine.py": OWN_PACKAGE, "narrow.py": NARROW},
        copied=True,
    ),
    "diverged": Scene(
        (
            "dataset=wine cost=multiclass_softmax normalizer=identity,centre "
            "step_sizes=[1e3,1e5] iterations=5 figures=[]",
            "results table --histories --format csv --out tables",
        ),
    ),
    "batch_orders": Scene(
        (
            f"{IRIS} batch=8,64 batch_seed=0,1 normalizer=identity,standard iterations=3 "
            "step_sizes=[0.1,1] figures=[]",
        ),
    ),
    "many_schemes": Scene(
        (
            f"{IRIS} normalizer=standard,minmax,robust,maxabs,pca_sphere iterations=5 "
            "step_sizes=[1] dataset.test_fraction=0.3 dataset.split_seed=range(0,5) figures=[]",
        ),
    ),
    "reused": Scene(
        (
            "dataset=csv dataset.path=clients.csv dataset.target=label dataset.drop=[city] "
            "normalizer=standard iterations=5 step_sizes=[1] figures=[] record=[path]",
            "dataset=csv dataset.path=clients.csv dataset.target=label dataset.drop=[city] "
            "normalizer=standard iterations=5 step_sizes=[1] figures=[]",
            "python change.py",
            "dataset=csv dataset.path=clients.csv dataset.target=label dataset.drop=[city] "
            "normalizer=standard iterations=5 step_sizes=[1] figures=[]",
            "results",
            "python views.py",
        ),
        files={
            "views.py": VIEWS,
            "clients.csv": CLIENTS,
            "change.py": "import pathlib\n\nfile = pathlib.Path('clients.csv')\n"
            "file.write_text(file.read_text().replace('20,1000', '21,1001'))\n",
        },
        copied=True,
    ),
    "made": Scene(
        (
            "dataset=two_moons,gaussian cost=least_squares normalizer=identity,pca_sphere "
            "iterations=8 step_sizes=[0.1,1] figures=[]",
        ),
    ),
    "outliers": Scene(
        (
            "dataset=breast_cancer dataset.points=150 dataset.outliers=cells "
            "dataset.outlier_share=0.02 normalizer=standard,robust iterations=10 "
            "step_sizes=[0.1,1] dataset.test_fraction=0.2 dataset.fit_on=train,all figures=[]",
            "dataset=wine cost=multiclass_softmax dataset.augment=round dataset.augment_copies=2 "
            "normalizer=pca,zca_sphere iterations=5 step_sizes=[1] figures=[]",
        ),
    ),
    "disk": Scene(
        (
            "dataset=npy dataset.path=x.npy dataset.targets=y.npy dataset.in_blocks=true "
            "normalizer=identity,standard,pca_sphere iterations=5 step_sizes=[0.1,1] figures=[]",
            "dataset=npz dataset.path=xy.npz normalizer=standard iterations=5 step_sizes=[0.1] "
            "figures=[]",
            "dataset=svmlight dataset.path=s.svm normalizer=identity,maxabs,standard "
            "iterations=5 step_sizes=[0.1,1] figures=[]",
            "dataset=parquet dataset.path=t.parquet dataset.target=y normalizer=standard "
            "iterations=5 step_sizes=[0.1] figures=[]",
        ),
        prepare=write_arrays,
    ),
    "study": Scene(
        (
            "experiment=textbook/contours iterations=10",
            "results studies",
            "experiment=notes/iris_pca figures=[]",
            "results studies notes --format markdown",
            "experiment=research/preconditioning figures=[]",
            "results studies research",
        ),
    ),
    "engines": Scene(
        (
            f"normalizer=identity,standard {IRIS} iterations=10 step_sizes=[0.1,1] figures=[]",
            f"normalizer=identity,standard {IRIS} iterations=10 step_sizes=[0.1,1,10] figures=[] "
            "reuse=false refine=true shadows=false",
        ),
    ),
    "mistakes": Scene(
        (
            "normalizer=standrd",
            "lr=0.1",
            "dataset=iris",
            "iterations=-1",
            "step_sizes=[0,1]",
            "step_sizes=0.1,1",
            "cost.l2=-1",
            "normalizer = standard",
            "nonsense",
            "results nonsense",
            "results list",
            "results table --folder none",
            "--help",
            "results --help",
            "--cfg job",
            "experiment=nothing/at_all",
            "start=[1,2]",
            "tracking.uri=http://127.0.0.1:9/",
        ),
        copied=True,
    ),
    "deleted": Scene(
        (
            "iterations=5 step_sizes=[1] normalizer=standard,minmax figures=[]",
            "results rejudge rules.tail=0.3",
            "results export --all house.zip",
            "results import house.zip --folder other",
            "results list --folder other",
            "iterations=5 step_sizes=[1] normalizer=standard figures=[]",
            "results delete {last} --yes",
            "results list",
            "results delete none --yes",
        ),
        copied=True,
    ),
    "moved": Scene(
        (
            f"{IRIS} normalizer=identity,standard iterations=5 step_sizes=[0.1,1] "
            "record=[points] figures=[]",
            "python move.py",
            "results figure data --folder moved --out drawn",
            "python read_only.py",
            "python pairs.py",
            "python block.py",
            f"{IRIS} normalizer=minmax iterations=5 step_sizes=[1] figures=[] folder=blocked",
        ),
        files={
            "read_only.py": READ_ONLY,
            "pairs.py": PAIRS,
            "block.py": "import pathlib\n\npathlib.Path('blocked').write_text('a file')\n",
            "move.py": "import pathlib\n\npathlib.Path('outputs').rename('moved')\n",
        },
        copied=True,
    ),
    "broken": Scene(
        (
            "dataset=broken normalizer=identity,standard,pca_sphere iterations=5 "
            "step_sizes=[0.1,1] figures=[]",
        ),
        copied=True,
    ),
    "processes": Scene(
        (
            "normalizer=standard,minmax iterations=5 step_sizes=[1] figures=[melt] "
            "hydra/launcher=joblib",
            "normalizer=standrd",
        ),
        processes=True,
        copied=True,
    ),
    "shown": Scene(
        (
            "shown_step=0.1 \"step_sizes='${{per_scheme:{{standard:[0.1,1],minmax:[0.1]}}}}'\" "
            "normalizer=standard,minmax iterations=8 figures=[histories]",
        ),
    ),
    "python": Scene(
        (
            "python compared.py",
            f"{IRIS} normalizer=identity,standard iterations=5 step_sizes=[0.1,1] figures=[]",
            "python loaded.py",
        ),
        files={"compared.py": COMPARED, "loaded.py": LOADED},
    ),
}
