"""Each study of the gallery that takes long, cut down, in this process.

So a setting that is gone, or numbers that cannot be made, are seen without `make whole`; the other
studies run whole, see `test_gallery`.
"""

import pytest
from omegaconf import OmegaConf

from normbench.choices import CONF
from normbench.results.studies import expected
from normbench.results.studies.gallery import find_function
from normbench.settings import ROWS, SETTING_GROUPS
from tests import cut_down
from tests.test_gallery import LONG, described, make_spam, place_of_data

ROTATIONS = [f"[{{pca_sphere:{{ridge:0}}}},{{random_rotation:{{seed:{n}}}}}]" for n in range(2)]
TEN_LAYERS = f"model.hidden=[{','.join(['50'] * 10)}]"
# What each study is cut down to.
CUT = {
    "augmented_copies": ["dataset.split_seed=0,1", "dataset.augment_copies=2", "iterations=20"],
    "digit_three": ["dataset.points=300", "normalizer.components=20"],
    "mnist_plane": ["dataset.points=500"],
    "batch_statistics": ["dataset.points=512", "batch=32", "dataset.features=6", "iterations=1"],
    "batch_statistics_width": ["dataset.points=1024", "dataset.features=10", "batch=32,512"],
    "bn_any_step": ["dataset.condition_number=10", "iterations=20"],
    "bn_any_step_diabetes": ["iterations=20"],
    "centring_alone": ["dataset=iris,wine", "step_sizes=[0.1]", "iterations=5"],
    "critical_batch": [
        *("dataset.points=60", "dataset.features=5", "batch=4,null", "iterations=3"),
        "step_sizes=[1e-4,1e-2,1e-1]",
    ],
    "critical_batch_offset": [
        *("dataset.points=60", "dataset.features=5", "batch=4,null", "iterations=3"),
        "step_sizes=[1e-5,1e-3,1e-2]",
    ],
    "edge_of_stability": ["normalizer=standard", "iterations=4"],
    "dummies": ["dataset.seed=0", "refine=false", "iterations=20"],
    "does_the_choice_matter": [
        *("dataset=iris", "normalizer=identity,standard", "dataset.folds=3"),
        *("dataset.repeats=2", "iterations=5", "step_sizes=[0.1,1]"),
    ],
    "large_steps": ["iterations=400"],
    "large_steps_ridge": ["cost.l2=1e-2,3.162e-3", "iterations=300"],
    "initial_scale": ["dataset.points=10", "iterations=1"],
    "inputs_or_inside": [
        *("dataset.points=60", "iterations=3", "starts=1", "dataset=digits"),
        "normalizer=identity,pca_sphere",
    ],
    "inputs_or_inside_mnist": [
        *("dataset.points=20", "iterations=3", "normalizer=identity,pca_sphere"),
    ],
    "larger_steps": ["dataset.points=40", "iterations=3", "model.hidden=[50,50],[50,50,50,50]"],
    "lbfgs_and_scaling": ["dataset.seed=0", "optimizer.evaluations=60", "iterations=60"],
    "noise_floor": ["dataset.points=200", "iterations=3", "batch_seed=0"],
    "online_scaling": ["dataset.points=100"],
    "outliers": [
        "dataset.seed=0",
        "dataset.outlier_share=0.01,0.03",
        "dataset.points=200",
        "refine=false",
        "iterations=20",
    ],
    "penalty_and_scaling": ["dataset.split_seed=0", "iterations=8"],
    "per_image_or_per_pixel": ["dataset.points=100", "iterations=8", "refine=false"],
    "per_image_or_per_pixel_mnist": ["dataset.points=100", "iterations=8"],
    "rank_and_gradients": ["model.start_scale=he", "dataset.points=20", TEN_LAYERS],
    "ridge_dial": ["dataset.points=400", "iterations=40", "normalizer.ridge=10"],
    "rotations": [
        f"normalizer.schemes={','.join(ROTATIONS)}",
        "optimizer=gradient_descent,adam",
        "iterations=9",
    ],
    "scale_invariance": ["optimizer=gradient_descent", "model.start_scale=1,8", "iterations=3"],
    "scaling_sgd": ["dataset.points=100", "iterations=1"],
    "scaling_with_adam": ["dataset.points=100", "refine=false", "iterations=10"],
    "small_batches": ["dataset.points=200", "iterations=1", "starts=1"],
    "solver_buys": ["dataset=wine", "normalizer=identity", "iterations=5"],
    "spam": ["iterations=5"],
    "sparse_features": ["dataset.points=100", "normalizer=standard", "step_sizes=[1]"],
    "standard_against_sphering": ["dataset.points=100", "dataset.split_seed=0,1", "iterations=90"],
    "statistics_before_the_split": ["dataset.split_seed=0", "dataset.points=50"],
    "target_scaling": ["iterations=20"],
    "two_moons_deep": ["dataset.points=30", "iterations=3"],
    "what_batches_buy": ["dataset.points=100", "batch=16,null", "iterations=5"],
    "what_batches_buy_classes": ["dataset=iris", "batch=64,null", "records_per_pass=1"],
    "whitening_and_generalization": ["dataset.points=133", "iterations=60"],
    "whitened_networks": ["dataset.split_seed=0", "iterations=3"],
    "whitening_inside": ["dataset.points=60", "iterations=3", "model.newton_iterations=1,9"],
    "whitening_in_seconds": ["dataset.points=100", "iterations=10", "theory=none"],
}


@pytest.mark.commands
@pytest.mark.parametrize("study", sorted({*LONG, "exercises/spam"}))
def test_a_study_runs_and_makes_its_numbers(study, tmp_path):
    name = study.partition("/")[2]
    place = place_of_data(study)
    if name == "spam":  # its file is not among those for tests
        make_spam(tmp_path, 200)
        place = [f"data_dir={tmp_path}"]
    sweep = cut_down.sweep(study, *place, *CUT[name])
    asked = {entry["name"] for entry in described(study)["expected"] if entry.get("name")}
    if asked:  # what cannot be made is an error here, and not left out as it is for a reader
        make = find_function(study.partition("/")[0], name)
        assert make
        assert asked & set(make(sweep))
    rows = expected.compare_with_source(sweep, study)
    assert len(rows) == len(described(study)["expected"])
    assert {row["measured"] for row in rows} != {"not measured"}


@pytest.mark.parametrize(
    "file", sorted((CONF / "experiment").rglob("*.yaml")), ids=lambda f: f.stem
)
def test_a_study_sets_nothing_that_there_is_not(file):
    known = {*ROWS, *SETTING_GROUPS, "defaults", "hydra"}
    assert set(OmegaConf.load(file)) <= known  # Hydra takes any key from a file
