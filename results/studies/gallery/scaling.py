"""The numbers of the studies in `conf/experiment/research` on what is scaled.

They are those of dummies, outliers and targets.
"""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep
from normbench.results.studies.gallery import Array, iterations_to, keyed, step_runs

EPSILON, TARGET_SCHEME = names.setting("optimizer.epsilon"), names.setting("dataset.target_scheme")
# The scheme that divides targets from 25 to 346 by 64, as it is recorded.
OVER_64 = "{'minmax': {'feature_range': [0.390625, 5.40625]}}"


def dummies(sweep: Sweep) -> dict[str, float]:
    """Return the results of three treatments of dummies, by the setting cost.l2.

    TREATMENT: `none`, `centred` or `standardized`. `iterations_TREATMENT_L2`: the iterations to
    1e-2 of the excess, the median over the tables. `errors_TREATMENT_L2`: the misclassified test
    points, the sum over the tables. `spread_L2`: the relative difference of the least costs between
    the treatments, the largest over the tables. `centring_L2`: the same of `none` and `centred`
    alone.
    """
    rows = sweep.of_role(names.SCHEME)
    # The scheme is a chain; its text tells what is done to the columns of dummies.
    schemes = rows[names.setting("normalizer.schemes")].astype(str)
    treatments = ["none", "centred"]
    rows = rows.assign(
        treatment=np.select(
            [schemes.str.contains("centre"), schemes.str.contains("numeric")],
            treatments[::-1],  # `centred` for the first condition, else `none` for the second
            "standardized",
        ),
        l2=rows[names.setting("cost.l2")].astype(float).map("{:g}".format),
    )
    jobs = rows.groupby(["treatment", "l2"])
    numbers = keyed(jobs[names.reached("1e-2").column].median(), "iterations_{}_{}")
    numbers |= keyed(jobs[names.FINAL_TEST_MISCLASSIFICATIONS.column].sum(), "errors_{}_{}")
    index = ["l2", names.setting("dataset.seed")]
    minima = rows.pivot(index=index, columns="treatment", values=names.MINIMUM.column)
    for name, columns in (("spread", list(minima)), ("centring", treatments)):
        spread = minima[columns].max(axis=1) / minima[columns].min(axis=1) - 1
        numbers |= keyed(spread.groupby(level=0).max(), name + "_{}")
    return numbers


OUTLIERS_SETTING, OUTLIER_SHARE = (
    names.setting("dataset.outliers"),
    names.setting("dataset.outlier_share"),
)


def outliers(sweep: Sweep) -> dict[str, float]:
    """Return the results of schemes by unit and share of the outliers, medians over the tables.

    Keys end in `UNIT_SHARE_SCHEME`, such as `cells_0.03_robust`. `condition_`: the condition
    number. `test_error_`: the share of test points that are misclassified. `cost_`: the final
    training cost, `least_` the least one. `iterations_`: to 1e-1 of the excess, which is one
    absolute cost under standard and robust, infinite where it is not reached.
    `larger_condition_UNIT_SHARE`: the number of tables in which robust has a larger condition
    number than standard; `fewer_iterations_UNIT_SHARE`: in which it takes fewer iterations.
    `lower_error_UNIT_SHARE`: in which quantile has a lower error than robust and than standard.
    `overtaking_UNIT_SHARE`: the iterations after which quantile is below the least cost of
    standard.
    """
    rows = sweep.of_role(names.SCHEME)
    # `case` is UNIT_SHARE. A target that is not reached has no recorded iterations.
    rows = rows.assign(
        case=rows[OUTLIERS_SETTING] + "_" + rows[OUTLIER_SHARE].astype(float).map("{:g}".format),
        condition=rows[names.CONDITION.column],
        test_error=rows[names.FINAL_TEST_MISCLASSIFICATIONS.column] / rows["test_points"],
        cost=rows[names.FINAL_COST.column],
        least=rows[names.MINIMUM.column],
        iterations=rows[names.reached("1e-1").column].fillna(np.inf),
    )
    numbers: dict[str, float] = {}
    index = ["case", names.setting("dataset.seed")]
    by_quantity = {}
    for quantity in ("condition", "test_error", "cost", "least", "iterations"):
        table = by_quantity[quantity] = rows.pivot(
            index=index, columns="normalizer", values=quantity
        )
        numbers |= keyed(table.groupby(level=0).median().stack(), quantity + "_{}_{}")
    robust, standard = "robust", "standard"
    # Comparisons table by table: True where the claim holds.
    condition, error, iterations = (
        by_quantity[key] for key in ("condition", "test_error", "iterations")
    )
    counted = {
        "larger_condition": condition[robust] > condition[standard],
        "fewer_iterations": iterations[robust] < iterations[standard],
        "lower_error": error["quantile"] < error[[robust, standard]].min(axis=1),
    }
    for name, holds in counted.items():
        numbers |= keyed(holds.groupby(level=0).sum(), name + "_{}")
    least_costs = by_quantity["least"][standard]
    overtaking: dict[str, list[float]] = {}
    quantile = rows[rows["normalizer"] == "quantile"].set_index("run_id")
    for run_id, history in sweep.histories(quantile.reset_index()).groupby("run_id"):
        case, seed = (quantile.loc[run_id, key] for key in index)
        costs = history[names.TRAIN_COST.key].to_numpy()
        overtaking.setdefault(case, []).append(iterations_to(costs, least_costs[case, seed]))
    return numbers | {
        f"overtaking_{case}": float(np.median(each)) for case, each in overtaking.items()
    }


