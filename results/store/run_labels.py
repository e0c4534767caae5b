"""What the schemes of an experiment are called: labels that tell each from the others."""

import pandas as pd

from normbench import names
from normbench.results.store.rows import as_rows
from normbench.settings import Role, has_role

OPTIMIZER = names.setting("optimizer")


def labels(table: pd.DataFrame) -> "pd.Series[str]":
    """Return each run's label: the normalizer, and what else tells a scheme from the others.

    table: one row a run, of one experiment or several.
    """
    table = as_set(table)
    base = pd.Series([names.fitted(row) for row in as_rows(table)], table.index, dtype=str)
    found = base.copy()
    schemes = table[table["role"] == names.SCHEME]
    settings = [
        name
        for name in table.columns
        if name.startswith(names.PARAMS)
        and not has_role(name.removeprefix(names.PARAMS), Role.LOCATION)
        and name != names.FIT_ON
        and schemes[name].nunique() > 1  # asked of each group alone, this takes seconds
    ]
    for _, same in schemes.groupby([schemes["experiment"], base[schemes.index]]):
        if len(same) == 1:
            continue
        varied = pd.DataFrame({name: _varies(same, name) for name in settings}, index=same.index)
        own = _with_values(same, base[same.index], varied)
        equal = own.duplicated(keep=False)  # the same job, run again
        again = same.loc[equal, [names.SWEEP_ID.column, "run_id"]]
        found[same.index] = own
        found[again.index] = _with_values(again, own, again.notna())
    return found


def as_set(table: pd.DataFrame) -> pd.DataFrame:
    """Return runs with the start that was meant: a scheme that cannot have it is not set apart."""
    start, stands_in = names.setting("start"), names.STANDS_IN.column
    if start not in table or stands_in not in table:
        return table
    return table.assign(**{start: table[start].mask(table[stands_in] == "true", "same_function")})


def _varies(same: pd.DataFrame, name: str) -> "pd.Series[bool]":
    """Return for each of a scheme's rows whether a setting tells it apart from the others.

    An option, such as `optimizer.epsilon`, does so among the rows of its own choice alone; any
    other setting among those of one optimizer, which can have its own (`${per_optimizer:...}`).
    """
    known = same[name].notna()
    choice = next((one for one in (name.rpartition(".")[0], OPTIMIZER) if one in same), name)
    if same[name].nunique() < 2:  # a job that failed does not know all of its settings
        return known & False
    if choice == name:
        return known
    return known & (same.groupby(choice)[name].transform("nunique") > 1)


def _with_values(
    rows: pd.DataFrame, labels: "pd.Series[str]", shown: pd.DataFrame
) -> "pd.Series[str]":
    """Return labels with the values of the columns that are shown, a mask of each row's own."""
    columns = [name for name in shown if shown[name].any()]
    found = {}
    for index, row in rows[columns].iterrows():
        extra = [
            f"{_short(name)}={names.typed(row[name])}" for name in columns if shown.loc[index, name]
        ]
        found[index] = ", ".join([labels[index], *extra])
    return pd.Series(found, dtype=str)


def _short(name: str) -> str:
    """Return a setting's name as a label has it: that of a normalizer's option alone."""
    return name.removeprefix(names.PARAMS).removeprefix(names.TAGS).removeprefix("normalizer.")
