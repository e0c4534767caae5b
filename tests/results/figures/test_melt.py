"""The picture of layers: what is merged, said and drawn, and that it can be read."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from normbench import names
from normbench.results.figures import melt
from normbench.results.figures.layers import GONE_RATIO, THIN_SHARE, layers_from_arrays
from tests.results.figures.pictures import EQUAL_AND_THIN, layer_arrays, layer_table, of_melt
from tests.results.figures.pictures import LAYER_ITERATIONS as K


def words(figure):
    own = [text.get_text() for text in figure.texts]
    own += [text.get_text() for axis in figure.axes for text in axis.texts]
    own += [legend.get_title().get_text() for legend in figure.legends]
    return " ".join(" ".join(own).split())


def test_equal_curvatures_are_one_layer_and_thin_neighbours_are_merged():
    found = layers_from_arrays(EQUAL_AND_THIN)
    assert found.distinct_offsets.tolist() == [0, 2, 3, 4, 5, 6]
    assert found.drawn_offsets.tolist() == [0, 2, 3, 4, 6]
    np.testing.assert_allclose(found.thickness, [0.5, 0.001, 0.296, 0.002, 0.201])
    assert found.thickness.sum() == pytest.approx(1)
    thin = found.thickness < THIN_SHARE
    assert not (thin[1:] & thin[:-1]).any()


@pytest.mark.parametrize("measured", [False, True])
def test_what_is_left_is_by_hand(measured):
    found = layers_from_arrays(layer_arrays([5.0, 0.5], [1.0, 3.0], measured=measured))
    expected = np.array([0.25 * 0.5**20, 0.75 * 0.95**20])
    np.testing.assert_allclose(found.remaining_excess(0.1), expected)
    np.testing.assert_allclose(found.ratios(np.array([0.1]))[0], expected / [0.25, 0.75])
    assert found.count_gone(0.1) == 1
    assert GONE_RATIO == 0.1
    at, rows = found.history(0.1)
    np.testing.assert_allclose(rows[-1], expected)
    np.testing.assert_allclose(rows.sum(axis=1), found.excess[1, at])
    # Judged again, a scheme may have another best step than the one that was measured.
    assert (found.history(0.01) is None) == measured


def test_a_layer_without_excess_keeps_none_at_a_step_size_that_overflows():
    found = layers_from_arrays(layer_arrays([1.0, 0.5], [0.0, 1.0]))
    assert found.remaining_excess(1e8, k=1000).tolist() == [0.0, np.inf]


def test_a_measured_run_that_ends_above_its_start_is_one_red_column():
    found = layers_from_arrays(layer_arrays([5.0, 0.5], [1.0, 3.0], measured=True))
    assert (found.ratios(np.array([1.0])) > 1).all()
    exact = layers_from_arrays(layer_arrays([5.0, 0.5], [1.0, 3.0]))
    assert (exact.ratios(np.array([1.0])) > 1).tolist() == [[True, False]]


@pytest.mark.parametrize(
    ("share", "text"),
    [
        *((0.67, "67 %"), (0.0187, "1.9 %"), (1e-9, "0 %"), (0.0, "0 %"), (5e-5, "<0.01 %")),
        *((2.25, "225 %"), (0.00029, "0.029 %"), (-1e-17, "0 %"), (1234567.0, "1.2·10⁸ %")),
    ],
)
def test_a_share_is_read_at_a_glance(share, text):
    assert melt.percent(share) == text


def test_the_first_scheme_is_drawn_wherever_it_ends():
    rows, steps = layer_table([f"s{n}" for n in range(8)])
    arrays = {f"s{n}": layer_arrays([5.0, n / 10], [1.0, 1.0]) for n in (4, 0, 1, 2, 3, 5, 6, 7)}
    rows = rows.set_index("label", drop=False).loc[list(arrays)]
    shown, rest = melt.choose_melts(melt.drawable_schemes(arrays, rows, steps))
    assert shown[0].label == "s4"
    assert (len(shown), len(rest)) == (6, 2)


@pytest.mark.parametrize("decided", [True, False])
def test_schemes_are_one_where_rounding_alone_tells_them_apart(decided):
    arrays = {name: layer_arrays([5.0, 0.1], [1.0, 1.0], measured=True) for name in "ab"}
    arrays["b"][names.TRAIN_COST.key][0, ..., -1] *= 1.5
    rows, steps = layer_table("ab")
    if decided:
        steps.loc[steps[names.STEP_SIZE.column] == 0.01, "verdict"] = names.BY_ROUNDING
    melts = melt.merge_equal(melt.drawable_schemes(arrays, rows, steps))
    assert [melt.label for melt in melts] == (["a = b"] if decided else ["a", "b"])


def test_why_a_scheme_has_no_picture():
    rows, _ = layer_table(["a"])
    for column, value, reason in [
        ("verdict", "diverged", "it diverged at every step size"),
        (names.NO_LAYERS.column, "because", "because"),
        (names.STEP_TAG.column, None, "it has no best step size"),
        (names.setting("theory"), "none", "theory=none"),
        (names.NOTE.column, "x", melt.NO_LAYERS_REASON),
    ]:
        changed = rows.assign(**{column: value})
        assert melt.missing_reasons(changed, ()) == {"a": reason}
        assert melt.missing_reasons(changed, ["a"]) == {}
    settings = {names.setting("theory"): "none"}
    figure = of_melt({"a": layer_arrays([5.0], [1.0])}, lacking="b", **settings)()
    assert "No picture of b: theory=none." in words(figure)


def test_the_line_s_colours_are_the_end_of_the_right_panel():
    """The left picture along the black line, weighted by thickness, is what the right ends with."""
    arrays = {"a": layer_arrays([5.0, 0.8, 0.05], [2.0, 3.0, 5.0])}
    figure = of_melt(arrays)()
    left, right = figure.axes
    found = layers_from_arrays(arrays["a"])
    (line,) = [line for line in left.lines if len(set(line.get_xdata())) == 1]
    assert line.get_xdata()[0] == pytest.approx(-1)
    image = left.images[0]
    low, high, *_ = image.get_extent()
    column = int((-1 - low) / (high - low) * (melt.IMAGE_COLUMNS - 1) + 0.5)
    heights = (np.cumsum(found.thickness) - found.thickness / 2) * melt.IMAGE_ROWS
    seen = image.get_array()[heights.astype(int), column] / 255
    wanted = melt.MELT_COLOR_MAP(found.ratios(np.array([0.1]))[0])[:, :3]
    np.testing.assert_allclose(seen, wanted, atol=0.06)
    edge = right.lines[-2] if len(right.lines[-1].get_xdata()) != K + 1 else right.lines[-1]
    assert edge.get_ydata()[-1] == pytest.approx(found.remaining_excess(0.1).sum())
    assert melt.percent(found.remaining_excess(0.1).sum()) in words(figure)
    assert to_rgb(melt.GROWING_COLOR) != to_rgb(melt.MELTED_COLOR)


def test_the_profile_of_an_exact_scheme_begins_where_nothing_melts_and_ends_where_all_grows():
    """From 1e-4 to 1e8 times 1/L, whatever the unit of the cost."""
    profiles = [
        layers_from_arrays(layer_arrays([factor], [1.0])).profile for factor in (1.0, 100.0)
    ]
    np.testing.assert_allclose(*profiles)
    assert profiles[0][0] == pytest.approx((1 - 1e-4) ** (2 * K))
    assert profiles[0].min() < 0.1
    assert profiles[0][-1] == 2


def test_a_measured_run_that_ends_as_high_as_it_began_ends_below_its_start():
    arrays = {"a": layer_arrays([1.0], [1.0], sizes=(0.5, 2.0, 3.0), measured=True)}
    arrays["a"]["layer_step"] = np.array(0.5)
    rows, steps = layer_table(arrays, **{names.STEP_TAG.column: "0.5"})
    (one,) = melt.drawable_schemes(arrays, rows, steps)
    assert one.layers.excess[:, -1].tolist()[1] == 1
    text = melt.summary_sentence(one, "best")
    assert text.startswith("ends below its start up to step 2; ")
