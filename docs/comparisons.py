"""Comparisons that `make docs` runs: three reports beside the pages, and a picture of each figure.

What is recorded under `outputs/docs-comparisons` is not run again. Figures and reports are drawn
from the records at every build, so that they are those of the code as it is.
"""

import os
import re
import shlex
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from omegaconf import OmegaConf

from normbench import load
from normbench.__main__ import main
from normbench.choices import CONF
from normbench.datasets.idx import mnist
from normbench.results.figures import drawing
from normbench.results.store.errors import ResultsError
from normbench.results.studies import study_table
from normbench.settings import CACHE

RECORDS = Path("outputs/docs-comparisons")
HOME = Path("outputs")  # where `make textbook` and `make gallery` record
STUDY_FOLDERS = ("textbook", "exercises", "lecture", "notes", "research")
TABLE_FILE = "my.csv"
BESIDE = "beside/reports"  # copied to the folder of the built pages
PICTURES_FOLDER = "pictures"
AT_ONCE = 2
# What commands load, each of which is a fork of a process that has loaded it.
COMMANDS_MODULES = (
    *("normbench.command.entry", "normbench.command.sweep.line", "normbench.job"),
    *("normbench.record.outcome", "normbench.results.report.terminal"),
    *("jinja2", "sklearn.datasets"),
)


class Report(NamedTuple):
    """A comparison whose report stands beside the pages: its title and its command."""

    title: str
    command: str


class Picture(NamedTuple):
    """A figure's picture: the question that it answers, and the command that records it."""

    question: str
    command: str


REPORTS = {
    "default": Report("Three schemes on the breast cancer data", "normbench"),
    "mnist": Report(
        "2,000 digits of MNIST, standardized and sphered",
        "normbench dataset=mnist dataset.points=2000 cost=multiclass_softmax "
        "normalizer=identity,standard,pca_sphere 'step_sizes=${decades:-3,2}'",
    ),
    "own_table": Report(
        "A table of one's own with cities, gaps and seven splits",
        f"normbench dataset=csv dataset.path={TABLE_FILE} dataset.target=label "
        "'dataset.encode=[city]' dataset.fill=median dataset.test_fraction=0.25 "
        "'dataset.split_seed=range(0,7)'",
    ),
}
WINE = "normbench dataset=wine cost=multiclass_softmax 'record=[biplot,features,spectrum]'"
PLANE = (
    "normbench dataset=gaussian dataset.features=2 dataset.offset=2 cost=least_squares "
    "'record=[film,points]'"
)
DIGITS = (
    "normbench dataset=digits cost=multiclass_softmax normalizer=pca,zca_sphere iterations=0 "
    "'record=[components,exemplars]'"
)
CONTOURS = "normbench experiment=textbook/contours"
COLOURS = "normbench experiment=notes/aligned_perturbation"
PICTURES = {
    "overview": Picture(
        "Is a scheme best on every data set?",
        "normbench dataset=iris,wine,breast_cancer cost=multiclass_softmax",
    ),
    "melt": Picture("Why does one step size serve one scheme and not another?", "normbench"),
    "histories": Picture("Which scheme descends fastest, each at its best?", "normbench"),
    "closer": Picture(
        "How do two schemes differ once the first step is left out?",
        "normbench experiment=textbook/breast_cancer dataset=breast_cancer "
        "'step_sizes=${decades:-7,2}' shown_step=null",
    ),
    "dial": Picture(
        "How do cost and error change with the number of points?",
        "normbench dataset=digits cost=multiclass_softmax dataset.points=100,200,400 "
        "dataset.test_fraction=0.5 normalizer=standard,pca_sphere iterations=50",
    ),
    "batch_sizes": Picture(
        "From which batch on do larger ones gain nothing?",
        "normbench dataset=gaussian dataset.task=regression cost=least_squares iterations=40 "
        "batch=1,4,16,64,256 normalizer=standard,pca_sphere 'step_sizes=${decades:-3,0,4}'",
    ),
    "step_sizes": Picture("How carefully must the step size be chosen?", "normbench"),
    "phase_diagram": Picture("Which step sizes work, under which scheme?", "normbench"),
    "sharpness": Picture(
        "Does the curvature fall on the way, so that larger steps are safe?",
        "normbench 'record=[sharpness]'",
    ),
    "landing": Picture(
        "How far along its parabola does one step go, and how far along each direction?",
        "normbench cost=least_squares 'record=[landing]'",
    ),
    "by_layer": Picture(
        "What does each layer of a network send on, and how much does it learn?",
        "normbench dataset=digits dataset.points=500 cost=multiclass_softmax model=mlp "
        "'model.hidden=[30,30,30,30]' model.normalize=none,batch,layer normalizer=standard "
        "iterations=50 'step_sizes=${decades:-2,1}' 'record=[by_layer]'",
    ),
    "contours": Picture("What does a scheme do to the shape of the cost?", CONTOURS),
    "boundary": Picture(
        "Which class does each model see where?",
        "normbench dataset=two_moons model=mlp 'model.hidden=[20]' normalizer=identity,standard "
        "model.normalize=none,batch 'step_sizes=${decades:-2,2}' 'record=[boundary]'",
    ),
    "fit": Picture(
        "Which line does each scheme fit, and how soon?",
        "normbench dataset=gaussian dataset.features=1 dataset.condition_number=1 "
        "dataset.offset=2 cost=least_squares iterations=10 'record=[fit]'",
    ),
    "film": Picture("How do points, contours and descent change on the way to a scheme?", PLANE),
    "data": Picture("Where do the points go under each scheme?", PLANE),
    "biplot": Picture("Which features vary together, and which points are alike?", WINE),
    "loadings": Picture("What is each principal component made of?", WINE),
    "features": Picture("How different are the ranges of the features?", WINE),
    "projection": Picture(
        "What is lost if two of three components are kept?",
        "normbench dataset=gaussian dataset.features=3 normalizer=pca normalizer.components=2 "
        "iterations=0 'record=[projection]'",
    ),
    "spectrum": Picture("How round does each scheme make the points?", WINE),
    "components": Picture("What do a scheme's coordinates look like as images?", DIGITS),
    "weighted": Picture("How is one digit written as a sum of components?", DIGITS),
    "exemplars": Picture("Which images lie where in the plane of two components?", DIGITS),
    "colours": Picture("What does noise along the principal axes do to a photograph?", COLOURS),
    "formulas": Picture(
        "Which formulas break on points that are not as they should be?",
        "normbench experiment=research/broken_data",
    ),
    "reconstruction": Picture("How many coordinates does it take to see a digit?", DIGITS),
}


