"""Labels that distinguish the schemes of an experiment from one another."""

import re

import pandas as pd

from normbench import names
from normbench.results.store.rows import as_rows
from normbench.settings import Role, has_role

OPTIMIZER_SETTING = names.setting("optimizer")
EQUAL_NUMBERS = re.compile(r"(?<![\w.+-])([\w.+-]+)(?:, *\1(?![\w.+-])){4,}")  # five and more


def labels(table: pd.DataFrame) -> "pd.Series[str]":
    """Return each run's label: the normalizer, and the settings in which its schemes differ.

    Schemes of one experiment and normalizer are told apart by the values of these settings, such as
    `chain, ridge=0.1`. A job that was run again has its sweep and its run id in the label.

    Args:
        table: One row a run, of one experiment or several.

    Returns:
        The labels, indexed like the table. Those of sweep and step runs name the normalizer alone.
    """
    table = with_requested_start(table)
    # Labels of the normalizer alone.
    base = pd.Series(
        [names.normalizer_label(row) for row in as_rows(table)], table.index, dtype=str
    )
    run_labels = base.copy()
    schemes = table[table["role"] == names.SCHEME]
    # Settings that a label may have. `FIT_ON` is in `normalizer_label`; locations change no number.
    settings = [
        name
        for name in table.columns
        if name.startswith(names.PARAMS)
        and not has_role(name.removeprefix(names.PARAMS), Role.LOCATION)
        and name != names.FIT_ON
        and schemes[name].nunique() > 1  # this check within each group would take seconds
    ]
    for _, same_normalizer in schemes.groupby([schemes["experiment"], base[schemes.index]]):
        if len(same_normalizer) == 1:  # the normalizer alone is a distinct label
            continue
        # By setting, whether it distinguishes a row.
        distinguishes = pd.DataFrame(
            {name: _varies(same_normalizer, name) for name in settings}, index=same_normalizer.index
        )
        group_labels = _with_values(same_normalizer, base[same_normalizer.index], distinguishes)
        duplicates = group_labels.duplicated(keep=False)  # the same job, run again
        rerun_columns = same_normalizer.loc[duplicates, [names.SWEEP_ID.column, "run_id"]]
        run_labels[same_normalizer.index] = group_labels
        run_labels[rerun_columns.index] = _with_values(
            rerun_columns, group_labels, rerun_columns.notna()
        )
    return run_labels


def with_requested_start(table: pd.DataFrame) -> pd.DataFrame:
    """Return runs with the requested start where a scheme had to replace it by another.

    Without this, the schemes of one command would differ in a setting that the user did not vary.

    Args:
        table: One row a run.

    Returns:
        A table whose start is `same_function` where the tag `start_stands_in` is true; the table
        itself where it has no such column.
    """
    start, stands_in = names.setting("start"), names.STANDS_IN.column
    if start not in table or stands_in not in table:
        return table
    return table.assign(**{start: table[start].mask(table[stands_in] == "true", "same_function")})


def _varies(same_normalizer: pd.DataFrame, setting: str) -> "pd.Series[bool]":
    """Return for each row of one normalizer whether a setting distinguishes it from the others.

    An option, such as `optimizer.epsilon`, is compared among the rows of the same choice. Any other
    setting is compared among the rows of the same optimizer, since its value may depend on the
    optimizer (`${per_optimizer:...}`).

    Args:
        same_normalizer: The rows of one experiment and normalizer.
        setting: The column of the setting.

    Returns:
        One value a row; false where the setting is not recorded.
    """
    is_recorded = same_normalizer[setting].notna()
    # The column of the choice within which the setting is compared; the setting itself for none.
    choice = next(
        (
            column
            for column in (setting.rpartition(".")[0], OPTIMIZER_SETTING)
            if column in same_normalizer
        ),
        setting,
    )
    if same_normalizer[setting].nunique() < 2:  # a failed job has not recorded all of its settings
        return is_recorded & False  # false for every row
    if choice == setting:  # all rows are compared, and the check above has found two values
        return is_recorded
    return is_recorded & (same_normalizer.groupby(choice)[setting].transform("nunique") > 1)


def _with_values(
    rows: pd.DataFrame, labels: "pd.Series[str]", mask: pd.DataFrame
) -> "pd.Series[str]":
    """Return labels extended by `, name=value` for those columns that a row's mask selects.

    Args:
        rows: One row a run.
        labels: The label of each row.
        mask: By column of `rows`, whether the value of a row belongs into its label.
    """
    columns = [name for name in mask if mask[name].any()]
    extended_labels = {}
    for index, row in rows[columns].iterrows():
        assignments = [
            f"{_setting_name(name)}={_count_equal_numbers(names.as_typed(row[name]))}"
            for name in columns
            if mask.loc[index, name]
        ]
        extended_labels[index] = ", ".join([labels[index], *assignments])
    return pd.Series(extended_labels, dtype=str)


def _count_equal_numbers(value: str) -> str:
    """Return a value in which five and more equal numbers are counted: `[200 x 50, 10]`."""
    return EQUAL_NUMBERS.sub(lambda equal: f"{equal[0].count(',') + 1} x {equal[1]}", value)


def _setting_name(name: str) -> str:
    """Return a column's setting or tag without prefix; a normalizer's option by its own name."""
    return name.removeprefix(names.PARAMS).removeprefix(names.TAGS).removeprefix("normalizer.")
