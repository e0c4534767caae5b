"""Synonyms of settings and options in the field, and what to type here instead."""

import re
import shlex
from collections.abc import Sequence

from normbench.datasets.values import in_python, quote_value, spell_setting

# The synonyms of each setting, in lower-case letters and digits.
SETTINGS: dict[str, str] = {
    "step_sizes": "lr learningrate learningrates eta alpha step stepsize steps rate gamma",
    "iterations": "epochs epoch nepochs numepochs niter niters numiter maxiter maxiterations "
    "niterations numiterations",
    "normalizer": "normalizers normaliser scaler scalers scaling scheme schemes normalization "
    "normalisation preprocessing preprocessor transformer transform whitening",
    "cost": "loss lossfunction losses objective criterion costfunction costs",
    "dataset": "data datasets x",
    "model": "net network architecture mlp nn",
    "model.hidden": "hiddenlayers hiddensizes hiddenlayersizes units layers width",
    "model.activation": "nonlinearity act",
    "optimizer": "opt optim optimiser optimizers solver method algorithm",
    "step_schedule": "schedule scheduler lrschedule lrscheduler stepdecay lrdecay",
    "cost.l2": "weightdecay reg regularization regularisation lambda lam penalty",
    "dataset.test_fraction": "testsize testsplit test validation valsize validationsplit holdout",
    "dataset.folds": "cv nfolds kfold kfolds nsplits",
    "dataset.split_seed": "splits splitseeds",
    "dataset.points": "nsamples numsamples samples subsample trainsize npoints",
    "dataset.path": "file filename csv",
    "seed": "randomstate randomseed rng",
    "starts": "restarts nstarts runs",
    "batch": "batchsize bs minibatch minibatches minibatchsize batches",
    "batch_order": "shuffle order",
    "start": "init initialization initialisation w0 weights",
    "precision": "dtype",
    "hydra.launcher.n_jobs": "njobs workers processes",
    "hydra.sweep.dir": "out output outputdir outdir folder",
    "normalizer.components": "ncomponents",
    "normalizer.ridge": "eps epsilon jitter",
}
# The synonyms of each option, by group.
OPTIONS: dict[str, dict[str, str]] = {
    "normalizer": {
        "standard": "zscore zscores zscoring standardscaler standardize standardise standardized "
        "standardised standardization standardisation scale scaled scaler std normal "
        "batchnorm",
        "identity": "none no raw original unscaled passthrough noop",
        "centre": "center centered centred centering centring mean demean meancentering",
        "minmax": "minmaxscaler minmaxscaling rescale",
        "maxabs": "maxabsscaler",
        "robust": "robustscaler median",
        "quantile": "quantiletransformer rank ranks",
        "power": "powertransformer yeojohnson boxcox",
        "contrast": "perimage persample contrastnormalization",
        "unit_norm": "normalizer normalize normalise l2norm unitnormalize",
        "pca_sphere": "whitening whiten whitened white whitener sphering sphered pcawhitening "
        "pcawhiten",
        "zca_sphere": "zca zcawhitening zcawhiten mahalanobis",
        "cholesky": "choleskywhitening",
        "pca": "pcarotation principalcomponents karhunenloeve",
        "random_rotation": "rotation rotate",
        "chain": "pipeline",
    },
    "cost": {
        "softmax": "logistic logisticregression logloss logistloss logit bce binarycrossentropy "
        "crossentropy nll sigmoid",
        "multiclass_softmax": "categoricalcrossentropy multinomial multiclasscrossentropy",
        "least_squares": "mse squarederror squaredloss meansquarederror ols rss rmse l2 "
        "linearregression leastsquare",
        "least_absolute_deviations": "mae absoluteerror meanabsoluteerror l1 lad",
        "squared_margin": "squaredhinge hingesquared",
    },
    "model": {
        "linear": "logistic glm perceptron",
        "mlp": "multilayerperceptron network neuralnetwork net nn dnn fullyconnected dense "
        "feedforward",
    },
    "optimizer": {
        "gradient_descent": "gd sgd vanilla plain batch steepestdescent gradientdescend "
        "stochasticgradientdescent",
        "momentum": "heavyball polyak",
        "nesterov": "nag nesterovmomentum",
        "line_search": "backtracking armijo",
        "lbfgs": "bfgs lbfgsb",
        "newton": "newtonraphson newtonsmethod irls",
        "sign": "signsgd signgd",
        "normalized": "normalizedgradient normalizedgd",
        "diminishing": "decay decaying",
    },
    "dataset": {
        "breast_cancer": "cancer breast wdbc wisconsin loadbreastcancer",
        "iris": "loadiris",
        "digits": "loaddigits",
        "wine": "loadwine",
        "diabetes": "loaddiabetes",
        "mnist": "mnist784",
        "two_moons": "moons makemoons twomoons",
        "gaussian": "makeclassification makeblobs normal random",
    },
}
# The synonyms of the commands of `normbench results`, and of their flags.
COMMAND_SYNONYMS = {
    "figure": "plot plots draw graph graphs chart fig figures",
    "list": "ls",
    "show": "display print view last latest summary",
    "report": "html open browser",
    "delete": "rm remove del",
    "dashboard": "ui server gui web mlflow",
}
FLAG_SYNONYMS = {
    "--out": "o output outdir outputdir dir folder",
    "--store": "db uri database trackinguri tracking",
    "--format": "f fmt type",
    "--steps": "stepsizes lr",
    "--scheme": "normalizer schemes",
    "--yes": "y force",
}
# Flags that would open a page: no command does.
OPENING_FLAGS = ("--open", "--browser", "--view", "--show")
# Words for all options of a group, and the groups of which any two can be compared.
ALL_WORDS, WHOLE_GROUPS = (
    ("all", "every", "everything", "any", "*"),
    ("normalizer", "optimizer", "model"),
)
# Notes on an option that was named by a synonym.
NOTES = {
    "softmax": " for two classes, and multiclass_softmax for more",
    "gradient_descent": ": every step takes all points, or batch=32 of them",
    "pca_sphere": ", or zca_sphere, which turns the axes back",
}
# The dataset option that reads a file, by its ending, and the setting of its targets.
FILES = {"csv": "csv", "tsv": "csv", "txt": "csv", "data": "csv", "dat": "csv"}
FILES |= {"parquet": "parquet", "npz": "npz", "npy": "npy"}
FILES |= {"svmlight": "svmlight", "libsvm": "svmlight"}
TARGET_SETTINGS = {
    "csv": " dataset.target=-1",
    "parquet": " dataset.target=-1",
    "npy": " dataset.targets=FILE",
}
COMPRESSED = re.compile(r"\.(gz|bz2|xz)$", re.IGNORECASE)
UNREADABLE_FILES = ("xlsx", "xls", "ods", "json", "feather", "arff", "mat", "h5", "hdf5", "pkl")
# A text that neither Hydra's grammar nor the shell reads as something else.
PLAIN_TEXT = re.compile(r"[\w./+:@%-]+", re.ASCII)


