"""Synonyms of settings and options in the field, and what to type here instead."""

import re
from collections.abc import Sequence

from normbench.datasets.values import spell_setting, table_word

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
# Notes on an option that was named by a synonym.
NOTES = {
    "softmax": " for two classes, and multiclass_softmax for more",
    "gradient_descent": ": every step takes all points, or batch=32 of them",
    "pca_sphere": ", or zca_sphere, which turns the axes back",
}
# The dataset option that reads a file, by its ending, and the setting of its targets.
FILES = {"csv": "csv", "tsv": "csv", "txt": "csv", "parquet": "parquet", "npz": "npz", "npy": "npy"}
FILES |= {"svmlight": "svmlight", "libsvm": "svmlight"}
TARGET_SETTINGS = {
    "csv": " dataset.target=COLUMN",
    "parquet": " dataset.target=COLUMN",
    "npy": " dataset.targets=FILE",
    "npz": "",
    "svmlight": "",
}


def setting_of(name: str) -> str:
    """Return the setting that has a name as a synonym; empty where none has."""
    return _find(name, SETTINGS)


def remedy(group: str, name: str, options: Sequence[str], typed_in: str = "") -> str:
    """Return what to type instead of an option that does not exist.

    An option is meant if it has the same letters and digits, or the name as a synonym.

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
    plain = _plain(name)
    equal_options = [option for option in options if _plain(option) == plain]
    meant = equal_options[0] if equal_options else _find(name, OPTIONS.get(group, {}))
    if meant in options:
        # No note where the name differs from the option only by capitals, dashes or the like.
        note = "" if equal_options else NOTES.get(meant, "")
        typed = meant if typed_in else spell_setting(group, meant)
        return f"is called {meant} here{note}; type {typed}"
    return _user_code_remedy(group, name)


def _user_code_remedy(group: str, name: str) -> str:
    """Return how to type a file or a class of the user, in the form of `remedy`.

    It is empty for a name that is neither a file of points nor the dotted path of a scheme.
    """
    ending = name.rpartition(".")[2].lower()
    if group == "dataset" and "." in name and ending in FILES:
        option = FILES[ending]
        return f"is a file; type dataset={option} dataset.path={name}{TARGET_SETTINGS[option]}"
    dotted = re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", name)
    if group != "normalizer" or not dotted:
        return ""
    if table_word() == "frame":  # called from Python, where schemes are given as objects
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
