"""The film as a picture: its key frames as a strip, and a GIF."""

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.preprocessing import QuantileTransformer, StandardScaler

import normbench
from normbench.command.results.commands import main
from normbench.costs import softmax
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from normbench.normalizers import PCASphere
from normbench.results.figures import drawing
from normbench.results.figures.base import output
from normbench.results.figures.film import Reel
from tests.recorded import write_sweep
from tests.results.figures.pictures import film_arrays


def points():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 80)
    x = rng.standard_normal((80, 2)) * [0.4, 3.0] + y[:, None]
    return x @ np.array([[0.9, 0.4], [-0.4, 0.9]]) + [2.0, 7.0], np.array(["no", "yes"])[y]


@pytest.fixture(scope="module")
def found():
    settings = {"cost": "softmax", "iterations": 2, "record": ["film"], "refine": False}
    return normbench.compare(*points(), normalizers=["pca_sphere"], step_sizes=[0.1], **settings)


@pytest.fixture(scope="module")
def reel(found):
    return Reel(found.sweep.arrays(found.sweep.of_role("scheme"), "film")["pca_sphere"])


@pytest.mark.parametrize("turned", [False, True])
def test_a_mirrored_axis_runs_backwards_and_it_is_said(turned):
    """So that no frame flips the picture: from key to key every mark keeps its side, or turns."""
    x, y = points()
    x = x[:, ::-1] if turned else x
    asked = {"record": ["film"], "iterations": 1, "step_sizes": [0.1], "refine": False}
    made = normbench.compare(x, y, normalizers=["pca_sphere"], **asked)
    parts = made.sweep.arrays(made.sweep.of_role("scheme"), "film")["pca_sphere"]
    mirrors = np.linalg.det(parts["matrix"][-1]) < 0
    assert mirrors == (not turned)  # of both kinds
    figure = made.figure("film")
    axes = figure.axes
    for frame, upper, lower in zip(parts["keys"], axes[:4], axes[4:]):
        backwards = [axis.xaxis_inverted() + 2 * axis.yaxis_inverted() for axis in (upper, lower)]
        assert backwards[0] == backwards[1]
        drawn = np.diag([1 - 2 * upper.xaxis_inverted(), 1 - 2 * upper.yaxis_inverted()])
        assert np.linalg.det(drawn @ parts["matrix"][frame]) > 0
    assert ("mirrors the plane" in figure._supxlabel.get_text()) == mirrors
    reel, x = Reel(parts), x[np.lexsort(x.T)]
    assert reel.points(0)[np.lexsort(reel.points(0).T)] == pytest.approx(x)
    for frame, axis in zip(reel.keys, axes):
        letters = np.array([text.get_position() for text in axis.texts])
        assert letters == pytest.approx(reel.points(frame)[reel.landmark_indices])
        assert np.ptp(axis.get_xlim()) == pytest.approx(np.ptp(axis.get_ylim()))  # one scale


@pytest.mark.slow
def test_a_gif_has_a_picture_a_frame_and_rests_on_key_frames(found, reel, tmp_path):
    written = drawing.write(found.sweep, tmp_path, ["film"], file_formats=("png",))
    files = {file.name: file for group in written.values() for file in group}
    assert set(files) == {"film.png", "film.gif"}
    with Image.open(files["film.gif"]) as picture:
        assert picture.n_frames == len(reel) == 37
        assert b"normbench.compare" in picture.info["comment"]
        rests = []
        for number in range(picture.n_frames):
            picture.seek(number)
            rests.append(picture.info["duration"])
    long = [number for number, rest in enumerate(rests) if rest > 1000]
    assert long == reel.keys
    assert files["film.gif"].stat().st_size < 3_000_000  # measured 600,000


@pytest.mark.slow
def test_hostile_names_are_text_in_every_file(tmp_path, monkeypatch):
    monkeypatch.setattr(output, "write_gif", lambda *arguments: None)
    x, y = points()
    names = ["</script><script>alert(1)</script>", 'b" onload="alert(2)]]>$x$']
    labels = np.where(y == "yes", "<b>&yes", "\u202eno")
    frame = pd.DataFrame(x, columns=names)
    settings = {"record": ["film"], "iterations": 1, "step_sizes": [0.1], "name": "<i>&</i>"}
    made = normbench.compare(frame, labels, normalizers=["standard"], **settings)
    written = drawing.write(made.sweep, tmp_path, ["film"], file_formats=("svg",))
    (files,) = written.values()
    for file in files:
        if file.suffix == ".svg":
            root = ElementTree.fromstring(file.read_text())
            tags = {node.tag.rpartition("}")[2] for node in root.iter()}
            assert not {"b", "i"} & tags
            assert "script" not in tags


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    x, y = points()
    data = make_dataset("two", x, (y == "yes").astype(int), class_names=["no", "yes"], source="-")
    schemes = [
        *(("standard", StandardScaler()), ("pca_sphere", PCASphere())),
        ("quantile", QuantileTransformer(n_quantiles=20)),
    ]
    settings = Settings((0.1,), iterations=2, record=("film",))
    return write_sweep(folder, data, softmax, schemes, settings, "two-softmax")


@pytest.mark.slow
def test_the_command_draws_the_film_of_the_scheme_that_is_named(
    store, tmp_path, capsys, monkeypatch
):
    # A second to draw, and seen in the test of the GIF above.
    monkeypatch.setattr(output, "write_gif", lambda *arguments: None)
    out = ["--folder", store.home, "--out", str(tmp_path)]
    assert main(["figure", "film", "--scheme", "standard", *out]) == 0
    printed = capsys.readouterr().out.splitlines()
    names = [line.rpartition("/")[2] for line in printed]
    assert names == ["film.png", "film.svg", "film.pdf", "film.gif"]
    assert "film of standard" in (tmp_path / "film.svg").read_text()


@pytest.mark.commands
def test_without_a_film_one_line_says_why(store, three, tmp_path, capsys):
    out = ["--folder", store.home, "--out", str(tmp_path)]
    assert main(["figure", "film", "--scheme", "quantile", *out]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "has nothing recorded for it, the scheme is no affine map that keeps two" in told
    assert main(["figure", "film", "--scheme", "quantil", *out]) == 2
    told = capsys.readouterr().err
    assert "scheme quantil: is not in sweep-1; choose one of standard, pca_sphere, quantile" in told
    assert main(["figure", "film", "--folder", three.home]) == 2
    assert "record=[film]" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("away", "centre", "half"),
    [
        (0.0, 0.0, 1.0),
        (3.0, 2.0, 2.0),  # the origin is seen up to five radii beside the points
        (-3.0, -2.0, 2.0),
        (20.0, 17.5, 3.5),  # and of one that is farther, the way to it
        (-20.0, -17.5, 3.5),
    ],
)
def test_the_view_of_points_holds_the_origin_where_it_is_near(away, centre, half):
    turn = np.linspace(0, 2 * np.pi, 9)[:-1]
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    arrays = {"points": circle + 7, "centre": np.array([7.0, 7.0]), "matrix": np.eye(2)[None]}
    middle, half_side = Reel(arrays | {"image": np.array([[away, 0.0]])}).points_view(0)
    assert middle == pytest.approx([centre, 0.0])
    assert half_side == pytest.approx(1.08 * half)


def test_counters_have_their_words():
    reel = Reel(film_arrays((1, 1)))
    counted = [
        Reel(reel.arrays | {"iterations": np.array([n])}).counters(0)[2] for n in (0, -1, 1234)
    ]
    assert counted == ["0", "> 5,000", "1,234"]
