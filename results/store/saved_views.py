"""MLflow's undocumented format of saved views, and the address that opens one.

See `mlflows_own` for the version.
"""

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

VIEW = "mlflow.sharedViewState."  # the prefix of an experiment's tag that holds a saved view
MAX_VIEW_LENGTH = 5000  # characters that MLflow keeps of an experiment's tag


def view_tag(key: str, name: str, created: int, state: dict[str, Any]) -> dict[str, str]:
    """Return the experiment's tag that saves a view, as a dictionary.

    Args:
        key: The view's id.
        name: The view's title.
        created: When it was created, in ms.
        state: The page's state, from `state`.

    Returns:
        The tag; empty where it is longer than MLflow stores.
    """
    view = {
        "name": name,
        "createdAt": created,
        "updatedAt": created,
        "state": compress_state(state),
    }
    text = json.dumps(view)
    return {VIEW + key: text} if len(text) <= MAX_VIEW_LENGTH else {}


def compress_state(state: dict[str, Any]) -> str:
    """Return a view's state as MLflow stores it: JSON, compressed, in base 64."""
    text = json.dumps(state, separators=(",", ":"), sort_keys=True)
    return f"deflate;{base64.b64encode(zlib.compress(text.encode(), 9)).decode()}"


def state(
    search: str,
    order: str,
    columns: Sequence[str],
    sections: Sequence[dict[str, Any]],
    charts: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Return the state of MLflow's page.

    Args:
        search: The filter of the runs that are shown.
        order: The column that sorts them.
        columns: The columns of their table.
        sections: The sections of the charts, from `section`.
        charts: The charts, from `bars`, `lines` and `no_chart`.

    Returns:
        The state, as the page stores it.
    """
    return {
        "searchFilter": search,
        "orderByKey": order,
        "orderByAsc": True,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": list(columns),
        "runsHiddenMode": "SHOW_ALL",  # MLflow shows ten otherwise
        "hideEmptyCharts": True,
        "isAccordionReordered": True,
        "compareRunSections": list(sections),
        "compareRunCharts": list(charts),
    }


def section(key: str, name: str, is_open: bool, height: int) -> dict[str, Any]:
    """Return a section of charts in two columns; in three, metrics' names would be truncated.

    Args:
        key: The id of the section, which its charts name.
        name: Its heading.
        is_open: Whether the section is unfolded at first.
        height: The height of a chart, in pixels.

    Returns:
        The section as MLflow's page stores it.
    """
    return {
        "uuid": key,
        "name": name,
        "display": is_open,
        "isReordered": True,
        "columns": 2,
        "cardHeight": height,
    }


def bars(metric: str, section: str) -> dict[str, Any]:
    """Return a bar chart of a metric, which MLflow draws as lines if the metric has a history.

    Args:
        metric: The key of the metric.
        section: The id of the section that the chart is in.

    Returns:
        The chart as MLflow's page stores it.
    """
    return {
        "uuid": metric,
        "metricSectionId": section,
        "metricKey": metric,
        "deleted": False,
        "isGenerated": True,
        "type": "BAR",
        "runsCountToCompare": 100,
    }


def no_chart(metric: str) -> dict[str, Any]:
    """Return the entry of a deleted chart, which keeps MLflow from adding its own of a metric."""
    return {**bars(metric, ""), "deleted": True}


def lines(metric: str, section: str, over: str, log: bool) -> dict[str, Any]:
    """Return a line chart of a metric.

    Args:
        metric: The key of the metric.
        section: The id of the section that the chart is in.
        over: The metric of the horizontal axis; empty for MLflow's step.
        log: Whether the vertical axis is logarithmic.

    Returns:
        The chart, as the page stores it.
    """
    return {
        **bars(metric, section),
        "type": "LINE",
        "scaleType": "log" if log else "linear",
        "lineSmoothness": 0,
        "useGlobalLineSmoothing": False,
        "useGlobalXaxisKey": False,
        "xAxisKey": "metric" if over else "step",
        "selectedXAxisMetricKey": over,
        "xAxisScaleType": "linear",  # MLflow has no logarithmic axis over a metric
        "yAxisKey": "metric",
        "yAxisExpressions": [],
        "range": {},
    }


def page(experiment_id: str, view: str = "", search: str = "", order: str = "") -> str:
    """Return the address of an experiment's charts, without the server's address.

    Args:
        experiment_id: The experiment.
        view: The id of the saved view that opens; empty for none.
        search: Without a view, the filter of the runs.
        order: Without a view, the column that sorts them.

    Returns:
        The part of the address after the server's.
    """
    start = (
        f"#/experiments/{quote(experiment_id)}/runs"
        "?workflowType=machine_learning&compareRunsMode=CHART"
    )
    if view:  # the view holds the search, and MLflow accepts no other beside it
        return f"{start}&viewStateShareKey={quote(view)}"
    parameters = f"searchFilter={quote(search, safe='')}&orderByKey={quote(order, safe='')}"
    return f"{start}&{parameters}&orderByAsc=true"
