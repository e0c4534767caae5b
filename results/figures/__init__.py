"""Figures: a table in, a matplotlib `Figure` out, one module each, no global state.

`draw` makes the figure from tables, and `make` finds the tables of an experiment for it.
"""

WHOLE = ("overview",)  # drawn once a sweep; every other figure once an experiment
ON_REQUEST = ("windows",)  # drawn only where they are asked for by name
# What `normbench results figure NAME` draws, in this order: the module of that name, here.
NAMES = {
    "overview": "excess cost left, and iterations to the target, of every problem (of several)",
    "melt": "why and what: the excess cost in layers, and how each step size melts them",
    "windows": "which directions each step size trains, and what came of it (plain descent)",
    "histories": "cost and misclassifications over the iterations",
    "closer": "histories from iteration 1, of the schemes that a study names",
    "dial": "cost and error over a setting that has three values or more",
    "step_sizes": "final cost over the step size, with verdicts and predictions",
    "phase_diagram": "step size x scheme: what is left, the verdicts, and the predictions",
    "sharpness": "step x L / 2 along the path against 1 (record=[sharpness])",
    "contours": "the cost over two weights, with the descent's path (record=[contours])",
    "fit": "the fitted model over one feature (record=[fit])",
    "film": "raw to normalized in two features, to play as GIF and SVG (record=[film])",
    "data": "the points under each scheme, with principal axes (record=[points])",
    "biplot": "points and features in the plane of two components (record=[biplot])",
    "loadings": "what each component is made of, as a table (record=[biplot])",
    "features": "the distribution of each feature (record=[features])",
    "projection": "points, and what a scheme keeps of them (record=[projection])",
    "spectrum": "eigenvalues before and after each scheme (record=[spectrum])",
    "components": "a scheme's coordinates as images (record=[components])",
    "weighted": "a point as the mean plus weighted components (record=[components])",
    "exemplars": "points that stand for the plane of two components (record=[exemplars])",
    "colours": "a picture, and copies of it with noise in their colours (record=[colours])",
    "formulas": "what other formulas make of the points, as a table (record=[formulas])",
    "reconstruction": "an image from its first k coordinates, and as a GIF (record=[components])",
}
BY_DEFAULT = tuple(name for name in NAMES if name not in ON_REQUEST)