def has_mnist() -> bool:
    """Return whether MNIST's test files are in the data folder, so that nothing is downloaded."""
    folder = Path(OmegaConf.create({"folder": CACHE}).folder)
    return all((folder / remote.folder / remote.name).is_file() for remote in mnist.files("t10k"))


def reports() -> dict[str, Report]:
    """Return the reports that can be made here: MNIST's only where its data are."""
    return {name: report for name, report in REPORTS.items() if name != "mnist" or has_mnist()}


def write_table(file: Path) -> None:
    """Write a table like one's own: units that differ, a category, gaps, and two classes."""
    generator = np.random.default_rng(0)
    count = 240
    city = generator.choice(["Lisbon", "Oslo", "Rome"], count)
    age = generator.integers(18, 80, count).astype(float)
    income = np.round(generator.lognormal(10.3, 0.5, count), -2)
    distance = np.round(generator.gamma(2, 1.5, count), 2)
    score = 0.05 * (age - 45) - (income - 33000) / 15000 + 0.5 * distance - 1.5 * (city == "Oslo")
    label = np.where(score + generator.logistic(size=count) > 1, "late", "in_time")
    age[generator.choice(count, 12, replace=False)] = np.nan
    columns = {"city": city, "age": age, "income": income, "distance_km": distance, "label": label}
    pd.DataFrame(columns).to_csv(file, index=False)


def folder_of(command: str) -> Path:
    """Return the folder in which a command is run, and what it records is kept."""
    stem = "".join(each if each.isalnum() else "_" for each in command.removeprefix("normbench "))
    return RECORDS / (stem[:80].strip("_") or "default")


def run(words: list[str], folder: Path, log: Path) -> None:
    """Be the command `normbench WORDS` in a folder, with what it prints in a file."""
    with log.open("w") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    os.chdir(folder)
    main(words)


def record(command: str) -> Path:
    """Run a command in its folder, unless it is recorded there; return the home of its record."""
    folder = folder_of(command)
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder / TABLE_FILE)
    log = (folder / "log").resolve()
    words = [*shlex.split(command)[1:], "figures=[]", "tracking=none"]
    process = get_context("fork").Process(target=run, args=(words, folder, log))
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"{command}: exit code {process.exitcode}\n{log.read_text()}")
    return folder.resolve() / "outputs"


def draw(command: str, folder: Path) -> None:
    """Record a command's comparison; write its report and its figures' pictures into a folder."""
    comparison = load(folder=record(command))
    for name, report in REPORTS.items():
        if report.command == command:
            comparison.report(folder / BESIDE / f"{name}.html")
    names = [name for name, picture in PICTURES.items() if picture.command == command]
    drawing.write(comparison.sweep, folder / PICTURES_FOLDER, names, file_formats=["png"])


def load_modules() -> None:
    """Load what the commands load."""
    for name in COMMANDS_MODULES:
        import_module(name)


def draw_studies(folder: Path) -> None:
    """Draw the first figure of each study that the working folder has recorded, as it stands."""
    guide = (CONF / "experiment" / "README.md").read_text()
    for group in STUDY_FOLDERS:
        try:
            sweeps, _ = study_table.last_sweeps(HOME, group)
        except ResultsError:  # none of this group is recorded
            continue
        for name, sweep in sweeps.items():
            places = ("data_dir=", "tracking")  # which change nothing of it
            words = shlex.split(sweep.command)[1:]
            words = [word for word in words if not word.startswith(places)]
            figure = re.search(rf"^\| `{name}` \|[^|]*\| `(\w+)`", guide, re.MULTILINE)
            if figure and words == [f"experiment={group}/{name}"]:
                drawing.write(sweep, folder / name, [figure[1]], file_formats=["png"])


def write(folder: Path) -> None:
    """Write every report and picture into a folder, two comparisons at a time."""
    (folder / BESIDE).mkdir(parents=True, exist_ok=True)
    write_table(folder / BESIDE / TABLE_FILE)
    drawn = (*reports().values(), *PICTURES.values())
    commands = dict.fromkeys(each.command for each in drawn)
    with ProcessPoolExecutor(AT_ONCE, get_context("spawn"), load_modules) as pool:
        list(pool.map(partial(draw, folder=folder), commands))
    draw_studies(folder / PICTURES_FOLDER / "studies")