def target_scaling(sweep: Sweep) -> dict[str, float]:
    """Return what schemes of the target change, from the costs of every iteration.

    `scaled_gap`: the largest difference, between the raw target and the target over its maximum, of
    the share of the excess that is left, relative where that share is above 1. `bias_share`: the
    share of the starting excess that centring removes. `iterations_SCHEME`: the iterations to 1e-3
    of the excess.
    `iterations_absolute`: the iterations of the centred target to 1e-3 of the excess of the raw
    one. `own_units_gap`: the relative spread of the final costs in the target's own units.
    `adam_gap`: the largest `|4096 cost / other cost - 1|` under Adam, where `cost` is that of the
    target over 64, and `other cost` that of the raw target with 64 times the step size and epsilon.
    `adam_TARGET`: how many times fewer iterations Adam takes to a share TARGET of the excess for
    the target over 64 than for the raw one, at equal settings.
    """
    jobs = sweep.of_role(names.SCHEME).set_index("run_id")
    costs = _costs(sweep)  # by optimizer and scheme; of Adam, step size and epsilon, too
    minima = jobs.groupby(TARGET_SCHEME)[names.MINIMUM.column].min()
    excesses = {key: cost - minima[key[1]] for key, cost in costs.items()}
    plain = {scheme: excesses["gradient_descent", scheme] for scheme in minima.index}
    shares = {scheme: excess / excess[0] for scheme, excess in plain.items()}
    gap = np.abs(shares["identity"] - shares["maxabs"]) / np.maximum(1, shares["identity"])
    raw_goal = float(plain["identity"][0]) * 1e-3
    own_costs = jobs[jobs[names.OPTIMIZER.column] == "gradient_descent"][names.OWN_COST.column]
    # Adam on the raw and on the divided target at equal settings, and on the raw target with 64
    # times the step size and epsilon.
    raw, over_64 = (("adam", scheme, "0.03", "1e-08") for scheme in ("identity", OVER_64))
    larger = costs["adam", "identity", "1.92", "6.4e-07"]
    # The cost is quadratic in the target: that of the target over 64 is 64^2 times smaller.
    return {
        "scaled_gap": float(gap.max()),
        "bias_share": float(1 - plain["centre"][0] / plain["identity"][0]),
        **{f"iterations_{scheme}": iterations_to(share, 1e-3) for scheme, share in shares.items()},
        "iterations_absolute": iterations_to(plain["centre"], raw_goal),
        "own_units_gap": float(own_costs.max() / own_costs.min() - 1),
        "adam_gap": float(np.abs(64**2 * costs[over_64] / larger - 1).max()),
        **{
            f"adam_{name}": iterations_to(excesses[raw], share * excesses[raw][0])
            / iterations_to(excesses[over_64], share * excesses[over_64][0])
            for name, share in names.TARGETS.items()
        },
    }


def _costs(sweep: Sweep) -> dict[tuple[str, ...], Array]:
    """Return the costs of each run, one an iteration, by optimizer and scheme of the target.

    The keys of Adam's runs have the step size and epsilon too, as texts.
    """
    costs: dict[tuple[str, ...], Array] = {}
    for job, step_size, history in step_runs(sweep):
        key = [job[names.OPTIMIZER.column], job[TARGET_SCHEME]]
        if key[0] == "adam":  # it was run with several of them
            key += [f"{step_size:g}", job[EPSILON]]
        costs[tuple(key)] = history
    return costs
