"""Every study of the textbook runs, its iterations cut down, and ends in what it promises."""

import re
from math import prod

import pytest
from omegaconf import OmegaConf

from normbench.choices import CONF
from normbench.results.store import runs
from normbench.results.studies import study_table as studies
from tests.datasets.places import data_folder

pytestmark = pytest.mark.slow

FOLDER = CONF / "experiment" / "textbook"
NAMES = sorted(file.stem for file in FOLDER.glob("*.yaml"))
README = (CONF / "experiment" / "README.md").read_text().partition("## `textbook/`")[2]
ROWS = {
    cells[0].strip("`"): cells
    for cells in (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in README.splitlines()
        if line.startswith("| `")
    )
}
FEWER = {"mnist": ["dataset.points=200"]}
BUNDLED = ("contours",)


def described(name):
    return OmegaConf.to_container(OmegaConf.load(FOLDER / f"{name}.yaml"), resolve=False)


def test_the_readme_lists_every_study_with_its_source():
    assert sorted(ROWS) == NAMES
    for name, cells in ROWS.items():
        assert cells[4] == described(name)["study"]["source"]


@pytest.mark.usefixtures("with_store")
@pytest.mark.parametrize("name", NAMES)
def test_a_study_runs_and_draws_its_figures(command, tmp_path, name):
    data = [] if name in BUNDLED else [f"data_dir={data_folder()}"]
    shorter = ["iterations=3"] if described(name)["iterations"] != 0 else []
    done = command(f"experiment=textbook/{name}", *data, *shorter, *FEWER.get(name, []))
    assert done.returncode == 0, done.stderr
    for figure in re.findall(r"`(\w+)`", ROWS[name][2]):
        assert list(tmp_path.glob(f"outputs/*/{figure}.png")), figure
    table = studies.table(studies.last_sweeps(f"sqlite:///{tmp_path}/mlflow.db")[0])
    assert set(table["study"]) == {name}
    assert table["the source says"].str.len().max() > 0
    assert (table["measured"].str.len() > 0).all()
    assert not table["measured"].str.contains("failed|diverged at").any()
    params = described(name)["hydra"]["sweeper"]["params"]
    swept = [str(values).split(",") for values in params.values()]
    assert len(table) == prod(map(len, swept))


@pytest.mark.usefixtures("with_store")
def test_a_study_shows_the_steps_of_the_source_and_its_own_start(command, tmp_path):
    folder = data_folder()
    done = command("experiment=textbook/one_feature_classification", f"data_dir={folder}")
    assert done.returncode == 0, done.stderr
    store = f"sqlite:///{tmp_path}/mlflow.db"
    sweep = runs.load(store, runs.last_sweep_ids(store)[1])
    schemes = sweep.of_role("scheme").set_index("label")
    assert schemes["tags.step_size"].to_dict() == {"identity": "1", "standard": "10"}
    lengths = sweep.histories(sweep.of_role("scheme")).groupby("label")["iteration"].max()
    assert lengths.to_dict() == {"identity": 100, "standard": 25}
    for label, parts in sweep.arrays(sweep.of_role("scheme"), "path").items():
        assert parts["weights"][0].tolist() == [[20, 30]], label
    # The standardized run comes to the least cost within its 25 iterations, the other does not.
    excess = schemes["metrics.final/train_cost"] - schemes["metrics.theory/minimum"]
    assert excess["standard"] < 1e-3
    assert excess["identity"] > 1
    assert schemes["metrics.final/largest_falling_step"]["standard"] == 10


@pytest.mark.usefixtures("with_store")
def test_each_scheme_has_its_own_value(command, tmp_path):
    done = command(
        "normalizer=identity,standard",
        # Hydra's own grammar takes braces in braces on a command line only in quotes.
        "step_sizes='${per_scheme:{identity:[0.01],standard:[1,2]}}'",
        "iterations='${per_scheme:{identity:6,standard:4}}'",
        "figures=[histories]",
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("outputs/*/histories.png"))
    store = f"sqlite:///{tmp_path}/mlflow.db"
    steps = runs.load(store, runs.last_sweep_ids(store)[1]).of_role("step")
    found = sorted(zip(steps["normalizer"], steps["tags.step_size"]))
    assert found == [("identity", "0.01"), ("standard", "1"), ("standard", "2")]


@pytest.mark.usefixtures("with_store")
def test_each_optimizer_has_its_own_value(command, tmp_path):
    done = command(
        "normalizer=standard",
        "optimizer=gradient_descent,newton",
        "step_sizes=[1]",
        "iterations='${per_optimizer:{gradient_descent:6,newton:4}}'",
        "figures=[]",
    )
    assert done.returncode == 0, done.stderr
    store = f"sqlite:///{tmp_path}/mlflow.db"
    schemes = runs.load(store, runs.last_sweep_ids(store)[1]).of_role("scheme")
    assert dict(zip(schemes["label"], schemes["params.iterations"])) == {
        "standard, optimizer=gradient_descent": "6",
        "standard, optimizer=newton": "4",
    }


MISTAKES = {
    "an optimizer without a value": (
        ["optimizer=adam", "iterations='${per_optimizer:{newton:6}}'"],
        "per_optimizer: has no value for optimizer=adam, only for newton; add one",
    ),
    "a scheme without a value": (
        ["normalizer=centre", "iterations='${per_scheme:{identity:6,standard:4}}'"],
        "per_scheme: has no value for normalizer=centre, only for identity, standard; add one",
    ),
    "studies with a comma": (
        ["-m", "experiment=textbook/contours,textbook/pca_2d"],
        "each study is a comparison of its own",
    ),
    "studies by a pattern": (
        ["-m", "experiment=glob(textbook/*)"],
        "each study is a comparison of its own",
    ),
    "a shown step off the grid": (
        ["experiment=textbook/contours", "shown_step=3"],
        "shown_step=3: is not one of step_sizes",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_and_leaves_nothing(command, tmp_path, name):
    arguments, words = MISTAKES[name]
    done = command(*arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert words in line
    assert list(tmp_path.rglob("*.db")) == []


@pytest.mark.usefixtures("with_store")
def test_the_table_takes_the_last_sweep_of_each_study(command, tmp_path):
    for arguments in (["iterations=2"], ["iterations=4", "normalizer=standard"]):
        done = command("experiment=textbook/contours", *arguments)
        assert done.returncode == 0, done.stderr
    done = command("results", "studies")
    assert done.returncode == 0, done.stderr
    head, row = done.stdout.splitlines()
    assert head.split("  ")[0] == "study"
    assert row.startswith("contours")
    assert "standard" in row
    assert "4 iterations" in row
    missing = command("results", "studies", "mine")
    assert missing.returncode == 2
    assert "holds no study of mine" in missing.stderr
