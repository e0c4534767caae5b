"""A comparison's saved views in MLflow: the charts of its page and their order.

`normbench.results.store.saved_views` has the format in which MLflow stores a view.
"""

from collections.abc import Callable, Sequence
from typing import Any

from normbench import names
from normbench.results.compare.merging import members_of, merged
from normbench.results.store import saved_views
from normbench.results.store.looks import looks
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import HISTORY_KEYS, QUARTILE_KEYS, Sweep

SERIES = (names.SHARPNESS.key, names.PREDICTED_COST.key)
# These metrics of theory come first; all others follow by name.
THEORY_METRICS = (*SERIES, names.THRESHOLD.key, names.LIPSCHITZ.key, names.CONDITION.key)
GRID_STEP_SIZE = names.GRID_STEP_SIZE.key  # the horizontal axis of the step runs' final values
# Metrics without a chart: they are axes, not results.
AXES = (GRID_STEP_SIZE, names.STEP_SIZE.key)
GRID_METRICS = tuple(names.grid(metric).key for metric in names.HISTORIES[:2])
COUNT_METRICS = (names.TRAIN_MISCLASSIFICATIONS, names.TEST_MISCLASSIFICATIONS)
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


def search_filter(sweep: Sweep, experiment: str, role: str = names.SCHEME) -> str:
    """Return MLflow's filter for the runs of a sweep, reused ones among them.

    A reused job has the tag of its membership on the run of its scheme alone: its step runs are
    found by their ids.

    Args:
        sweep: The runs.
        experiment: The experiment.
        role: The role of the runs, `scheme` or `step`.

    Returns:
        A filter in the language of MLflow's search.
    """
    rows = sweep.of_role(role, experiment)
    # The sweeps that wrote the runs; others than this one wrote the reused jobs.
    of_sweeps = {row.get(names.SWEEP_ID.column, sweep.sweep_id) for row in as_rows(rows)}
    if role == names.STEP and not of_sweeps <= {sweep.sweep_id}:
        run_ids = ", ".join(f"'{run_id}'" for run_id in rows["run_id"])
        return f"attributes.run_id IN ({run_ids})"
    return f"{names.ROLE.equals(role)} and {names.membership(sweep.sweep_id).exists}"


def sort_key(sweep_id: str) -> str:
    """Return the column by which MLflow's page sorts a sweep's runs: the tag of their places in it.

    A run's place is the number of its job. A chart's legend shows only two lines. In this order
    they are those of the schemes that come first in the command, with which the others are
    compared. In the order of dates, MLflow would fold the schemes below their sweep run.
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
    # Without the metrics that no run of the role and experiment has.
    rows = sweep.of_role(role, experiment).dropna(axis="columns", how="all")
    metrics = sorted(
        name.removeprefix(names.METRICS) for name in rows.columns if name.startswith(names.METRICS)
    )
    positive_counts = _positive_counts(rows)
    sections, charts = [], []
    for title, section_metrics in _sections(metrics):
        heading = title
        if title == OPEN_SECTIONS[0]:  # its heading names the step sizes that it shows
            step_choice = sweep.which_step(experiment)
            heading = "every step size" if role == names.STEP else f"{step_choice} step sizes"
        is_open = title in OPEN_SECTIONS
        height = 400 if is_open else 320  # pixels
        sections.append(saved_views.section(title, heading, is_open, height))
        charts += [
            _chart(metric, title, metric in LOGARITHMIC or metric in positive_counts)
            for metric in section_metrics
        ]
    charts += [saved_views.no_chart(metric) for metric in AXES]
    search = search_filter(sweep, experiment, role)
    return saved_views.state(search, sort_key(sweep.sweep_id), COLUMNS, sections, charts)


def _sections(metrics: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the sections that have a chart, with their metrics, the most important first.

    Args:
        metrics: The names of the recorded metrics.

    Returns:
        Titles with the names of metrics; without any metric, one section without charts.
    """
    drawn_metrics = [name for name in metrics if name not in AXES]
    metrics_by_title: dict[str, list[str]] = {title: [] for title in CHART_SECTIONS}
    # The order of the charts: a metric that comes twice keeps its first position.
    for name in [*HISTORY_KEYS, *GRID_METRICS, *THEORY_METRICS, *drawn_metrics]:
        title = next(
            (title for title, belongs in CHART_SECTIONS.items() if belongs(name)), OTHER_SECTION
        )
        if name in drawn_metrics and name not in metrics_by_title.setdefault(title, []):
            metrics_by_title[title].append(name)
    sections = [
        (title, section_metrics)
        for title, section_metrics in metrics_by_title.items()
        if section_metrics
    ]
    return sections or [(OTHER_SECTION, [])]


def _positive_counts(rows: Any) -> list[str]:
    """Return the metrics of counts that end above 0 in every run, so that they have a logarithm.

    Args:
        rows: The rows of the runs.

    Returns:
        The names of such a count's history and of its final value in the grid.
    """
    positive_counts = []
    for metric in COUNT_METRICS:
        column = names.final_metric(metric).column
        if column in rows and (rows[column].dropna() > 0).all():
            positive_counts += [metric.key, names.grid(metric).key]
    return positive_counts


def _chart(metric: str, section: str, log: bool) -> dict[str, Any]:
    """Return the chart of a metric: lines over iterations or step sizes, or bars.

    Args:
        metric: The name of the metric.
        section: The id of the section that the chart is in.
        log: Whether the vertical axis of lines is logarithmic.
    """
    if metric in (*HISTORY_KEYS, *GRID_METRICS, *SERIES) or metric in QUARTILE_KEYS:
        # A step size is drawn as its exponent of ten, since MLflow has no logarithmic axis for it.
        over = GRID_STEP_SIZE if metric in GRID_METRICS else ""
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
    # The figures show one run for all splits and seeds of a scheme: a merged run with its members.
    merged_sweep = merged(sweep)
    schemes = merged_sweep.of_role(names.SCHEME, experiment)
    shades = (look.color for look in looks(list(schemes["normalizer"])))
    run_colors = dict(zip(schemes["run_id"], shades))
    merged_steps = merged_sweep.of_role(names.STEP, experiment)
    all_steps = sweep.of_role(names.STEP, experiment)
    scheme_of_step = dict(zip(all_steps["run_id"], all_steps["parent"]))
    for step, scheme in zip(merged_steps["run_id"], merged_steps["parent"]):
        # Steps of a scheme that the merged sweep lacks get no colour.
        for member in members_of(merged_sweep, step) if scheme in run_colors else ():
            # The scheme run of a member is that of another split or seed, and has the same colour.
            run_colors[member] = run_colors[scheme_of_step[member]] = run_colors[scheme]
    return run_colors
