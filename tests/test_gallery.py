"""Every study of the gallery runs whole, and each number that its source says is checked."""

import re
from functools import cache
from importlib import import_module
from inspect import isfunction

import numpy as np
import pytest
import yaml
from omegaconf import OmegaConf
from PIL import Image

from normbench.choices import CONF
from normbench.results.figures import drawing
from normbench.results.studies import expected, gallery
from normbench.results.studies import study_table as studies
from tests import cut_down, forks
from tests.conftest import ROOT
from tests.datasets.places import data_folder

FOLDERS = ("lecture", "notes", "exercises", "research")
STUDIES = [
    f"{folder}/{file.stem}"
    for folder in FOLDERS
    for file in sorted((CONF / "experiment" / folder).glob("*.yaml"))
]
# Studies of ten seconds and more: `make whole` runs them as they are, `make test` cut down.
LONG = {
    *("lecture/digit_three", "lecture/mnist_plane", "notes/augmented_copies"),
    *("exercises/scaling_sgd", "exercises/standard_against_sphering", "exercises/two_moons_deep"),
    *("research/batch_statistics_width", "research/bn_any_step_diabetes"),
    *("research/centring_alone", "research/scaling_with_adam", "research/sparse_features"),
    *("research/batch_statistics", "research/bn_any_step", "research/critical_batch"),
    *("research/critical_batch_offset", "research/does_the_choice_matter", "research/dummies"),
    *("research/edge_of_stability", "research/initial_scale", "research/inputs_or_inside"),
    *("research/inputs_or_inside_mnist", "research/large_steps", "research/large_steps_ridge"),
    *("research/larger_steps", "research/lbfgs_and_scaling", "research/noise_floor"),
    *("research/online_scaling", "research/outliers", "research/penalty_and_scaling"),
    *("research/per_image_or_per_pixel", "research/per_image_or_per_pixel_mnist"),
    "research/rank_and_gradients",
    *("research/ridge_dial", "research/rotations", "research/scale_invariance"),
    *("research/small_batches", "research/solver_buys", "research/statistics_before_the_split"),
    *("research/target_scaling", "research/what_batches_buy", "research/what_batches_buy_classes"),
    *("research/whitened_networks", "research/whitening_and_generalization"),
    *("research/whitening_in_seconds", "research/whitening_inside"),
}
GUIDE = (CONF / "experiment" / "README.md").read_text()
PICTURES = ROOT / "results" / "studies" / "gallery"


@cache
def measured():
    """Return what each study measured, as the pages show it."""
    return yaml.load((ROOT / "docs" / "measured.yaml").read_text(), yaml.CSafeLoader)


@cache
def described(study):
    file = CONF / "experiment" / f"{study}.yaml"
    return OmegaConf.to_container(OmegaConf.load(file), resolve=False)["study"]


def place_of_data(study):
    """Return the word that says where a study's data is; none where scikit-learn has it."""
    text = (CONF / "experiment" / f"{study}.yaml").read_text()
    named = re.findall(r"\bdataset: (\w+(?:, ?\w+)*)$", text, re.MULTILINE)
    options = [CONF / "dataset" / f"{name.strip()}.yaml" for name in ",".join(named).split(",")]
    needed = "data_dir" in text + "".join(file.read_text() for file in options)
    return [f"data_dir={data_folder()}"] if needed else []


def ranges(study):
    """Return the numbers of which the source names a range, within which rounding may decide."""
    return {
        each["what"] for each in described(study)["expected"] if isinstance(each["value"], list)
    }


# Numbers of a processor's seconds: they may agree on one and differ on another.
TIMED = {"iterations of one run that sphering's fit takes longer than standardizing's"}


def numbers_of(text):
    return [float(number) for number in text.split(" to ")]


