"""Copies of a picture with one shift of colour each, and the figure of them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_sample_image
from sklearn.preprocessing import StandardScaler

from normbench.costs import softmax
from normbench.datasets import UserError, make_dataset
from normbench.datasets.bundled import china
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.optimizers import gradient_descent
from normbench.results.figures import images

HIGH, WIDE = 30, 400
RNG = np.random.default_rng(8)
COLOURS = np.abs(RNG.standard_normal((HIGH * WIDE, 1)) * 60 + RNG.standard_normal((1, 3)) + 90)
PIXELS = np.clip(COLOURS + RNG.standard_normal((HIGH * WIDE, 3)), 0, 255).round()
PICTURE = replace(make_dataset("p", PIXELS, source="made"), picture=(HIGH, WIDE))


def taken(data=PICTURE):
    settings = Settings((1.0,), iterations=0, record=("colours",))
    job = Job(data, softmax, StandardScaler(), gradient_descent(), settings)
    return run(job).arrays["colours"]


def test_the_picture_is_there_and_shifts_have_the_shape_of_the_colours_or_none():
    parts = taken()
    np.testing.assert_array_equal(parts["picture"], PIXELS.reshape(HIGH, WIDE, 3)[::3, ::3])
    values, axes = np.linalg.eigh(np.cov(PIXELS.T, bias=True))
    drawn = 0.2 * np.random.default_rng(0).standard_normal((12, 3))
    along = parts["aligned"] @ axes
    np.testing.assert_allclose(along, drawn @ axes * np.sqrt(values), rtol=1e-6)
    np.testing.assert_allclose(parts["round"], drawn * np.sqrt(values.mean()), rtol=1e-9)


def test_the_bundled_picture_is_whole():
    made, image = china(), load_sample_image("china.jpg")
    np.testing.assert_array_equal(made.x.reshape(*made.picture, 3), image)


def test_what_is_no_picture_is_refused():
    plain = make_dataset("plain", PIXELS, source="made")
    for data in (plain, replace(PICTURE, x=PIXELS[1:])):
        with pytest.raises(UserError, match="record=colours: needs all pixels of a picture"):
            taken(data)


def test_copies_are_drawn_in_their_shifted_colours():
    parts = taken()
    parts["aligned"][0] = [300, 0, -300]
    schemes = pd.DataFrame({"label": ["failed", "centre"]})
    figure = images.draw_colours({"centre": parts}, schemes, "")
    figure.draw_without_rendering()
    first, copy = (axis.images[0].get_array() for axis in figure.axes[:2])
    np.testing.assert_array_equal(first, parts["picture"])
    np.testing.assert_array_equal(copy[..., 1], first[..., 1])
    assert (copy[..., 0] == 255).all()
    assert (copy[..., 2] == 0).all()
    titles = [axis.get_title() for axis in figure.axes]
    assert titles[::4] == ["as it is"] * 2
    assert titles[5] == "round noise, copy 1"
    shifted = parts["picture"] + parts["round"][0]
    np.testing.assert_array_equal(figure.axes[5].images[0].get_array(), shifted.clip(0, 255) // 1)
