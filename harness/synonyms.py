"""What the field calls a setting or an option that has another name here, and what to type."""

import re
from collections.abc import Sequence

from normbench.datasets.values import name_source, spell_setting

# By the setting: what it is called elsewhere, in small letters and digits alone.
SETTINGS: dict[str, str] = {
    "step_sizes": "lr learningrate learningrates eta alpha step stepsize steps rate gamma",
    "iterations": "epochs epoch nepochs numepochs niter niters numiter maxiter maxiterations "
    "niterations numiterations",
    "normalizer": "normalizers normaliser scaler scalers scaling scheme schemes normalization "
    "normalisation preprocessing preprocessor transformer transform whitening",
    "cost": "loss lossfunction losses objective criterion costfunction costs",
    "dataset": "data datasets x",
    "optimizer": "opt optim optimiser optimizers solver method algorithm",
    "cost.l2": "weightdecay reg regularization regularisation lambda lam penalty",
    "dataset.test_fraction": "testsize testsplit test validation valsize validationsplit holdout",
    "dataset.folds": "cv nfolds kfold kfolds nsplits",
    "dataset.split_seed": "splits splitseeds",
    "dataset.points": "nsamples numsamples samples subsample trainsize npoints",
    "dataset.path": "file filename csv",
    "seed": "randomstate randomseed rng",
    "starts": "restarts nstarts runs",
    "start": "init initialization initialisation w0 weights",
    "precision": "dtype",
    "hydra.launcher.n_jobs": "njobs workers processes",
    "hydra.sweep.dir": "out output outputdir outdir folder",
    "normalizer.components": "ncomponents",
    "normalizer.ridge": "eps epsilon jitter",
}
# By the group and the option: what the option is called elsewhere.
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
        "gaussian": "makeclassification makeblobs normal random",
    },
}
# What is to be known of an option that is meant by another name.
NOTES = {
    "softmax": " for two classes, and multiclass_softmax for more",
    "gradient_descent": ": every step takes all points, in no batches",
    "pca_sphere": ", or zca_sphere, which turns the axes back",
}
# The choice that reads a file, by its ending, and how the choice is told the targets.
FILES = {"csv": "csv", "tsv": "csv", "txt": "csv", "parquet": "parquet", "npz": "npz", "npy": "npy"}
TARGETS = {
    "csv": " dataset.target=COLUMN",
    "parquet": " dataset.target=COLUMN",
    "npy": " dataset.targets=FILE",
    "npz": "",
}


def setting_of(name: str) -> str:
    """Return the setting that goes by another name elsewhere; empty where none does."""
    return _find(name, SETTINGS)


def remedy(group: str, name: str, options: Sequence[str]) -> str:
    """Return what to type instead of an option that does not exist; empty where nothing is near.

    It begins with what the name is called here, for a name of the field's.
    """
    plain = _plain(name)
    same = [option for option in options if _plain(option) == plain]
    meant = same[0] if same else _find(name, OPTIONS.get(group, {}))
    if meant in options:
        note = "" if same else NOTES.get(meant, "")
        return f"is called {meant} here{note}; type {spell_setting(group, meant)}"
    return _of_own_code(group, name)


def _of_own_code(group: str, name: str) -> str:
    """Return how a file or a class of the user's own is typed; empty for any other name."""
    ending = name.rpartition(".")[2].lower()
    if group == "dataset" and "." in name and ending in FILES:
        kind = FILES[ending]
        return f"is a file; type dataset={kind} dataset.path={name}{TARGETS[kind]}"
    dotted = re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", name)
    if group != "normalizer" or not dotted:
        return ""
    if name_source() == "frame":
        return f"is a class; give an object of it: normalizers=[{name}()]"
    package = name.partition(".")[0]
    allowed = "" if package in ("sklearn", "normbench") else f"'packages=[{package}]' "
    return f"is a class; type {allowed}normalizer=chain 'normalizer.schemes=[{name}]'"


def _find(name: str, table: dict[str, str]) -> str:
    """Return the key of a table whose synonyms a name is among; empty where it is in none."""
    plain = _plain(name)
    return next((key for key, others in table.items() if plain in others.split()), "")


def _plain(name: str) -> str:
    """Return a name in small letters and digits alone."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