def cells(study):
    """Return the cells of a study's row in the guide: study, question, figures, answer."""
    folder, _, name = study.partition("/")
    part = GUIDE.partition(f"\n## `{folder}/`")[2].partition("\n## ")[0]
    (line,) = [line for line in part.splitlines() if line.startswith(f"| `{name}` |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def first_figure(study):
    """Return the figure that the pages show of a study."""
    return re.findall(r"`(\w+)`", cells(study)[2])[0]


def skip_without_its_file(study):
    """Skip a study whose file is not of those for tests: its comment names it."""
    text = (CONF / "experiment" / f"{study}.yaml").read_text()
    for name in re.findall(r"^# needs ([^ :]+):", text, re.MULTILINE):
        if not (data_folder() / name).is_file():
            pytest.skip(f"no {name} among the real data")


def picture(file):
    return np.asarray(Image.open(file).convert("L"), dtype=float)


@pytest.mark.slow
@pytest.mark.parametrize(
    "study",
    [pytest.param(study, marks=[pytest.mark.whole] * (study in LONG)) for study in STUDIES],
)
def test_a_study_comes_to_the_numbers_of_its_source(tmp_path, study):
    skip_without_its_file(study)
    found = cut_down.sweep(study, *place_of_data(study))
    folder, _, name = study.partition("/")
    table = studies.compare_with_sources({name: found}, folder)
    assert len(table) == len(described(study)["expected"])
    assert set(table["study"]) == {name}
    assert expected.unexplained(table) == 0, table.to_string()
    assert "not measured" not in set(table["measured"])
    for row, known in zip(table.to_dict("records"), measured()[study], strict=True):
        assert row["what"] == known["what"]
        assert row["what"] in TIMED or row["verdict"] == known["verdict"]
        if row["what"] not in ranges(study):
            ours, theirs = (numbers_of(each["measured"]) for each in (row, known))
            np.testing.assert_allclose(ours, theirs, rtol=0.05, atol=1e-6)
    pictures = [*(PICTURES / name).glob("*.png")]
    figures = [first_figure(study), *(kept.stem for kept in pictures)]
    drawing.write(found, tmp_path, figures, file_formats=("png",))
    assert (tmp_path / f"{figures[0]}.png").is_file()
    for kept in pictures:
        drawn = tmp_path / kept.name
        assert picture(drawn).shape == picture(kept).shape
        assert np.abs(picture(drawn) - picture(kept)).mean() < 1, kept  # of 255; measured 0


# The pictures of the README and of the pages: the comparison that each is of, and numbers in it.
OF_PAGES = {
    "melt": (["cost=least_squares"], {"86 %", "5.3 %", "0 %"}),
    "histories": ([], {"identity, step 1e-05", "standard, step 10", "pca_sphere, step 10"}),
    "phase_diagram": ([], {"1 to 10 % left", "diverged", "2/L, predicted"}),
}


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """The folders of the comparisons that the pictures of the pages are of, by their words."""
    folders = {}
    for words, _ in OF_PAGES.values():
        if tuple(words) not in folders:
            folder = folders[tuple(words)] = tmp_path_factory.mktemp("compared")
            done = forks.run([*words, "figures=[]", "tracking=none"], folder)
            assert done.returncode == 0, done.stderr
    return folders


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_PAGES)
def test_a_picture_of_the_pages_is_what_its_command_draws(compared, name):
    words, numbers = OF_PAGES[name]
    folder = compared[tuple(words)]
    pages = " ".join(" ".join(file.read_text().split()) for file in (ROOT / "docs").glob("*.md"))
    assert f"`normbench results figure {name} --out results/studies/gallery`" in pages
    dark = ["--dark"] * (PICTURES / f"{name}-dark.png").is_file()
    done = forks.run(["results", "figure", name, *dark, "--out", "drawn"], folder)
    assert done.returncode == 0, done.stderr
    drawn, kept = folder / "drawn" / f"{name}.png", PICTURES / f"{name}.png"
    assert picture(drawn).shape == picture(kept).shape
    assert np.abs(picture(drawn) - picture(kept)).mean() < 1, kept  # of 255; measured 0
    for file in PICTURES.glob(f"{name}-dark.png"):  # of README's first picture
        page = " ".join((ROOT / "README.md").read_text().split())
        assert f"`normbench results figure {name} --dark --out results/studies/gallery`" in page
        pictures = [
            np.asarray(Image.open(each), dtype=float)
            for each in (file, folder / "drawn" / file.name)
        ]
        assert np.abs(np.subtract(*pictures)).mean() < 1
    assert numbers <= set(re.findall(r">([^<>]+)</text>", drawn.with_suffix(".svg").read_text()))


def make_spam(folder, points=4601):
    """Write a file of the shape of the one that spam is about."""
    rng = np.random.default_rng(0)
    label = rng.choice([-1, 1], points)
    letters = rng.exponential(size=(57, points)) * np.geomspace(0.1, 100, 57)[:, None]
    np.savetxt(folder / "spambase_data.csv", [*letters, label], "%.3g", delimiter=",")


@pytest.mark.commands
def test_spam_names_the_file_that_it_needs(command, tmp_path):
    missing = command("experiment=exercises/spam", f"data_dir={tmp_path}")
    assert missing.returncode == 2
    assert f"{tmp_path}/spambase_data.csv" in missing.stderr


@pytest.mark.parametrize("study", STUDIES)
def test_the_guide_asks_what_the_study_asks(study):
    told = described(study)
    assert cells(study)[1] == told["question"]
    assert told["question"].endswith("?")
    assert told["source"]
    assert len(cells(study)[3]) > 10
    expected.parse(told["expected"])


def test_the_page_for_teachers_shows_three_studies_by_their_own_commands():
    page = " ".join((ROOT / "docs" / "teaching.md").read_text().split())
    shown = re.findall(r"\(\.\./results/studies/gallery/(\w+)/(\w+)\.png\) \*([^*]+)\*", page)
    assert len(shown) == 3
    for name, figure, told in shown:
        (study,) = (study for study in STUDIES if study.endswith(f"/{name}"))
        assert f"`normbench experiment={study}`" in told
        assert f"`normbench results figure {figure} --out results/studies/gallery/{name}`" in told
        assert f"`{figure}`" in cells(study)[2]
        assert (PICTURES / name / f"{figure}.png").stat().st_size < 100_000


def test_a_number_that_no_function_makes_or_no_study_asks_for_is_seen():
    assert len({study.partition("/")[2] for study in STUDIES}) == len(STUDIES)
    asking = {
        study
        for study in STUDIES
        if any(entry.get("name") for entry in described(study)["expected"])
    }
    made = {
        f"{folder}/{name}"
        for folder in FOLDERS
        for module in gallery.STUDY_MODULES[folder]
        for name, found in vars(import_module(f"{gallery.__name__}.{module}")).items()
        if isfunction(found)
        and found.__module__ != gallery.__name__  # which has the verbs that functions share
        and found.__annotations__.get("return") == dict[str, float]
    }
    twins = {study for study in STUDIES if study.partition("/")[2] in gallery.TWINS}
    assert made | twins == asking | {"research/disturbances"}
