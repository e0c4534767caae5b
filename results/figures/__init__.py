"""Figures: each module turns tables into a matplotlib `Figure`, without global state.

Each module has two functions: `draw` builds the figure from tables and arrays, and `make` reads
them from a sweep and calls `draw`.
"""

SWEEP_FIGURES = ("overview",)  # drawn once for a sweep; other figures once for each experiment
# Figures of photographs: on a dark ground they stay as they are, others are inverted.
PHOTOGRAPHIC_FIGURES = ("colours", "components", "exemplars", "reconstruction", "weighted")
# The figures of `normbench results figure NAME` in this order: the module's name, its contents.
NAMES = {
    "overview": "excess cost left, and iterations to the target, of every problem (of several)",
    "melt": "why and what: the excess cost in layers, and how each step size melts them",
    "histories": "cost and misclassifications over the iterations",
    "closer": "histories from iteration 1, of the schemes that a study names",
    "dial": "cost and error over a setting that has three values or more",
    "batch_sizes": "largest step, passes and updates over the size of a batch, of three or more",
    "step_sizes": "final cost over the step size, with verdicts and predictions",
    "phase_diagram": "step size x scheme: what is left, the verdicts, and the predictions",
    "sharpness": "step x L / 2 along the path against 1 (record=[sharpness])",
    "landing": "where steps land: 0 at the start, 1 at the minimum (record=[landing])",
    "by_layer": "gradients and values of each layer of a network (record=[by_layer])",
    "contours": "the cost over two weights, with the descent's path (record=[contours])",
    "boundary": "the class predicted over two features (record=[boundary])",
    "fit": "the fitted model over one feature (record=[fit])",
    "film": "raw to normalized in two features, to play as a GIF (record=[film])",
    "data": "the points under each scheme, with principal axes (record=[points])",
    "biplot": "points and features in the plane of two components (record=[biplot])",
    "loadings": "what each component is made of, as a table (record=[biplot])",
    "features": "the distribution of each feature (record=[features])",
    "projection": "points, and what a scheme keeps of them (record=[projection])",
    "spectrum": "eigenvalues before and after each scheme (record=[spectrum])",
    "components": "a scheme's coordinates as images (record=[components])",
    "weighted": "a point as the origin plus weighted components (record=[components])",
    "exemplars": "points that stand for the plane of two components (record=[exemplars])",
    "colours": "a picture, and copies of it with noise in their colours (record=[colours])",
    "formulas": "what other formulas make of the points, as a table (record=[formulas])",
    "reconstruction": "an image from its first k coordinates, and as a GIF (record=[components])",
}
