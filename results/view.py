"""MLflow's saved chart views of a comparison: which charts stand on its page, and in what order.

The format is MLflow's own and undocumented: it was read from the page of version 3.17, and a test
opens it in a browser. MLflow keeps a view as a tag of the experiment.
"""

import base64
import json
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from normbench.results import names
from normbench.results.figures.style import looks
from normbench.results.runs import HISTORIES, QUARTILES, Sweep

TAG = "mlflow.sharedViewState."
LONGEST = 5000  # what MLflow keeps of an experiment's tag
SERIES = (names.SHARPNESS.key, names.PREDICTED_COST.key)
# The theory that says most comes first; every other number of it follows, by name.
THEORY = (*SERIES, names.THRESHOLD.key, names.LIPSCHITZ.key, names.CONDITION.key)
STEP = names.GRID_STEP_SIZE.key  # the horizontal axis of what the step runs came to
# No results: without a deleted card MLflow would draw them as well.
AXES = (STEP, names.STEP_SIZE.key)
GRID = tuple(names.grid(metric).key for metric in names.HISTORIES[:2])
LOG = (names.TRAIN_COST.key, names.TEST_COST.key, *SERIES, GRID[0])
OTHER = "other"
SECTIONS: dict[str, Callable[[str], bool]] = {
    "best step sizes": lambda name: name in HISTORIES,
    "step runs": lambda name: name in GRID,
    "theory": lambda name: name.startswith(names.THEORY),
    "final values": lambda name: name.startswith(names.FINAL),
    "time": lambda name: name.startswith(names.TIME),
    "quartiles over the starts": lambda name: name in QUARTILES,
}
OPEN = tuple(SECTIONS)[:3]
# The page names its columns so.
ORDER = f"{names.METRICS}`{names.FINAL_COST.key}`"
COLUMNS = (ORDER, *(f"{names.TAGS}`{tag.key}`" for tag in (names.STEP_TAG, names.VERDICT)))


def key(sweep_id: str, role: str = names.SCHEME) -> str:
    """Return a view's id: of the scheme runs, or of the step runs."""
    return sweep_id if role == names.SCHEME else f"{sweep_id}-steps"


def where(sweep_id: str, role: str = names.SCHEME) -> str:
    """Return MLflow's search filter for the runs of a sweep, own and reused."""
    return f"{names.ROLE.equals(role)} and {names.membership(sweep_id).exists}"


def tags(sweep: Sweep, experiment: str) -> dict[str, str]:
    """Return the tags that save an experiment's views: its scheme runs, and its step runs.

    A view that is longer than what MLflow keeps is left out.
    """
    created = int(sweep.of_role(names.SWEEP, experiment)["started"].iloc[0])
    found = {}
    for role, name in ((names.SCHEME, "schemes"), (names.STEP, "every step")):
        words = {"name": f"{name}, {sweep.sweep_id}", "createdAt": created, "updatedAt": created}
        value = json.dumps({**words, "state": packed(state(sweep, experiment, role))})
        if len(value) <= LONGEST:
            found[TAG + key(sweep.sweep_id, role)] = value
    return found


def packed(shown: dict[str, Any]) -> str:
    """Return a state as MLflow stores it: compressed JSON."""
    text = json.dumps(shown, separators=(",", ":"), sort_keys=True)
    return f"deflate;{base64.b64encode(zlib.compress(text.encode(), 9)).decode()}"


def unpacked(text: str) -> dict[str, Any]:
    """Return the state that `packed` was given."""
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text.split(";", 1)[1])))
    return found


def state(sweep: Sweep, experiment: str, role: str = names.SCHEME) -> dict[str, Any]:
    """Return the state of MLflow's page: the search, the sections and their charts.

    role: `scheme` for a curve a scheme, `step` for a curve a step size.
    """
    rows = sweep.of_role(role, experiment).dropna(axis="columns", how="all")
    metrics = sorted(
        name.removeprefix(names.METRICS) for name in rows.columns if name.startswith(names.METRICS)
    )
    sections, cards = [], []
    for title, shown in _sections(metrics):
        name = title
        if title == OPEN[0]:
            which = sweep.which_step(experiment)
            name = "every step size" if role == names.STEP else f"{which} step sizes"
        section = {"uuid": title, "name": name, "display": title in OPEN, "isReordered": True}
        # Two columns are wide enough for a metric's name; three cut it short.
        sections.append({**section, "columns": 2, "cardHeight": 400 if title in OPEN[:2] else 320})
        cards += [_card(name, title) for name in shown]
    cards += [{**_card(name, ""), "deleted": True} for name in AXES]
    return {
        "searchFilter": where(sweep.sweep_id, role),
        # Sorted by date, MLflow would fold the schemes below their sweep.
        "orderByKey": ORDER,
        "orderByAsc": True,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": list(COLUMNS),
        "runsHiddenMode": "SHOW_ALL",  # MLflow shows ten otherwise
        "hideEmptyCharts": True,
        "isAccordionReordered": True,
        "compareRunSections": sections,
        "compareRunCharts": cards,
    }


def _sections(metrics: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the sections that have a chart, with their metrics; the most asked for come first."""
    left = [name for name in metrics if name not in AXES]
    chosen: dict[str, list[str]] = {title: [] for title in SECTIONS}
    for name in [*HISTORIES, *GRID, *THEORY, *left]:
        title = next((title for title, of in SECTIONS.items() if of(name)), OTHER)
        if name in left and name not in chosen.setdefault(title, []):
            chosen[title].append(name)
    return [(title, found) for title, found in chosen.items() if found] or [(OTHER, [])]


def _card(metric: str, section: str) -> dict[str, Any]:
    """Return a chart: lines over the iterations, or over the step size, or bars.

    `isGenerated` lets MLflow turn bars into lines where a metric has a history.
    """
    common = {
        "uuid": metric,
        "metricSectionId": section,
        "metricKey": metric,
        "deleted": False,
        "isGenerated": True,
    }
    lines = metric in (*HISTORIES, *GRID, *SERIES) or metric in QUARTILES
    if not lines:
        return {**common, "type": "BAR", "runsCountToCompare": 100}
    over = metric in GRID
    return {
        **common,
        "type": "LINE",
        "runsCountToCompare": 100,
        "scaleType": "log" if metric in LOG else "linear",
        "lineSmoothness": 0,
        "useGlobalLineSmoothing": False,
        "useGlobalXaxisKey": False,
        "xAxisKey": "metric" if over else "step",
        "selectedXAxisMetricKey": STEP if over else "",
        "xAxisScaleType": "linear",  # MLflow has no log axis over a metric: it is one of powers
        "yAxisKey": "metric",
        "yAxisExpressions": [],
        "range": {},
    }


def colors(sweep: Sweep, experiment: str) -> dict[str, str]:
    """Return the colour of each run of an experiment, by its id: that of the figures."""
    schemes = sweep.of_role(names.SCHEME, experiment)
    found = {
        run_id: look.color
        for run_id, look in zip(schemes["run_id"], looks(list(schemes["normalizer"])))
    }
    steps = sweep.of_role(names.STEP, experiment)
    own = zip(steps["run_id"], steps["parent"])
    return found | {run_id: found[parent] for run_id, parent in own if parent in found}
