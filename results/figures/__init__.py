"""Figures: each function turns tables and arrays into a matplotlib `Figure`, without global state.

A decorator registers the function that makes a figure of a sweep, under the name that stands here.
"""

from typing import NamedTuple


class Entry(NamedTuple):
    """What is known of a figure before the module that draws it is loaded.

    Attributes:
        module: the module.
        help: what the figure shows; in parentheses, what must be recorded for it.
    """

    module: str
    help: str


SWEEP_FIGURES = ("overview",)  # drawn once for a sweep; other figures once for each experiment
# Figures of photographs: on a dark ground they stay as they are, others are inverted.
PHOTOGRAPHIC_FIGURES = ("colours", "components", "exemplars", "reconstruction", "weighted")
# The figures of `normbench results figure NAME`, in this order.
FIGURES = {
    "overview": Entry(
        "overview", "excess cost left, and iterations to the target, of every problem (of several)"
    ),
    "melt": Entry(
        "melt", "why and what: the excess cost in layers, and how each step size melts them"
    ),
    "histories": Entry("histories", "cost and misclassifications over the iterations"),
    "closer": Entry("histories", "histories from iteration 1, of the schemes that a study names"),
    "dial": Entry("settings", "cost and error over a setting that has three values or more"),
    "batch_sizes": Entry(
        "settings", "largest step, passes and updates over the size of a batch, of three or more"
    ),
    "step_sizes": Entry(
        "step_sizes", "final cost over the step size, with verdicts and predictions"
    ),
    "phase_diagram": Entry(
        "phase_diagram", "step size x scheme: what is left, the verdicts, and the predictions"
    ),
    "sharpness": Entry("descent", "step x L / 2 along the path against 1 (record=[sharpness])"),
    "landing": Entry(
        "descent", "where steps land: 0 at the start, 1 at the minimum (record=[landing])"
    ),
    "by_layer": Entry(
        "descent", "gradients and values of each layer of a network (record=[by_layer])"
    ),
    "contours": Entry(
        "contours", "the cost over two weights, with the descent's path (record=[contours])"
    ),
    "boundary": Entry("descent", "the class predicted over two features (record=[boundary])"),
    "fit": Entry("descent", "the fitted model over one feature (record=[fit])"),
    "film": Entry("film", "raw to normalized in two features, to play as a GIF (record=[film])"),
    "data": Entry("points", "the points under each scheme, with principal axes (record=[points])"),
    "biplot": Entry(
        "points", "points and features in the plane of two components (record=[biplot])"
    ),
    "loadings": Entry("points", "what each component is made of, as a table (record=[biplot])"),
    "features": Entry("points", "the distribution of each feature (record=[features])"),
    "projection": Entry("points", "points, and what a scheme keeps of them (record=[projection])"),
    "spectrum": Entry("points", "eigenvalues before and after each scheme (record=[spectrum])"),
    "components": Entry("images", "a scheme's coordinates as images (record=[components])"),
    "weighted": Entry(
        "images", "a point as the origin plus weighted components (record=[components])"
    ),
    "exemplars": Entry(
        "images", "points that stand for the plane of two components (record=[exemplars])"
    ),
    "colours": Entry(
        "images", "a picture, and copies of it with noise in their colours (record=[colours])"
    ),
    "formulas": Entry(
        "points", "what other formulas make of the points, as a table (record=[formulas])"
    ),
    "reconstruction": Entry(
        "images", "an image from its first k coordinates, and as a GIF (record=[components])"
    ),
}
NAMES = {name: entry.help for name, entry in FIGURES.items()}
