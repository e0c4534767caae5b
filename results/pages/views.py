"""MLflow's page of a comparison: its addresses, its saved views, and the colours of its runs.

`views.json` holds a saved view in MLflow's undocumented format, which was read from version 3.17;
MLflow does not open a view that it does not understand, and shows its own charts.
"""

import base64
import json
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import resources
from typing import Any
from urllib.parse import quote

from normbench import names
from normbench.results.compare.merging import every_job
from normbench.results.store.looks import looks
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

VIEW = "mlflow.sharedViewState."  # the prefix of an experiment's tag that holds a saved view
MAX_VIEW_LENGTH = 5000  # characters that MLflow keeps of an experiment's tag


@dataclass(frozen=True)
class Page:
    """The addresses of a comparison in one experiment, without that of the server.

    Attributes:
        comparison_id: The id of the comparison.
        experiment_id: The id of the experiment in MLflow.
        run_id: The id of the comparison's own run, which has the figures and the report.
    """

    comparison_id: str
    experiment_id: str
    run_id: str

    def view_id(self, role: str = names.SCHEME) -> str:
        """Return the id of the saved view of the runs of a role, `scheme` or `step`."""
        return self.comparison_id if role == names.SCHEME else f"{self.comparison_id}-steps"

    def charts(self, role: str = names.SCHEME) -> str:
        """Return the address of the charts of the runs of a role, `scheme` or `step`."""
        return (
            f"#/experiments/{quote(self.experiment_id)}/runs?workflowType=machine_learning"
            f"&compareRunsMode=CHART&viewStateShareKey={quote(self.view_id(role))}"
        )

    @property
    def report(self) -> str:
        """The address of the report."""
        return (
            f"#/experiments/{quote(self.experiment_id)}/runs/{self.run_id}/artifacts/report.html"
            "?workflowType=machine_learning"
        )

    def file(self, name: str) -> str:
        """Return the address of a file of the comparison, relative to MLflow's page."""
        return f"get-artifact?path={quote(name)}&run_uuid={self.run_id}"


def tags(sweep: Sweep, experiment: str, page: Page) -> dict[str, str]:
    """Return the experiment's tags that save the views of its scheme runs and its step runs.

    Args:
        sweep: The runs.
        experiment: The name of the experiment.
        page: The addresses, by which the views are opened.

    Returns:
        The tags; a view that is longer than MLflow stores is left out.
    """
    now = int(time.time() * 1000)
    view_tags = {}
    for role, title in ((names.SCHEME, "schemes"), (names.STEP, "every step")):
        text = json.dumps(state(sweep, experiment, page.comparison_id, role), sort_keys=True)
        packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
        view = {
            "name": f"{title}, {page.comparison_id}",
            "createdAt": now,
            "updatedAt": now,
            "state": f"deflate;{packed}",
        }
        view_tags[VIEW + page.view_id(role)] = json.dumps(view)
    return {key: text for key, text in view_tags.items() if len(text) <= MAX_VIEW_LENGTH}


def state(sweep: Sweep, experiment: str, comparison_id: str, role: str) -> dict[str, Any]:
    """Return the state of MLflow's page: the search, the sections and their charts.

    The runs are sorted by the tag of their places in the comparison: sorted by date, MLflow would
    fold the schemes below the comparison's run, and the legend of a chart, which shows two lines,
    would not begin with the schemes that come first in the command.

    Args:
        sweep: The runs.
        experiment: The name of the experiment.
        comparison_id: The id of the comparison.
        role: `scheme` for one curve a scheme, `step` for one curve a step size.

    Returns:
        The state as the page stores it, with a chart for each metric that a run has.
    """
    template = json.loads(resources.files(__package__).joinpath("views.json").read_text())
    rows = sweep.of_role(role, experiment).dropna(axis="columns", how="all")
    metrics = sorted(
        column.removeprefix(names.METRICS) for column in rows if column.startswith(names.METRICS)
    )
    logarithmic = {*template["logarithmic"], *_positive_counts(rows)}
    unplaced = dict.fromkeys(name for name in metrics if name not in template["axes"])
    sections, charts = [], []
    for section in template["sections"]:
        placed = {
            name: None
            for pattern in section["metrics"]
            for name in unplaced
            if fnmatchcase(name, pattern)
        }
        unplaced = {name: None for name in unplaced if name not in placed}
        if placed:
            title = {"uuid": section["name"], "name": section["name"]}
            sections.append({**template["section"], **title, **section.get("open", {})})
        charts += [_chart(template, name, section["name"], name in logarithmic) for name in placed]
    if sections:
        chosen = "every step size" if role == names.STEP else f"{sweep.which_step()} step sizes"
        sections[0]["name"] = chosen
    # An axis has the entry of a deleted chart: otherwise MLflow would add its own of it.
    charts += [_chart(template, name, "", False) | {"deleted": True} for name in template["axes"]]
    place = names.membership(comparison_id)
    return {
        **template["state"],
        "searchFilter": f"{names.ROLE.equals(role)} and {place.exists}",
        "orderByKey": f"{names.TAGS}`{place.key}`",
        "compareRunSections": sections,
        "compareRunCharts": charts,
    }


def _chart(
    template: Mapping[str, Any], metric: str, section: str, is_logarithmic: bool
) -> dict[str, Any]:
    """Return the chart of a metric: lines of a series, bars of a number.

    Args:
        template: The contents of `views.json`.
        metric: The key of the metric.
        section: The id of the section that the chart is in.
        is_logarithmic: Whether the vertical axis of lines is logarithmic.
    """
    chart = {**template["bars"], "uuid": metric, "metricKey": metric, "metricSectionId": section}
    if section and any(fnmatchcase(metric, pattern) for pattern in template["series"]):
        chart |= template["lines"]
        if metric.startswith(names.GRID_PREFIX):
            chart |= template["over_step_sizes"]
        if is_logarithmic:
            chart["scaleType"] = "log"
    return chart


def _positive_counts(rows: Any) -> list[str]:
    """Return the metrics of counts that end above 0 in every run, so that they have a logarithm."""
    positive_counts = []
    for metric in (names.TRAIN_MISCLASSIFICATIONS, names.TEST_MISCLASSIFICATIONS):
        column = names.final_metric(metric).column
        if column in rows and (rows[column].dropna() > 0).all():
            positive_counts += [metric.key, names.grid(metric).key]
    return positive_counts


def colors(sweep: Sweep, experiment: str) -> dict[str, str]:
    """Return the colours of an experiment's scheme runs, as in the figures.

    All splits and seeds of a scheme have one colour.

    Args:
        sweep: The runs.
        experiment: The name of the experiment.

    Returns:
        The colour by the run's id.
    """
    jobs = every_job(sweep, experiment)
    schemes = jobs.drop_duplicates("label")
    scheme_looks = dict(zip(schemes["label"], looks(list(schemes["normalizer"]))))
    return {row["run_id"]: scheme_looks[row["label"]].color for row in as_rows(jobs)}
