"""A comparison's saved views in MLflow: the charts of its page and their order.

`normbench.results.store.saved_views` has the format in which MLflow stores a view.
"""

from collections.abc import Callable, Sequence
from typing import Any

from normbench import names
from normbench.results.compare.merging import members_of, merged
from normbench.results.store import saved_views
from normbench.results.store.looks import looks
from normbench.results.store.runs import HISTORY_KEYS, QUARTILE_KEYS, Sweep

SERIES = (names.SHARPNESS.key, names.PREDICTED_COST.key)
# These metrics of theory come first; all others follow by name.
THEORY_METRICS = (*SERIES, names.THRESHOLD.key, names.LIPSCHITZ.key, names.CONDITION.key)
GRID_STEP_SIZE = names.GRID_STEP_SIZE.key  # the horizontal axis of the step runs' final values
# Metrics without a chart: they are axes, not results.
AXES = (GRID_STEP_SIZE, names.STEP_SIZE.key)
GRID_METRICS = tuple(names.grid(metric).key for metric in names.HISTORIES[:2])
COUNTS = (names.TRAIN_MISCLASSIFICATIONS, names.TEST_MISCLASSIFICATIONS)
LOGARITHMIC = (names.TRAIN_COST.key, names.TEST_COST.key, *SERIES, GRID_METRICS[0])
OTHER_SECTION = "other"
CHART_SECTIONS: dict[str, Callable[[str], bool]] = {
    "best step sizes": lambda name: name in HISTORY_KEYS,
    "step runs": lambda name: name in GRID_METRICS,
    "theory": lambda name: name.startswith(names.THEORY_PREFIX),
    "final values": lambda name: name.startswith(names.FINAL_PREFIX),
    "time": lambda name: name.startswith(names.TIME_PREFIX),
    "quartiles over the starts": lambda name: name in QUARTILE_KEYS,
}
OPEN_SECTIONS = tuple(CHART_SECTIONS)[:2]  # the charts of the answer
# Columns as the page names them.
COST_COLUMN = f"{names.METRICS}`{names.FINAL_COST.key}`"
COLUMNS = (COST_COLUMN, *(f"{names.TAGS}`{tag.key}`" for tag in (names.STEP_TAG, names.VERDICT)))


def view_id(sweep_id: str, role: str = names.SCHEME) -> str:
    """Return the id of a sweep's saved view.

    Args:
        sweep_id: The id of the sweep.
        role: `scheme` or `step`: the runs that the view shows.

    Returns:
        An id that is distinct for each role.
    """
    return sweep_id if role == names.SCHEME else f"{sweep_id}-steps"


def search_filter(sweep_id: str, role: str = names.SCHEME) -> str:
    """Return MLflow's filter for the runs of a sweep, including reused ones.

    Args:
        sweep_id: The id of the sweep.
        role: The role of the runs, `scheme` or `step`.

    Returns:
        A filter in the language of MLflow's search.
    """
    return f"{names.ROLE.equals(role)} and {names.membership(sweep_id).exists}"


def sort_key(sweep_id: str) -> str:
    """Return the column by which MLflow's page sorts a sweep's runs: the tag of their places in it.

    A chart's legend shows only two lines. In this order they are those of the schemes that come
    first in the command, with which the others are compared. In the order of dates, MLflow would
    fold the schemes below their sweep run.
    """
    return f"{names.TAGS}`{names.membership(sweep_id).key}`"


def tags(sweep: Sweep, experiment: str) -> dict[str, str]:
    """Return the tags that save an experiment's views of its scheme runs and its step runs.

    Args:
        sweep: The runs.
        experiment: The experiment.

    Returns:
        The tags; a view that is longer than MLflow stores is left out.
    """
    created = int(sweep.of_role(names.SWEEP, experiment)["started"].iloc[0])
    view_tags: dict[str, str] = {}
    for role, name in ((names.SCHEME, "schemes"), (names.STEP, "every step")):
        page_state = state(sweep, experiment, role)
        title = f"{name}, {sweep.sweep_id}"
        view_tags |= saved_views.view_tag(view_id(sweep.sweep_id, role), title, created, page_state)
    return view_tags


