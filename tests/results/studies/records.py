"""Records of studies, made by hand: what a study's numbers are computed from, without a store."""

import pandas as pd

from normbench import names

COST = names.TRAIN_COST.key


class Records:
    """What a study asks of a sweep.

    jobs, steps: the rows of its scheme and step runs. arrays: by record and label. histories: by
    run and step size, the costs of each iteration, or several metrics by their keys. series: by
    run, the values by step.
    """

    def __init__(self, jobs, *, steps=(), arrays=None, histories=None, series=None):
        self._rows = {names.SCHEME: pd.DataFrame(jobs), names.STEP: pd.DataFrame(steps)}
        self._arrays, self._histories = arrays or {}, histories or {}
        self._series = series or {}

    @property
    def experiments(self):
        return list(dict.fromkeys(self._rows[names.SCHEME]["experiment"]))

    def of_role(self, role, experiment=None):
        rows = self._rows[role]
        return rows if experiment is None else rows[rows["experiment"] == experiment]

    def arrays(self, rows, record):
        """Return a record's arrays by label; those of an experiment, where it has its own."""
        by_label = self._arrays.get(record, {})
        found = {}
        for _, row in rows.iterrows():
            for key in ((row.get("experiment"), row["label"]), row["label"]):
                if key in by_label:
                    found.setdefault(row["label"], by_label[key])
        return found

    def histories(self, rows, metrics=(COST,)):
        frames = []
        of_run = rows.set_index("run_id")
        for (run_id, size), values in self._histories.items():
            if run_id not in of_run.index:
                continue
            columns = values if isinstance(values, dict) else {COST: values}
            frame = pd.DataFrame({key: list(column) for key, column in columns.items()})
            frame.insert(0, "iteration", range(len(frame)))
            normalizer = of_run.loc[run_id].get("normalizer", "")
            frames.append(frame.assign(run_id=run_id, step_size=size, normalizer=normalizer))
        return pd.concat(frames, ignore_index=True)

    def series(self, run_id, metric):
        assert metric == names.SHARPNESS.key
        return self._series.get(run_id, {})


def setting(**values):
    """Return the columns of settings; two underscores stand for a dot."""
    return {names.setting(key.replace("__", ".")): text for key, text in values.items()}
