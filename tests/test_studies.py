"""Studies of the textbook measure what the pages say; a setting has a value for each scheme."""

import re

import numpy as np
import pytest

import normbench
from normbench.choices import CONF
from normbench.results.figures import drawing
from normbench.results.studies import study_table as studies
from tests import cut_down
from tests.test_gallery import cells, described, first_figure, measured, place_of_data

pytestmark = pytest.mark.slow

STUDIES = [
    f"textbook/{file.stem}" for file in sorted((CONF / "experiment" / "textbook").glob("*.yaml"))
]
LONG = {f"textbook/{name}" for name in ("batch_normalization", "minibatch", "mnist")}
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]\d+)?")


@pytest.mark.parametrize(
    "study",
    [pytest.param(study, marks=[pytest.mark.whole] * (study in LONG)) for study in STUDIES],
)
def test_a_study_measures_what_the_pages_say(tmp_path, study):
    found = cut_down.sweep(study, *place_of_data(study))
    sweeps = {study.partition("/")[2]: found}
    table = studies.compare_with_sources(sweeps, "textbook")
    if table.empty:  # of a study whose source says no numbers
        table = studies.table(sweeps)
    for row, known in zip(table.to_dict("records"), measured()[study], strict=True):
        for column, text in known.items():
            assert NUMBER.sub("#", row[column]) == NUMBER.sub("#", text)
            numbers = [[*map(float, NUMBER.findall(each))] for each in (row[column], text)]
            np.testing.assert_allclose(*numbers, rtol=0.05, atol=1e-6)
    assert cells(study)[4] == described(study)["source"]
    drawing.write(found, tmp_path, [first_figure(study)], file_formats=("png",))
    assert (tmp_path / f"{first_figure(study)}.png").is_file()


def test_each_scheme_and_each_optimizer_has_its_own_value(command, tmp_path):
    done = command(
        "normalizer=identity,standard",
        "optimizer=gradient_descent,newton",
        # Hydra's own grammar takes braces in braces on a command line only in quotes.
        "step_sizes='${per_scheme:{identity:[0.01],standard:[1,2]}}'",
        "iterations='${per_optimizer:{gradient_descent:6,newton:4}}'",
        "figures=[histories]",
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("outputs/*/histories.png"))
    sweep = normbench.load(folder=tmp_path / "outputs").sweep
    steps, schemes = sweep.of_role("step"), sweep.of_role("scheme")
    assert set(zip(steps["normalizer"], steps["tags.step_size"])) == {
        *(("identity", "0.01"), ("standard", "1"), ("standard", "2")),
    }
    assert dict(zip(schemes["label"], schemes["params.iterations"])) == {
        f"{scheme}, optimizer={optimizer}": iterations
        for scheme in ("identity", "standard")
        for optimizer, iterations in (("gradient_descent", "6"), ("newton", "4"))
    }
