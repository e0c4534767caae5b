"""The figures of points as images: what is on each."""

import numpy as np
import pandas as pd

from normbench.results.figures import exemplars, weighted

ROWS = pd.DataFrame({"label": ["pca"], "normalizer": ["pca"]})
RNG = np.random.default_rng(0)


def test_exemplars_are_a_plane_and_their_images():
    parts = {"cloud": RNG.standard_normal((40, 2)), "at": RNG.standard_normal((25, 2))}
    one = np.arange(5.0)
    parts["wanted"] = np.array([(x, y) for y in one[::-1] for x in one])
    parts["images"] = RNG.random((25, 16))
    plane, images = exemplars.draw({"pca": parts}, ROWS, "").axes
    assert len(plane.lines) == 10
    assert [len(dots.get_offsets()) for dots in plane.collections] == [40, 25]
    assert images.images[0].get_array().shape == (5 * 4 + 4, 5 * 4 + 4)
    assert exemplars._are_images(parts)
    assert not exemplars._are_images(parts | {"images": parts["images"][:, :15]})


def test_a_sum_has_the_origin_five_terms_the_sum_and_the_point():
    parts = {"origin": RNG.random(16), "components": RNG.standard_normal((7, 16))}
    parts |= {"weights": np.arange(1.0, 8), "count": np.arange(8), "share": np.linspace(0, 0.9, 8)}
    parts |= {"built": RNG.random((8, 16)), "original": RNG.random(16)}
    axes = weighted.draw({"pca": parts}, ROWS, "").axes
    titles = [axis.get_title().replace("\n", " ") for axis in axes]
    assert titles[:3] == ["pca origin", "+1 x component 1", "+2 x component 2"]
    assert titles[-2:] == ["= from all 7, 90.0% of variance", "the point itself"]
    assert len(axes) == 8
    assert (axes[-2].images[0].get_array() == parts["built"][-1].reshape(4, 4)).all()
    few = {**parts, "components": parts["components"][:2], "weights": parts["weights"][:2]}
    drawn = weighted.draw({"pca": few}, ROWS, "").axes
    assert [bool(axis.images) for axis in drawn] == [True] * 5 + [False] * 3