def setting_of(name: str) -> str:
    """Return the setting that has a name as a synonym; empty where none has."""
    return _find(name, SETTINGS)


def option_of(group: str, name: str, options: Sequence[str]) -> str:
    """Return the option of a group that a name stands for; empty where there is none.

    It has the same letters and digits, with or without its folder, or the name as a synonym.
    """
    plain = _plain(name)
    equal_options = (
        option
        for option in options
        if plain and plain in (_plain(option), _plain(option.rpartition("/")[2]))
    )
    synonym = _find(name, OPTIONS.get(group, {}))
    return next(equal_options, synonym if synonym in options else "")


def command_of(word: str, arguments: Sequence[str] = ()) -> str:
    """Return the command of `normbench results` that a word stands for, as it is typed.

    Args:
        word: A word that is no such command.
        arguments: The words after it.

    Returns:
        For example `normbench results figure histories`; empty where the word is no synonym.
    """
    command = _find(word, COMMAND_SYNONYMS)
    if command == "figure" and not arguments:
        arguments = ["histories"]
    return shlex.join(["normbench", "results", command, *arguments]) if command else ""


def flag_of(flag: str) -> str:
    """Return the flag of `normbench results` that has a name as a synonym; empty without one."""
    return _find(flag, FLAG_SYNONYMS)


def spell_text(setting: str, text: str) -> str:
    """Return a setting with a text, quoted for Hydra's grammar and the shell where they need it."""
    return shlex.quote(f"{setting}={text if PLAIN_TEXT.fullmatch(text) else quote_value(text)}")


def remedy(group: str, name: str, options: Sequence[str], typed_in: str = "") -> str:
    """Return what to type instead of an option that does not exist.

    Args:
        group: The group.
        name: The name that was typed.
        options: The names of the options of the group.
        typed_in: The setting that names the option, such as `normalizer.schemes`; empty where the
            group itself names it.

    Returns:
        The end of a message whose subject is the name, such as `is called pca_sphere here; type
        normalizer=pca_sphere`; empty where nothing is meant.
    """
    meant = option_of(group, name, options)
    if meant:
        # No note where the name differs from the option only by capitals, dashes or the like.
        note = "" if _plain(meant) == _plain(name) else NOTES.get(meant, "")
        typed = meant if typed_in else spell_setting(group, meant)
        return f"is called {meant} here{note}; type {typed}"
    if name in ALL_WORDS and group in WHOLE_GROUPS and not (typed_in or in_python()):
        return f"is a pattern here; type '{group}=glob(*)'"
    if group == "dataset":
        return file_remedy(name)
    return _class_remedy(name) if group == "normalizer" else ""


def file_remedy(name: str) -> str:
    """Return how to type a file of points, in the form of `remedy`; empty for another name."""
    ending = COMPRESSED.sub("", name).rpartition(".")[2].lower()
    if "." not in name or ending not in (*FILES, *UNREADABLE_FILES):
        return ""
    if ending in UNREADABLE_FILES:
        return "is a file of a kind that is not read; save it as csv, parquet or npz"
    option = FILES[ending]
    target = TARGET_SETTINGS.get(option, "")
    note = ", and -1 is its last column" if target.endswith("-1") else ""
    return f"is a file{note}; type dataset={option} {spell_text('dataset.path', name)}{target}"


def _class_remedy(name: str) -> str:
    """Return how to type a class that is a scheme, in the form of `remedy`."""
    if file_remedy(name) or not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", name):
        return ""
    if in_python():  # schemes are given as objects
        return f"is a class; give an object of it: normalizers=[{name}()]"
    package = name.partition(".")[0]
    allowed = "" if package in ("sklearn", "normbench") else f"'packages=[{package}]' "
    return f"is a class; type {allowed}normalizer=chain 'normalizer.schemes=[{name}]'"


def _find(name: str, table: dict[str, str]) -> str:
    """Return the key of a table that has a name as a synonym; empty where none has."""
    plain = _plain(name)
    return next((key for key, synonyms in table.items() if plain in synonyms.split()), "")


def _plain(name: str) -> str:
    """Return a name in lower-case letters and digits alone."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
