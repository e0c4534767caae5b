"""The one reader of MLflow: runs in, tidy tables out."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

HISTORIES = ("train/cost", "train/misclassifications", "test/cost", "test/misclassifications")
DEFAULT_STORE = "sqlite:///mlflow.db"
SQLITE = "sqlite:///"


@dataclass(frozen=True)
class Sweep:
    """One sweep as it stands in a store.

    `runs` holds one row a run: run_id, experiment, role, name, status, seconds, `tags.*`,
    `params.*`, and the last value of each metric under `metrics.*`.
    """

    store: str
    sweep_id: str
    runs: pd.DataFrame

    def of_role(self, role: str, experiment: str | None = None) -> pd.DataFrame:
        """Return the rows of one role, in one experiment or in all."""
        rows = self.runs[self.runs["role"] == role]
        return rows if experiment is None else rows[rows["experiment"] == experiment]

    @property
    def experiments(self) -> list[str]:
        """The names of the sweep's experiments, in the order of their sweep runs."""
        return list(dict.fromkeys(self.of_role("sweep")["experiment"]))

    @cached_property
    def _client(self) -> Any:
        return connect(self.store)

    def histories(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Return one row a run and iteration: run_id, label, normalizer, iteration, metrics."""
        frames = []
        for row in runs.itertuples():
            columns = {}
            for metric in HISTORIES:
                points = self._client.get_metric_history(row.run_id, metric)
                if points:
                    columns[metric] = pd.Series({point.step: point.value for point in points})
            if not columns:
                continue
            frame = pd.DataFrame(columns).rename_axis("iteration").reset_index()
            frame.insert(0, "run_id", row.run_id)
            frame.insert(1, "normalizer", row.normalizer)
            frame.insert(2, "label", row.label)
            frames.append(frame)
        if not frames:
            return pd.DataFrame(columns=["run_id", "normalizer", "label", "iteration"])
        return pd.concat(frames, ignore_index=True)


def connect(store: str) -> Any:
    """Return MLflow's client for a store that exists; raises LookupError where it does not."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    store = _absolute(store)
    if store.startswith(SQLITE) and not Path(store.removeprefix(SQLITE)).is_file():
        raise LookupError(
            f"--store {store}: there is no such database; "
            "run python -m harness there first, or name another store"
        )
    import logging

    from mlflow import MlflowClient

    logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    return MlflowClient(tracking_uri=store)


def _absolute(store: str) -> str:
    if not store.startswith(SQLITE):
        return store
    return f"{SQLITE}{Path(store.removeprefix(SQLITE)).absolute()}"


def last_sweep_id(store: str) -> str:
    """Return the id of the sweep that started last; raises LookupError where there is none."""
    client = connect(store)
    found = _search(client, "tags.role = 'sweep'", most=1)
    if not found:
        raise LookupError(f"--store {store}: holds no sweep; run python -m harness first")
    return str(found[0].data.tags["sweep_id"])


def load(store: str, sweep_id: str) -> Sweep:
    """Return a sweep; raises LookupError where the store has none of that id."""
    client = connect(store)
    names = {found.experiment_id: found.name for found in client.search_experiments()}
    runs = _search(client, f"tags.sweep_id = '{sweep_id}'")
    if not runs:
        raise LookupError(f"sweep {sweep_id}: is not in {store}; python -m results list shows them")
    rows = [_row(run, names[run.info.experiment_id]) for run in runs]
    table = pd.DataFrame(rows).sort_values(["started", "run_id"], ignore_index=True)
    return Sweep(_absolute(store), sweep_id, _labelled(table))


def sweeps(store: str) -> pd.DataFrame:
    """Return one row a sweep and experiment, the latest first: sweep, experiment, jobs, command."""
    client = connect(store)
    names = {found.experiment_id: found.name for found in client.search_experiments()}
    rows = [
        {
            "sweep": run.data.tags["sweep_id"],
            "experiment": names[run.info.experiment_id],
            "status": run.info.status,
            "jobs": run.data.tags.get("jobs", ""),
            "command": run.data.tags.get("command", ""),
        }
        for run in _search(client, "tags.role = 'sweep'")
    ]
    return pd.DataFrame(rows, columns=["sweep", "experiment", "status", "jobs", "command"])


def _search(client: Any, query: str, most: int | None = None) -> list[Any]:
    ids = [found.experiment_id for found in client.search_experiments()]
    runs: list[Any] = []
    token = None
    while True:
        page = client.search_runs(
            ids,
            query,
            max_results=min(most or 1000, 1000),
            order_by=["attributes.start_time DESC"],
            page_token=token,
        )
        runs += page
        token = page.token
        if not token or (most and len(runs) >= most):
            return runs[:most]


def _row(run: Any, experiment: str) -> dict[str, Any]:
    tags = run.data.tags
    ended = run.info.end_time or run.info.start_time
    return {
        "run_id": run.info.run_id,
        "parent": tags.get("mlflow.parentRunId", ""),
        "experiment": experiment,
        "experiment_id": run.info.experiment_id,
        "role": tags.get("role", ""),
        "name": run.info.run_name,
        "status": run.info.status,
        "started": run.info.start_time,
        "seconds": (ended - run.info.start_time) / 1000,
        "normalizer": tags.get("normalizer", ""),
        "verdict": tags.get("verdict", ""),
        "reason": tags.get("reason", ""),
        **{f"tags.{key}": value for key, value in tags.items()},
        **{f"params.{key}": value for key, value in run.data.params.items()},
        **{f"metrics.{key}": value for key, value in run.data.metrics.items()},
    }


def _labelled(table: pd.DataFrame) -> pd.DataFrame:
    """Add a label: the normalizer, and what else tells the schemes of an experiment apart."""
    table["label"] = table["normalizer"]
    schemes = table[table["role"] == "scheme"]
    params = [name for name in table.columns if name.startswith("params.")]
    for _, group in schemes.groupby("experiment"):
        for _, same in group.groupby("normalizer"):
            differing = [name for name in params if same[name].nunique(dropna=False) > 1]
            for index, row in same.iterrows():
                extra = [f"{name.removeprefix('params.')}={row[name]}" for name in differing]
                table.loc[index, "label"] = ", ".join([row["normalizer"], *extra])
    labels = table.set_index("run_id")["label"]
    steps = table["role"] == "step"
    table.loc[steps, "label"] = table.loc[steps, "parent"].map(labels)
    return table
