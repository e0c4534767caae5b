"""The picture of layers: what is merged, said and drawn, and that it can be read."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from normbench import names
from normbench.results.figures import drawing, melt
from normbench.results.figures.base import style
from normbench.results.figures.base.material import Options
from normbench.results.figures.melt import schemes
from normbench.results.figures.melt.layers import GONE_RATIO, THIN_SHARE, Layers, layers_from_arrays
from tests.results.figures.shapes import SHAPES
from tests.results.figures.test_looks import VISIONS, lab

K = 10


def parts(curvature, share, sizes=(0.01, 0.1, 1.0), measured=False, iterations=K):
    """What a job of least squares keeps; measured: as if by gradients."""
    curvature, share = np.array(curvature, dtype=float), np.array(share, dtype=float)
    sizes = np.array(sizes)
    k = np.arange(iterations + 1)
    with np.errstate(over="ignore"):
        left = share * (1 - sizes[:, None, None] * curvature) ** (2.0 * k[:, None])
    found = {"layer_curvature": curvature, "layer_share": share, "layer_times": np.array(1)}
    found |= {names.TRAIN_COST.key: left.sum(axis=2)[:, None], "minimum": np.array(0.0)}
    found["step_sizes"] = sizes
    if measured:
        found["layer_ends"] = left[:, -1] / left[:, -1].sum(axis=1, keepdims=True)
        found |= {"layer_at": k, "layer_step": np.array(sizes[1])}
        found["layer_path"] = left[1] / left[1].sum(axis=1, keepdims=True)
    return found


def table(labels, step="0.1", **columns):
    known = {names.STEP_TAG.column: step, "normalizer": "pca", "verdict": "not converged"}
    known |= {names.setting("iterations"): str(K), **columns}
    rows = pd.DataFrame([{"label": label, "run_id": label, **known} for label in labels])
    steps = pd.DataFrame(
        {"label": label, names.STEP_SIZE.column: size, "verdict": "not converged"}
        for label in labels
        for size in (0.01, 0.1, 1.0)
    )
    return rows, steps


def drawn(arrays, shape=style.SCREEN, **columns):
    return melt.draw(
        arrays, *table(arrays, **columns), "five, 80 x 5, in 10 iterations", shape=shape
    )


def words(figure):
    own = [text.get_text() for text in figure.texts]
    own += [text.get_text() for axis in figure.axes for text in axis.texts]
    return " ".join(" ".join(own).split())


def test_equal_curvatures_are_one_layer_and_thin_neighbours_are_merged():
    curvature = [8.0, 8.0 * (1 - 1e-9), 4.0, 2.0, 1.9, 1.8, 1.0]
    share = np.array([30.0, 20.0, 0.1, 29.6, 0.1, 0.1, 20.1])
    found = layers_from_arrays(parts(curvature, share))
    assert found.distinct_offsets.tolist() == [0, 2, 3, 4, 5, 6]
    assert found.drawn_offsets.tolist() == [0, 2, 3, 4, 6]
    np.testing.assert_allclose(found.thickness, [0.5, 0.001, 0.296, 0.002, 0.201])
    assert found.thickness.sum() == pytest.approx(1)
    thin = found.thickness < THIN_SHARE
    assert not (thin[1:] & thin[:-1]).any()
    assert "0.2 % each are merged" in words(drawn({"a": parts(curvature, share)}))
    assert "of equal curvature count as one" in words(drawn({"a": parts(curvature, share)}))
    distinct = words(drawn({"a": parts([2.0, 1.0], [1.0, 1.0])}))
    assert "merged" not in distinct
    assert "equal curvature" not in distinct


def test_a_caption_explains_the_white_lines_that_are_drawn_and_the_best_step():
    figure = drawn({"a": parts([3.0, 2.0, 1.0], [0.5, 0.48, 0.02])})
    lines = [line for line in figure.axes[0].lines if line.get_color() == "white"]
    assert [round(float(line.get_ydata()[0]), 9) for line in lines] == [0.5, 0.02]
    assert "Thin lines separate layers of at least 1.5 % each" in words(figure)
    assert "the best of the step sizes tried" in words(figure)
    assert "Thin lines" not in words(drawn({"a": parts([2.0, 1.0], [0.99, 0.01])}))


@pytest.mark.parametrize("iterations", [K, 50])
def test_a_caption_has_the_power_of_the_share_that_the_iterations_leave(iterations):
    arrays = {"a": parts([3.0, 1.0], [0.5, 0.5], iterations=iterations)}
    assert f"|1 - step size x curvature|^(2 x {iterations})." in words(drawn(arrays))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [2, 4, 6])
def test_up_to_six_schemes_are_drawn_in_every_format(count, shape):
    arrays = {f"s{n}": parts([5.0, 0.1 + n / 10], [1.0, 1.0]) for n in range(count)}
    figure = drawn(arrays, style.FORMATS[shape])
    assert len(figure.axes) == 2 * count
    assert "Not drawn" not in words(figure)


def test_a_caption_says_why_the_best_step_is_a_power_of_ten():
    curvature, share = [3.0, 2.0, 1.0], [0.5, 0.48, 0.02]
    said = "The best step is one of those tried"
    powers = words(drawn({"a": parts(curvature, share)}))
    assert f"{said}, which are powers of ten." in powers
    assert f"{said}." in words(drawn({"a": parts(curvature, share, sizes=(0.02, 0.1, 0.3))}))
    shown = {names.STEP_CHOSEN.column: "true"}
    assert said not in words(drawn({"a": parts(curvature, share)}, **shown))


@pytest.mark.parametrize("measured", [False, True])
def test_what_is_left_is_by_hand(measured):
    found = layers_from_arrays(parts([5.0, 0.5], [1.0, 3.0], measured=measured))
    expected = np.array([0.25 * 0.5**20, 0.75 * 0.95**20])
    np.testing.assert_allclose(found.remaining_excess(0.1), expected)
    np.testing.assert_allclose(found.ratios(np.array([0.1]))[0], expected / [0.25, 0.75])
    assert found.count_gone(0.1) == 1
    assert GONE_RATIO == 0.1
    at, rows = found.history(0.1)
    np.testing.assert_allclose(rows[-1], expected)
    np.testing.assert_allclose(rows.sum(axis=1), found.excess[1, at])


def test_a_layer_without_excess_keeps_none_at_a_step_size_that_overflows():
    found = layers_from_arrays(parts([1.0, 0.5], [0.0, 1.0]))
    assert found.remaining_excess(1e8, k=1000).tolist() == [0.0, np.inf]


def test_a_measured_run_that_ends_above_its_start_is_one_red_column():
    found = layers_from_arrays(parts([5.0, 0.5], [1.0, 3.0], measured=True))
    assert (found.ratios(np.array([1.0])) > 1).all()
    exact = layers_from_arrays(parts([5.0, 0.5], [1.0, 3.0]))
    assert (exact.ratios(np.array([1.0])) > 1).tolist() == [[True, False]]


def test_a_path_of_another_step_is_not_drawn():
    """Judged again, a scheme may have another best step than the one that was measured."""
    found = layers_from_arrays(parts([5.0, 0.5], [1.0, 3.0], measured=True))
    assert found.history(0.01) is None
    assert found.history(0.1) is not None


def test_the_line_above_a_row_says_why():
    arrays = {"a": parts([5.0, 0.5], [1.0, 9.0]), "b": parts([5.0, 0.5], [3.0, 1.0])}
    rows, steps = table(arrays)
    one, other = melt.drawable_schemes(arrays, rows, steps)
    assert schemes.summary_sentence(one, "best") == (
        "diverges above 2/L = 0.4 because of a layer of 10 %; at the best step, 0.1, 1 of 2 layers "
        "is gone"
    )
    assert "because" not in schemes.summary_sentence(other, "best")
    arrays = {"a": parts([5.0, 0.5], [1.0, 9.0], measured=True)}
    (one,) = melt.drawable_schemes(arrays, *table(arrays))
    assert schemes.summary_sentence(one, "shown").startswith(
        "ends below its start up to step 0.1; at the"
    )
    steps.loc[steps[names.STEP_SIZE.column] == 1.0, "verdict"] = names.BY_ROUNDING
    (one,) = melt.drawable_schemes(arrays, table(arrays)[0], steps)
    assert one.decided_by_rounding.tolist() == [False, False, True]
    assert "decided by rounding" in words(
        melt.draw(arrays, table(arrays)[0], steps, "t")
    )  # and nothing else is said of it
    assert schemes.summary_sentence(one, "best").startswith("ends below its start up to step 0.1;")


@pytest.mark.parametrize(
    ("share", "text"),
    [
        *((0.67, "67 %"), (0.0187, "1.9 %"), (1e-9, "0 %"), (0.0, "0 %"), (5e-5, "<0.01 %")),
        *((2.25, "225 %"), (0.00029, "0.029 %"), (-1e-17, "0 %"), (1234567.0, "1.2·10⁸ %")),
    ],
)
def test_a_share_is_read_at_a_glance(share, text):
    assert melt.percent(share) == text


def test_at_most_six_schemes_are_drawn_equal_ones_once_and_the_rest_named():
    arrays = {f"s{n}": parts([5.0, 0.1 + n / 10], [1.0, 1.0]) for n in range(8)}
    arrays |= {"twin": parts([5.0, 0.1], [1.0, 1.0])}
    figure = drawn(arrays)
    assert len(figure.axes) == 12
    assert figure.get_figheight() <= 9 + 1e-9
    told = words(figure)
    assert "s0 = twin" in told
    rest = told[told.index("Not drawn") :].partition(".")[0]
    assert rest.count("%") == 2
    assert not {"s0", "s7"} & set(rest.split())  # the most and the least


def test_the_first_scheme_is_drawn_wherever_it_ends():
    rows, steps = table([f"s{n}" for n in range(8)])
    arrays = {f"s{n}": parts([5.0, n / 10], [1.0, 1.0]) for n in (4, 0, 1, 2, 3, 5, 6, 7)}
    rows = rows.set_index("label", drop=False).loc[list(arrays)]
    shown, rest = schemes.choose_melts(schemes.drawable_schemes(arrays, rows, steps))
    assert shown[0].label == "s4"
    assert (len(shown), len(rest)) == (6, 2)


@pytest.mark.parametrize("decided", [True, False])
def test_schemes_are_one_where_rounding_alone_tells_them_apart(decided):
    arrays = {name: parts([5.0, 0.1], [1.0, 1.0], measured=True) for name in "ab"}
    arrays["b"][names.TRAIN_COST.key][0, ..., -1] *= 1.5
    rows, steps = table("ab")
    if decided:
        steps.loc[steps[names.STEP_SIZE.column] == 0.01, "verdict"] = names.BY_ROUNDING
    melts = schemes.merge_equal(schemes.drawable_schemes(arrays, rows, steps))
    assert [melt.label for melt in melts] == (["a = b"] if decided else ["a", "b"])


@pytest.mark.parametrize(("start", "own"), [("normal", True), ("zeros", False)])
def test_shares_of_another_start_are_called_so(start, own):
    figure = drawn({"a": parts([5.0], [1.0])}, **{names.setting("start"): start})
    assert ("each scheme's own start" in words(figure)) == own


def test_why_a_scheme_has_no_picture():
    rows, _ = table(["a"])
    note = "windows, melt skipped: more work than the descent; theory=full asks for it"
    for column, value, reason in [
        ("verdict", "diverged", "it diverged at every step size"),
        (names.NO_LAYERS.column, "because", "because"),
        (names.STEP_TAG.column, None, "it has no best step size"),
        (names.setting("theory"), "none", "theory=none"),
        (names.NOTE.column, note, "more work than the descent (theory=full asks for it)"),
        (names.NOTE.column, "x skipped: y", schemes.NO_LAYERS_REASON),
    ]:
        changed = rows.assign(**{column: value})
        assert schemes.missing_reasons(changed, ()) == {"a": reason}
        assert schemes.missing_reasons(changed, ["a"]) == {}
    arrays = {"a": parts([5.0], [1.0])}
    rows, steps = table(["a", "b"], **{names.setting("theory"): "none"})
    assert "No picture of b: theory=none." in words(melt.draw(arrays, rows, steps, "t"))


def test_the_reason_is_told_where_the_figure_is_asked_for(images, three):
    assert drawing.figure(images.sweep, images.name, "melt") is None
    assert "figure melt: " in drawing.missing_figure_message(images.sweep, "melt")
    assert drawing.figure(three.sweep, three.name, "melt") is not None


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize(("count", "measured"), [(1, True), (3, False), (6, False), (6, True)])
@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_is_cut_and_no_words_overlap(count, shape, measured):
    arrays = {
        f"scheme {n}, ridge=0.1": parts(
            [5e5, 5.0, 0.5, 0.01 * n], [0.1, 3.0, n, 0.2], measured=measured
        )
        for n in range(1, count + 1)
    }
    shape = style.FORMATS[shape]
    figure = drawn(arrays, shape, step="0.01" if not measured else "0.1")
    figure.draw_without_rendering()
    width, height = figure.get_size_inches() * shape.dpi
    assert figure.get_figheight() <= (9 + 1e-9 if shape.font <= 10 or count < 6 else 13)
    texts = [*figure.texts, *(text for axis in figure.axes for text in axis.texts)]
    ticks = [
        label
        for axis in figure.axes
        for part in (axis.xaxis, axis.yaxis)
        for label in [*part.get_ticklabels(), part.label]
        if label.get_text() and label.get_visible()
    ]
    boxes = [(text.get_text(), text.get_window_extent()) for text in (*texts, *ticks)]
    for text, box in boxes:
        assert box.x0 > -2, text
        assert box.x1 < width + 2, text
        assert box.y0 > -2, text
        assert box.y1 < height + 2, text
    for (one, box), (other, beside) in itertools.combinations(boxes, 2):
        across = min(box.x1, beside.x1) - max(box.x0, beside.x0)
        up = min(box.y1, beside.y1) - max(box.y0, beside.y0)
        assert min(across, up) < 0.3 * shape.font / 72 * shape.dpi, (one, other)


@pytest.mark.parametrize("vision", VISIONS)
def test_its_colours_are_told_apart_in_every_vision(vision):
    colors = [melt.FROZEN_COLOR, melt.MELTED_COLOR, melt.GROWING_COLOR, melt.ROUNDING_COLOR]
    seen = lab(colors, vision)
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(one - other) > 25


def test_in_grey_frozen_is_light_melted_dark_and_what_grows_is_hatched():
    light = {
        c: lab([c], "normal")[0, 0]
        for c in (melt.FROZEN_COLOR, melt.MELTED_COLOR, melt.GROWING_COLOR)
    }
    assert light[melt.FROZEN_COLOR] > 85
    assert light[melt.MELTED_COLOR] < 40
    ramp = lab([melt.MELT_COLOR_MAP(x)[:3] for x in np.linspace(0, 1, 30)], "normal")[:, 0]
    assert (np.diff(ramp) > 0).all()
    figure = drawn({"a": parts([5.0, 0.5], [1.0, 3.0])})
    hatched = [patch for axis in figure.axes for patch in axis.patches if patch.get_hatch()]
    assert hatched


def test_the_line_s_colours_are_the_end_of_the_right_panel():
    """The left picture along the black line, weighted by thickness, is what the right ends with."""
    arrays = {"a": parts([5.0, 0.8, 0.05], [2.0, 3.0, 5.0])}
    figure = drawn(arrays)
    left, right = figure.axes
    found: Layers = layers_from_arrays(arrays["a"])
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
    profiles = [layers_from_arrays(parts([factor], [1.0])).profile for factor in (1.0, 100.0)]
    np.testing.assert_allclose(*profiles)
    assert profiles[0][0] == pytest.approx((1 - 1e-4) ** (2 * K))
    assert profiles[0].min() < 0.1
    assert profiles[0][-1] == 2


def test_a_measured_run_that_ends_as_high_as_it_began_ends_below_its_start():
    arrays = {"a": parts([1.0], [1.0], sizes=(0.5, 2.0, 3.0), measured=True)}
    arrays["a"]["layer_step"] = np.array(0.5)
    rows, steps = table(arrays, step="0.5")
    (one,) = melt.drawable_schemes(arrays, rows, steps)
    assert one.layers.excess[:, -1].tolist()[1] == 1
    text = schemes.summary_sentence(one, "best")
    assert text.startswith("ends below its start up to step 2; ")


def test_a_title_has_no_budget_where_jobs_differ_in_it(three):
    frame = three.sweep.runs.copy()
    is_scheme = frame["role"] == "scheme"
    frame.loc[is_scheme, names.setting("iterations")] = ["5", "10", "10"]
    frame.loc[is_scheme, names.OPTIMIZER.column] = ["adam", "gradient_descent", "adam"]
    figure = melt.make(replace(three.sweep, runs=frame), three.name, Options())
    title = " ".join(text.get_text() for text in figure.texts)
    assert ", ," not in title
    assert ", the first of 2 starts, each at" in title
