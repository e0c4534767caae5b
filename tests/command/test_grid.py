"""What a command line expands to, as the jobs that are recorded tell it."""

import numpy as np
import pytest

from normbench.results.store.comparison_files import Comparison, record_file
from normbench.results.store.job_records import JobRecord

pytestmark = pytest.mark.commands
LIGHT = ("shadows=false", "refine=false", "theory=none", "figures=[]", "tracking=none")


def recorded(folder, *keys):
    """Return some parameters of each recorded job, in the order of the jobs."""
    (file,) = folder.glob("outputs/*/comparison.json")
    comparison = Comparison.read(file.parent)
    jobs = [JobRecord.load(record_file(comparison.home, key)) for key in comparison.keys]
    return [tuple(job.params.get(key) for key in keys) for job in jobs if not job.failure]


def test_every_combination_is_a_job_and_an_option_is_for_the_choices_that_have_it(
    command, tmp_path
):
    """Equal jobs are one, the last word counts, and a number is recorded in one way."""
    words = ("iterations=7", "normalizer=standard,pca_sphere,pca", "normalizer.ridge=0,1e-3")
    done = command(*words, "iterations=1,2e0", "step_sizes=[1,0.1]", *LIGHT)
    assert done.returncode == 0, done.stderr
    jobs = recorded(tmp_path, "normalizer", "iterations", "normalizer.ridge", "step_sizes")
    assert jobs == [
        (scheme, iterations, ridge, "[0.1, 1.0]")
        for scheme in ("standard", "pca_sphere", "pca")
        for iterations in ("1", "2")
        for ridge in (("0", "0.001") if scheme == "pca_sphere" else (None,))
    ]
    assert "iterations=7: does not count; iterations=1,2e0 comes after it" in done.stderr
    assert "normalizer.ridge: for pca_sphere; not for standard, pca" in done.stderr


def test_a_setting_follows_the_choices_and_the_settings_that_it_names(command, tmp_path):
    done = command(
        *("normalizer=standard,minmax", "optimizer=momentum,gradient_descent", *LIGHT),
        "iterations='${per_scheme:{standard:1,minmax:2}}'",
        "step_sizes='${per_optimizer:{momentum:[0.1],gradient_descent:[1]}}'",
        *("dataset.test_fraction=0.25", "dataset.split_seed=1,2"),
        *("start=normal", "seed='${dataset.split_seed}'"),
    )
    assert done.returncode == 0, done.stderr
    keys = ("normalizer", "iterations", "optimizer", "step_sizes", "dataset.split_seed", "seed")
    assert recorded(tmp_path, *keys) == [
        (*scheme, *optimizer, split, split)
        for scheme in (("standard", "1"), ("minmax", "2"))
        for optimizer in (("momentum", "[0.1]"), ("gradient_descent", "[1.0]"))
        for split in ("1", "2")
    ]


def test_patterns_quoted_paths_and_options_of_ones_own_are_choices(command, tmp_path):
    table = np.column_stack([np.random.default_rng(0).standard_normal((20, 2)), np.arange(20) % 2])
    np.savetxt(tmp_path / "a, b=c.csv", table, "%g", ",", header="u,v,y", comments="")
    (tmp_path / "options" / "normalizer").mkdir(parents=True)
    (tmp_path / "options" / "normalizer" / "mine.yaml").write_text(
        "_target_: sklearn.preprocessing.RobustScaler\n"
        "with_centering: &both true\nwith_scaling: *both\n"
    )
    done = command(
        *("--config-dir", "options", "normalizer=glob(mi*)", "cost=multiclass_softmax"),
        *("dataset=csv,iris", "dataset.path='a, b=c.csv'", "dataset.target=y"),
        *("iterations=1", "step_sizes=[0.1]", *LIGHT),
    )
    assert done.returncode == 0, done.stderr
    assert recorded(tmp_path, "normalizer", "dataset.path") == [
        (scheme, path) for scheme in ("mine", "minmax") for path in ("a, b=c.csv", None)
    ]
    assert "dataset.path: for csv; not for iris" in done.stderr


def test_a_setting_that_fits_some_of_its_jobs_fails_in_the_others_alone(command, tmp_path):
    words = ("normalizer=standard", "start=zeros,normal", "starts=1,5", "iterations=1")
    done = command(*words, "step_sizes=[0.1]", *LIGHT)
    assert done.returncode == 2, done.stderr
    assert (
        "job 2 of 4: breast_cancer softmax standard: failed: starts=5: start=zeros" in done.stderr
    )
    jobs = [("zeros", "1"), ("normal", "1"), ("normal", "5")]
    assert recorded(tmp_path, "start", "starts") == jobs


def test_powers_of_ten_are_printed_as_they_resolve(command):
    done = command("step_sizes='${decades:-1,1}'", "--cfg", "job", "--resolve")
    assert done.returncode == 0, done.stderr
    assert "step_sizes:\n- 0.1\n- 1.0\n- 10.0\n" in done.stdout