def state(sweep: Sweep, experiment: str, role: str = names.SCHEME) -> dict[str, Any]:
    """Return the state of MLflow's page: the search, the sections and their charts.

    Args:
        sweep: The runs.
        experiment: The experiment.
        role: `scheme` for one curve a scheme, `step` for one curve a step size.

    Returns:
        The state, as the page stores it.
    """
    rows = sweep.of_role(role, experiment).dropna(axis="columns", how="all")
    metrics = sorted(
        name.removeprefix(names.METRICS) for name in rows.columns if name.startswith(names.METRICS)
    )
    counts = _counts(rows)
    sections, cards = [], []
    for title, section_metrics in _sections(metrics):
        name = title
        if title == OPEN_SECTIONS[0]:
            step_choice = sweep.which_step(experiment)
            name = "every step size" if role == names.STEP else f"{step_choice} step sizes"
        tall = title in OPEN_SECTIONS[:2]
        # The height of a chart is in pixels.
        sections.append(
            saved_views.section(title, name, title in OPEN_SECTIONS, 400 if tall else 320)
        )
        cards += [
            _card(name, title, name in LOGARITHMIC or name in counts) for name in section_metrics
        ]
    cards += [saved_views.no_chart(name) for name in AXES]
    search = search_filter(sweep.sweep_id, role)
    return saved_views.state(search, sort_key(sweep.sweep_id), COLUMNS, sections, cards)


def _sections(metrics: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the sections that have a chart, with their metrics, the most important first."""
    remaining = [name for name in metrics if name not in AXES]
    chosen: dict[str, list[str]] = {title: [] for title in CHART_SECTIONS}
    for name in [*HISTORY_KEYS, *GRID_METRICS, *THEORY_METRICS, *remaining]:
        title = next(
            (title for title, belongs in CHART_SECTIONS.items() if belongs(name)), OTHER_SECTION
        )
        if name in remaining and name not in chosen.setdefault(title, []):
            chosen[title].append(name)
    return [
        (title, section_metrics) for title, section_metrics in chosen.items() if section_metrics
    ] or [(OTHER_SECTION, [])]


def _counts(rows: Any) -> list[str]:
    """Return the metrics of counts that end above 0 in every run, so that they have a logarithm."""
    positive_counts = []
    for metric in COUNTS:
        column = names.final_metric(metric).column
        if column in rows and (rows[column].dropna() > 0).all():
            positive_counts += [metric.key, names.grid(metric).key]
    return positive_counts


def _card(metric: str, section: str, log: bool) -> dict[str, Any]:
    """Return the chart of a metric: lines over iterations or step sizes, or bars."""
    if metric in (*HISTORY_KEYS, *GRID_METRICS, *SERIES) or metric in QUARTILE_KEYS:
        over = (
            GRID_STEP_SIZE if metric in GRID_METRICS else ""
        )  # the exponent of ten, since MLflow has no logarithmic axis
        return saved_views.lines(metric, section, over, log)
    return saved_views.bars(metric, section)


def colors(sweep: Sweep, experiment: str) -> dict[str, str]:
    """Return the colours of an experiment's runs, as in the figures.

    Args:
        sweep: The runs.
        experiment: The experiment.

    Returns:
        The colour by the run's id; all splits and seeds of a scheme have the same.
    """
    merged_sweep = merged(sweep)
    schemes = merged_sweep.of_role(names.SCHEME, experiment)
    shades = (look.color for look in looks(list(schemes["normalizer"])))
    run_colors = dict(zip(schemes["run_id"], shades))
    steps = merged_sweep.of_role(names.STEP, experiment)
    all_steps = sweep.of_role(names.STEP, experiment)
    parents = dict(zip(all_steps["run_id"], all_steps["parent"]))
    for step, scheme in zip(steps["run_id"], steps["parent"]):
        for member in members_of(merged_sweep, step) if scheme in run_colors else ():
            run_colors[member] = run_colors[parents[member]] = run_colors[scheme]
    return run_colors
