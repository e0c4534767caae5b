"""The vocabulary of MLflow: every metric, tag and verdict that is written and read, once.

`harness` writes these names, and `results` reads them. Nothing else is matched, least of all a
sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

METRICS, TAGS, PARAMS = (
    "metrics.",
    "tags.",
    "params.",
)  # prefixes of a key, in the columns of a table of runs
HOME = "outputs"  # the folder of comparisons and of their records, unless another one is named
FIT_ON = f"{PARAMS}dataset.fit_on"  # the points whose statistics the schemes learn: train or all
ITERATION, STEP_SIZE_NUMBER, START, DIRECTION = "iteration", "step size", "start", "direction"
LAYER, WEIGHT_SET = "layer", "set of weights"


@dataclass(frozen=True)
class Metric:
    """A number, or a series of numbers.

    Attributes:
        key: The key under which it is recorded.
        label: The label for a reader.
        unit: The unit, empty for a plain number.
        axis: What the step of MLflow counts in a series, empty for a single number.
    """

    key: str
    label: str
    unit: str = ""
    axis: str = ""

    @property
    def column(self) -> str:
        """The column of its last value in a table of runs."""
        return f"{METRICS}{self.key}"

    @property
    def heading(self) -> str:
        """The label with its unit, for an axis or a heading."""
        return f"{self.label}, {self.unit}" if self.unit else self.label


@dataclass(frozen=True)
class Tag:
    """A text that a run is tagged with; key: the key under which it is recorded."""

    key: str
    meaning: str

    @property
    def column(self) -> str:
        """Its column in a table of runs."""
        return f"{TAGS}{self.key}"

    def equals(self, text: str) -> str:
        """Return the filter of MLflow for the runs that have this tag with this text."""
        return f"{self._term} = '{text}'"

    @property
    def exists(self) -> str:
        """The filter of MLflow for the runs that have this tag."""
        return f"{self._term} LIKE '%'"

    @property
    def _term(self) -> str:
        """The name of the tag in a filter of MLflow, which wants backquotes around a dot."""
        return f"{TAGS}`{self.key}`" if "." in self.key else self.column


# Verdicts on a run, from good to bad, with their meaning (`failed`: of a job).
CONVERGED, NOT_CONVERGED, CYCLING, DIVERGED = "converged", "not converged", "cycling", "diverged"
BY_ROUNDING = "decided by rounding"
FAILED = "failed"
UNRANKED = (BY_ROUNDING, DIVERGED)  # never the best step, and their costs are not compared
VERDICTS = {
    CONVERGED: "its cost is flat at the end, and over half of the excess cost is gone",
    NOT_CONVERGED: "it is finite, and neither converged nor cycling",
    CYCLING: "it rises and falls without a new low",
    BY_ROUNDING: "it is chaotic: another processor may end it elsewhere",
    DIVERGED: "it stopped being finite, or ends far above the start",
    FAILED: "the job could not run",
}
TIED = 1e-6  # of the excess of the start: final costs that differ by less are tied
TIED_FLOAT32 = 1e-4  # likewise of single precision, by whose rounding equal schemes differ


# Histories: over the iterations, 0 (the start) first.
TRAIN_COST = Metric("train/cost", "cost", "mean over points", ITERATION)
TRAIN_MISCLASSIFICATIONS = Metric(
    "train/misclassifications", "misclassified points", axis=ITERATION
)
TEST_COST = Metric("test/cost", "test cost", "mean over points", ITERATION)
TEST_MISCLASSIFICATIONS = Metric(
    "test/misclassifications", "misclassified test points", axis=ITERATION
)
HISTORIES = (TRAIN_COST, TRAIN_MISCLASSIFICATIONS, TEST_COST, TEST_MISCLASSIFICATIONS)
QUARTILES = ("q1", "q3")  # suffixes of a history and of a final number, over several starts
PREDICTED_COST = Metric("theory/predicted_cost", "predicted cost", "mean over points", ITERATION)
SHARPNESS = Metric(
    "theory/sharpness", "step size x L / 2", "L the largest curvature there", ITERATION
)
CURVATURE_LARGEST = Metric(
    "theory/curvature_largest", "largest eigenvalue of the Hessian", axis=ITERATION
)
CURVATURE_SMALLEST = Metric(
    "theory/curvature_smallest", "smallest eigenvalue of the Hessian", axis=ITERATION
)
CURVATURE_CONDITION = Metric(
    "theory/curvature_condition",
    "largest over smallest positive eigenvalue of the Hessian",
    axis=ITERATION,
)
# Arrays of a network, a row an iteration.
LAYER_GRADIENT = Metric("layer_gradient_norm", "norm of the gradient", axis=LAYER)
LAYER_RANK = Metric("layer_rank", "participation ratio of the values", axis=LAYER)
LAYER_NORM = Metric("layer_norm", "root mean square of the values", axis=LAYER)
LAYER_COSINE = Metric("layer_cosine", "cosine of the gradient, others moved", axis=LAYER)
WEIGHT_NORM = Metric("weight_norm", "norm of scale-invariant weights", axis=WEIGHT_SET)
EFFECTIVE_STEP = Metric("effective_step", "step size / squared norm", axis=WEIGHT_SET)
LANDING = Metric("theory/landing", "where a step lands, the median", "1 at the minimum")
LANDING_SOFT = Metric(
    "theory/landing_soft_share", "directions that go less than 0.1 of the way to their minimum"
)

# The families of keys: their prefixes up to the slash.
TRAIN_PREFIX, TEST_PREFIX, FINAL_PREFIX, THEORY_PREFIX = "train/", "test/", "final/", "theory/"
TIME_PREFIX, GRID_PREFIX, START_PREFIX, FOLDS_PREFIX = "time/", "grid/", "start/", "folds/"
OWN_UNITS = "own_units/"


def quartile(metric: Metric, quartile_name: str) -> Metric:
    """Return the metric of a quartile, over the starts, of another metric.

    Args:
        metric: The metric that has a value for each start.
        quartile_name: One of `QUARTILES`.
    """
    return Metric(
        f"{metric.key}_{quartile_name}",
        f"{metric.label}, {quartile_name}",
        metric.unit,
        metric.axis,
    )


def final_metric(history: Metric) -> Metric:
    """Return the metric of the last value of a history."""
    return Metric(f"{FINAL_PREFIX}{_flat(history)}", f"final {history.label}", history.unit)


def grid(history: Metric) -> Metric:
    """Return the series of the last values of a history: one for each step size of the grid."""
    return Metric(
        f"{GRID_PREFIX}{_flat(history)}", f"final {history.label}", history.unit, STEP_SIZE_NUMBER
    )


def _flat(history: Metric) -> str:
    """Return the key of a history without slashes."""
    return history.key.replace("/", "_")


# What a scheme's grid came to, and each step size.
STEP_SIZE = Metric("step_size", "step size")
GRID_STEP_SIZE = Metric(
    f"{GRID_PREFIX}log10_step_size", "log10 of the step size", axis=STEP_SIZE_NUMBER
)
FINAL_COST = final_metric(TRAIN_COST)
FINAL_MISCLASSIFICATIONS = final_metric(TRAIN_MISCLASSIFICATIONS)
FINAL_TEST_COST = final_metric(TEST_COST)
FINAL_TEST_MISCLASSIFICATIONS = final_metric(TEST_MISCLASSIFICATIONS)
STEPS_TRIED = Metric("final/steps_tried", "steps")
STEPS_LEVELLED = Metric("final/steps_levelled", "converged steps")
STEPS_BY_ROUNDING = Metric("final/steps_decided_by_rounding", "steps decided by rounding")
STEPS_DIVERGED = Metric("final/steps_diverged", "diverged steps")
TO_LOWEST = Metric(
    "final/iterations_to_lowest", "iterations to the lowest cost of the grid", "iterations"
)
LARGEST_CONVERGENT = Metric("final/largest_convergent_step", "largest convergent step")
LARGEST_FALLING = Metric("final/largest_falling_step", "largest step up to which the cost falls")
CRITICAL = Metric("final/critical_step", "critical step, from below")
CRITICAL_UPPER = Metric("final/critical_step_upper", "critical step, from above")
CRITICAL_DESCENTS = Metric("final/critical_descents", "descents of the search")

# Targets: shares of the excess of the start over the least cost.
TARGETS = {"1e-1": 1e-1, "1e-2": 1e-2, "1e-3": 1e-3}
MEASURES = ("iterations", "seconds")


def target(name: str) -> Metric:
    """Return the metric of the cost of a target; name: one of `TARGETS`."""
    return Metric(f"{THEORY_PREFIX}target_{name}", f"target {name}")


def reached(name: str, measure: str = "iterations") -> Metric:
    """Return the metric of the time from which on the cost is at most a target.

    Args:
        name: One of `TARGETS`.
        measure: What the time is counted in: one of `MEASURES`.
    """
    return Metric(
        f"{FINAL_PREFIX}{measure}_to_{name}", f"{measure} to {name} of the excess", measure
    )


def best_step_for_target(name: str) -> Metric:
    """Return the metric of the step size that takes the fewest iterations to a target."""
    return Metric(f"{FINAL_PREFIX}step_to_{name}", f"step size for {name} of the excess")


def least(name: str) -> Metric:
    """Return the metric of the fewest iterations to a target, of any step size between those tried.

    Args:
        name: One of `TARGETS`.
    """
    return Metric(
        f"{FINAL_PREFIX}least_iterations_to_{name}", f"least iterations to {name}", "iterations"
    )


def predicted(name: str) -> Metric:
    """Return the metric of the iterations that theory predicts to a target; name: of `TARGETS`."""
    return Metric(
        f"{THEORY_PREFIX}predicted_iterations_to_{name}",
        f"predicted iterations to {name} of the excess",
        "iterations",
    )


# Of each of several starts.
START_COST = Metric(f"{START_PREFIX}final_cost", "final cost", "mean over points", START)


def start_reached(name: str) -> Metric:
    """Return the series of the iterations to a target, one for each start; name: of `TARGETS`."""
    return Metric(
        f"{START_PREFIX}iterations_to_{name}",
        f"iterations to {name} of the excess",
        "iterations",
        START,
    )


# Of predictions in the target's own units, where the targets are under a scheme: the cost, and the
# root of the mean squared error, at the last iteration.
OWN_COST = Metric(f"{OWN_UNITS}train_cost", "cost in own units", "mean over points")
OWN_TEST_COST = Metric(f"{OWN_UNITS}test_cost", "test cost in own units", "mean over points")
OWN_ERROR = Metric(f"{OWN_UNITS}train_error", "RMS error")
OWN_TEST_ERROR = Metric(f"{OWN_UNITS}test_error", "test RMS error")

# Of points held out by cross-validation, at the last iteration: means over its seeds.
FOLDS_ERROR = Metric(f"{FOLDS_PREFIX}error", "cross-validated error", "share of the points")
FOLDS_COST = Metric(f"{FOLDS_PREFIX}cost", "cross-validated cost", "mean over points")
FOLDS_TRAIN_COST = Metric(
    f"{FOLDS_PREFIX}train_cost", "training cost of the folds", "mean over points"
)
CROSS_VALIDATED = (FOLDS_ERROR, FOLDS_COST, FOLDS_TRAIN_COST)


def of_seed(metric: Metric) -> Metric:
    """Return the metric of a cross-validated number, by seed."""
    return Metric(f"{metric.key}_of_seed", metric.label, metric.unit, "seed")


# Theory.
LIPSCHITZ = Metric("theory/lipschitz", "L")
THRESHOLD = Metric("theory/step_threshold", "2/L")
LIPSCHITZ_START = Metric("theory/lipschitz_start", "L at the start")
THRESHOLD_START = Metric("theory/step_threshold_start", "2/L at the start")
LIPSCHITZ_BEST = Metric("theory/lipschitz_best", "L at the best weights")
THRESHOLD_BEST = Metric("theory/step_threshold_best", "2/L at the best weights")
KNEE = Metric("theory/batch_knee", "batch beyond which larger ones gain little", "points")
BATCH_STEP = Metric("theory/batch_step", "largest stable step of the batch, about")
BATCH_STEP_EXACT = Metric("theory/batch_step_exact", "largest step stable in mean square")
DISTURBANCE = Metric(
    "theory/statistics_disturbance", "how far a batch's statistics move its points", "share"
)
NOISE_FLOOR = Metric("theory/noise_floor", "excess at which the step hovers, with replacement")
CONDITION = Metric("theory/condition_number", "condition number")
CONDITION_LIMIT = Metric("theory/condition_limit", "condition number, from below")
CONDITION_START = Metric("theory/condition_start", "condition number at the start")
CONDITION_MINIMUM = Metric("theory/condition_minimum", "condition number at the minimum")
RANK = Metric("theory/rank", "rank")
MINIMUM = Metric("theory/minimum", "least cost", "mean over points")
MINIMUM_GRADIENT = Metric("theory/minimum_gradient_norm", "gradient's norm at the least cost")
PREDICTION_ERROR = Metric("theory/prediction_error", "error of the predicted costs", "relative")
SPECTRUM_LARGEST = Metric("theory/spectrum_largest", "largest eigenvalue of the bound's spectrum")
CURVATURES_BEST = Metric("window_best", "curvatures at the best weights", axis=DIRECTION)
COST_CURVATURE = Metric("theory/cost_curvature", "bound on the cost's second derivative")
LARGEST_RAW = Metric("theory/gram_largest_raw", "Gram matrix's largest eigenvalue")
LARGEST_CENTRED = Metric(
    "theory/gram_largest_centred", "Gram matrix's largest eigenvalue, points centred"
)
LARGEST_STANDARD = Metric(
    "theory/gram_largest_standard", "Gram matrix's largest eigenvalue, points standardized"
)
RIDGE = Metric("theory/ridge", "ridge")
RIDGE_SHARE = Metric("theory/ridge_share", "ridge", "share of the largest eigenvalue")
LIVE_DIRECTIONS = Metric("theory/live_directions", "directions that the scheme keeps")
EFFECTIVE_RANK = Metric("theory/effective_rank", "effective rank")
DEAD_DIRECTIONS = Metric("theory/dead_directions", "dead directions")
LOST_DIRECTIONS = Metric("theory/lost_directions", "live directions lost in rounding")
DEAD_VARIANCE = Metric("theory/dead_variance_share", "variance of the dead directions", "share")
VARIANCE = Metric("theory/variance", "variance", axis=DIRECTION)
RIDGE_TOUCHED = Metric("theory/ridge_touched", "directions that the ridge touched")
RIDGE_SMALLEST = Metric("theory/ridge_smallest_variance", "smallest variance after the ridge")
RIDGE_VARIANCE = Metric("theory/ridge_variance", "variance after the ridge", axis=DIRECTION)
FEATURES_VARYING = Metric("theory/features_varying", "features that vary before the scheme")
FEATURES_LOST = Metric("theory/features_lost", "features that the scheme makes constant")
FEATURES_UNSCALED = Metric("theory/features_unscaled", "features too small for the scheme to scale")
IDENTITY_GAP = Metric("theory/identity_gap", "largest |SS'/P - I|")
COVARIANCE_CONDITION = Metric(
    "theory/covariance_condition", "condition number of the points' covariance over live directions"
)
VARIANCE_LOST = Metric("theory/variance_lost", "variance lost", "share")

PRINCIPAL = ("principal direction 1", "principal direction 2")  # coordinates that are drawn

# Seconds.
FIT_SECONDS = Metric("time/fit_seconds", "fitting the scheme", "seconds")
DESCENT_SECONDS = Metric("time/descent_seconds", "descending the whole grid", "seconds")
SECONDS_A_STEP = Metric("time/seconds_a_step", "one step of one run", "seconds")
THEORY_SECONDS = Metric("time/theory_seconds", "theory", "seconds")
SEARCH_SECONDS = Metric("time/search_seconds", "searching the critical step", "seconds")

# Where a run belongs.
ROLE = Tag("role", "the kind of run: sweep, scheme (one job) or step (one step size)")
SWEEP, SCHEME, STEP = "sweep", "scheme", "step"
SWEEP_ID = Tag("sweep_id", "the sweep that wrote it")
JOB = Tag("job", "the sweep and the number of the job in it")
FINGERPRINT = Tag("fingerprint", "the job's identity")
DESCENT = Tag("descent", "what of it changes the numbers of its descent")
KEY = Tag("key", "the key of the job's record")
WRITER = Tag("writer", "the folder of comparisons that wrote it, by its id")
NORMALIZER = Tag("normalizer", "the scheme's name in conf")
DATASET = Tag("dataset", "the data set's name")
COST = Tag("cost", "the cost's name in conf")
OPTIMIZER = Tag("optimizer", "the optimizer's name in conf")
MODEL = Tag("model", "the model's name in conf")
SLURM_JOB = Tag("slurm_job", "the job of Slurm's that ran it: squeue and scancel know it so")
LOG = Tag("log_file", "the file of what it printed, of a job that a queue ran")


def membership(sweep_id: str) -> Tag:
    """Return the tag of the number of a job in a sweep, on the run of its scheme."""
    return Tag(f"sweep.{sweep_id}", "the number of the job in that sweep")


# Of a sweep.
COMMAND = Tag("command", "the command that made it, without passwords")
EXPECTED = Tag("study_expected", "what the source of its study says in numbers, as JSON")
JOBS = Tag("jobs", "how many jobs it has")
GIT_DIRTY = Tag("git_dirty", "true where the code was changed since the commit")
BLAS = Tag("blas", "the linear algebra in use")
CODE = Tag("code_digest", "a digest of the code that made and drew it")
REJUDGED = Tag("rejudged", "the rules by which its jobs were judged again, as words")
VERSION = "version."  # the prefix of the name of a library


def version(library: str) -> Tag:
    """Return the tag of the version of a library."""
    return Tag(f"{VERSION}{library}", f"the version of {library}")


# Of a scheme or a step.
STEP_TAG = Tag("step_size", "the step size; of a scheme, of the run that stands for it")
VERDICT = Tag("verdict", "one of `VERDICTS`")
REASON = Tag("reason", "why, where the verdict alone does not say it")
ERROR = Tag("error", "the type of the error of a job that failed")
RECORDED = Tag("recorded", "the words of the arrays that it keeps, with commas")
DESCENT_ARRAYS = "descent"  # the name of the arrays of every descent: all its histories
THINNED = Tag(
    "thinned", "true where MLflow has some points of a history, and `DESCENT_ARRAYS` has all"
)
DESCEND_AGAIN = Tag(
    "descend_again", "what belonged to another best step, or other rules, and is gone"
)
BEST = Tag("best", "true for the step that stands for its scheme")
FALLS = Tag("falls", "true where the cost falls throughout")
START_VERDICTS = Tag("start_verdicts", "the verdict of each of several starts")
STANDS_IN = Tag("start_stands_in", "true where normal stands in for same_function: start=null")
REFINED = Tag("refined", "the step sizes beside the grid's, and what they take, as JSON")
STEP_CHOSEN = Tag("step_chosen", "true where shown_step chose the step")
COMPARED = Tag("compared_by", "what steps, targets and ranks go by, where it is not the cost")
MISCLASSIFICATIONS = "misclassifications"
CENSORED = Tag("censored", "true where no step above the largest convergent one failed")
CENSORED_FALLING = Tag("censored_falling", "likewise, of the largest falling step")
CENSORED_CRITICAL = Tag("censored_critical", "true where no step failed in the search")
EXPLANATION = Tag("explanation", "theory in a paragraph")
BASIS = Tag("theory_basis", "which curvature 2/L is from")
EXACT = "exact"  # the beginning of a basis that is no bound: the curvature is the same everywhere
PLAIN = Tag("plain_descent", "false where 2/L does not speak of the optimizer")
BATCHED = Tag("batched", "true where a step of plain gradient descent sees a batch of the points")
GRIDLESS = Tag("own_step_sizes", "true where the optimizer finds its own step sizes")
NO_LAYERS = Tag("no_layers", "why the start's excess is not split into layers")
TARGET_SUMMARY = Tag(
    "target_summary", "what the targets are: classes with their counts, or real with a range"
)
NOTE = Tag("theory_note", "what theory could not say, and why")
AFFINE = Tag("scheme_affine", "true where the scheme is an affine map of the features")
CENTRES = Tag("scheme_centres", "true where that map takes the mean to 0")
SHIFTS = Tag("scheme_shifts", "true where it moves the origin")
SCALES = Tag("scheme_scales", "true where it changes lengths")
ROTATES = Tag("scheme_rotates", "true where it mixes features")
LOST_NAMES = Tag("features_lost", "the first features that the scheme makes constant")
UNSCALED_NAMES = Tag("features_unscaled", "the first features too small for the scheme to scale")
FEATURE_FAULTS = ((FEATURES_LOST, LOST_NAMES), (FEATURES_UNSCALED, UNSCALED_NAMES))
MINIMUM_SOURCE = Tag("minimum_source", "where the least cost is from")
MINIMUM_REACHED = Tag("minimum_reached", "true where the least cost was solved for")
AT_INFINITY = Tag("minimum_at_infinity", "true where no weights attain the least cost")
MINIMUM_CASE = Tag("minimum_case", "whether weights attain the least cost: one of `CASES`")
ATTAINED, STRICTLY, PARTLY = "attained", "strictly separable", "partly separable"
UNDECIDED = "not decided"
OF_NETWORK = "of a network"
CASES = {
    ATTAINED: "some weights have the least cost",
    STRICTLY: "some weights classify every point with a margin: the least cost is 0, at infinity",
    PARTLY: "above 0, and at infinity: the weights that separate some classes or points grow",
    UNDECIDED: "not known",
    OF_NETWORK: "not known: the scores are not linear in the weights",
}

# MLflow's own.
PARENT = Tag("mlflow.parentRunId", "the run above it")
RUN_NAME = Tag("mlflow.runName", "its name")
USER = Tag("mlflow.user", "who ran it")
COLOR = Tag("mlflow.runColor", "its colour in charts")
DESCRIPTION = Tag("mlflow.note.content", "its description, in Markdown")
COMMIT = Tag("mlflow.source.git.commit", "the commit of the code")


def normalizer_label(row: Mapping[Any, Any]) -> str:
    """Return the normalizer of a scheme, marked if it was fitted on the test points too."""
    normalizer = str(row["normalizer"])
    return f"{normalizer} (fitted on all)" if row.get(FIT_ON) == "all" else normalizer


def setting(key: str) -> str:
    """Return the column of a setting in a table of runs."""
    return f"{PARAMS}{key}"


def as_typed(value: Any) -> str:
    """Return a recorded value of a setting as a user types it."""
    return {"None": "null", "True": "true", "False": "false"}.get(str(value), str(value))


_DECLARED = {
    metric.key: metric
    for metric in (*globals().values(), *map(of_seed, CROSS_VALIDATED))
    if isinstance(metric, Metric)
}


def label_of(key: str) -> str:
    """Return the label of the key of a metric; any other text unchanged."""
    return _DECLARED[key].label if key in _DECLARED else key


def axis_of(key: str) -> str:
    """Return what the step of MLflow counts for a key; empty for a single number."""
    return _DECLARED[key].axis if key in _DECLARED else ""
