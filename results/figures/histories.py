"""The textbook's figure: cost histories, and misclassification histories beside or below them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from normbench import names
from normbench.results.compare.merging import repeated_over
from normbench.results.figures import excess
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.labels import End, end_labels
from normbench.results.figures.base.style import SCREEN, Look, Shape
from normbench.results.store.errors import ResultsError
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

# Each panel: the training points' history, and the test points'.
PANELS = (names.HISTORIES[0::2], names.HISTORIES[1::2])
SIZES = ("train_points", "test_points")  # columns of the runs
RATE = "misclassified points, percent"
BAD = 8.0  # a curve that ends so many times above the median squashes the others
Panel = tuple[names.Metric, ...]
SAME = 1e-8  # relative: full whitenings trace the same costs to rounding
STEP = names.STEP_SIZE.column
GRIDLESS = names.GRIDLESS.column
READ = 1e-5  # relative: a step size that was read off a table has six digits
MANY = 6  # curves: with more, panels stand below each other
LONG = 24  # letters of a scheme, with its options, that stand beside two panels
DECADES = "cost, decades above its start"
EXCESS = "excess"  # of the scales
MARKS = ("_lead", "_lost", "_slope")  # lines that are no curves
UNSEEN = 20  # a curve of so many times fewer iterations than another is a line up and down
LOST = "lost"  # marks the curve of a run that diverged


def draw(
    histories: pd.DataFrame,
    runs: pd.DataFrame,
    title: str,
    *,
    first: int = 0,
    scale: str | None = None,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: a curve a run, the test points' dashed, a band between quartiles.

    histories: one row a run and iteration (`run_id`, `iteration`, `train/cost` ...). runs: one
    row a curve (`run_id`, `label`, `normalizer`, `tags.step_size`, `verdict`). first: the
    iteration to begin at. scale: `linear`, `log`, or `excess`: the costs are excess, as `excess`
    makes them, with the runs' slopes; None chooses by the range. Misclassified points of a training
    and a test part, of different sizes, are shown in percent of each.
    """
    shown = histories[histories["iteration"] >= first]
    rates = _shares_an_axis(shown, runs)
    if rates:
        shown = _as_rates(shown, runs)
    lost = bool(len(runs)) and bool((runs["verdict"] == names.DIVERGED).all())
    if lost:  # matplotlib draws no axis of 300 decades
        shown, scale = _as_decades(shown), "linear"
    wanted = [panel for panel in PANELS if _has(shown, panel[0])]
    longest = max(map(len, runs["label"]), default=0)
    # Long names leave curves no room.
    stacked = shape.width < 8 or len(runs) > MANY or longest > LONG or lost
    columns = 1 if stacked else max(len(wanted), 1)
    height = max(0.62 * max(shape.width / 2, 3.3), (len(runs) + 2) * 1.25 * shape.font / 72)
    with style.drawn(shape):
        ratio = height / (shape.width / columns)
        figure, axes = style.panels(max(len(wanted), 1), shape, title, ratio, columns)
        if not wanted:
            style.say_nothing(axes[0], f"no run has a history from iteration {first} on")
        for axis, panel in zip(axes, wanted):
            _panel(axis, shown, runs, panel, scale, shape, height, lost)
            even = axis.get_xscale() == "linear"
            axis.set_xlabel(panel[0].axis if even else f"{panel[0].axis}, logarithmic")
            counts = panel[0] == names.TRAIN_MISCLASSIFICATIONS
            cost = excess.LABEL if scale == EXCESS else DECADES if lost else panel[0].heading
            axis.set_ylabel(RATE if counts and rates else panel[0].heading if counts else cost)
        notes = _notes(shown, runs, scale)
        if notes:
            style.note(figure, shape, notes)
    return figure


def _shares_an_axis(histories: pd.DataFrame, runs: pd.DataFrame) -> bool:
    """Return whether two parts' misclassified points stand on one axis; their sizes are known."""
    known = all(name in runs and runs[name].notna().all() for name in SIZES)
    return known and _has(histories, names.TEST_MISCLASSIFICATIONS)


def _as_rates(histories: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return histories with misclassified points in percent of each part's points."""
    found = histories.copy()
    about = runs.set_index("run_id")
    for metric, size in zip(PANELS[1], SIZES):
        points = histories["run_id"].map(about[size].astype(float))
        for key in {*excess.with_quartiles(metric)} & {*found}:
            found[key] = 100 * found[key] / points
    return found


def _panel(
    axis: Any,
    histories: pd.DataFrame,
    runs: pd.DataFrame,
    panel: Panel,
    scale: str | None,
    shape: Shape,
    height: float,
    lost: bool,
) -> None:
    by_run = dict(list(histories.groupby("run_id")))
    ends = []
    looks = style.looks(list(runs["normalizer"]))
    groups = coinciding(histories, runs)
    for run, look in zip(as_rows(runs), looks):
        rows = by_run.get(run["run_id"])
        if rows is None or rows[panel[0].key].isna().all():
            continue
        _curve(axis, rows, panel, look)
        gridless = run.get(GRIDLESS) == "true"
        step = "" if gridless else style.step_text(run.get(names.STEP_TAG.column))
        text = f"{run['label']}{step}"
        axis.lines[-1].set_label(text)
        values = rows[panel[0].key].dropna()
        if run["verdict"] == names.DIVERGED:
            text += _overflow(rows, run, panel[0], lost and panel[0] == names.TRAIN_COST)
            _lost(axis, rows, panel[0], look)
        elif panel[0] == names.TRAIN_COST and scale == EXCESS:
            _slope(axis, rows, run, look)
        same = next((group for group in groups if run["label"] in group), [])
        if same[:1] == [run["label"]]:  # one label, of all curves that are one
            text = f"{style.equal_names(same)}{text.removeprefix(run['label'])}"
        if run["label"] in same[:1] or not same:
            ends.append(End(text, float(values.iloc[-1]), look))
    last = style.span_iterations(axis, axis.lines)
    _iterations(axis, last)
    _lead_to_labels(axis, last)
    _scale(axis, [end.value for end in ends], panel[0], scale)
    end_labels(axis, ends, shape, height, marked=False)


def _as_decades(histories: pd.DataFrame) -> pd.DataFrame:
    """Return histories whose costs are logarithms of what they are to the run's first."""
    found = histories.copy()
    cost = names.TRAIN_COST.key
    first = histories.groupby("run_id")[cost].transform("first")
    with np.errstate(divide="ignore", invalid="ignore"):
        for key in {names.TEST_COST.key, *excess.with_quartiles(names.TRAIN_COST)} & {*found}:
            found[key] = np.log10(histories[key]) - np.log10(first)
    return found.replace(-np.inf, np.nan)


def _overflow(rows: pd.DataFrame, run: Mapping[Any, Any], metric: names.Metric, lost: bool) -> str:
    """Return when a run overflowed, if it did, and, in decades, how far its cost had come."""
    values = rows[metric.key].dropna()
    last = int(rows.loc[values.index[-1], "iteration"])
    overflowed = "stopped being finite" in str(run.get(names.REASON.column))
    text = f" diverged at {last + 1}" if overflowed else " diverged"
    return f"{text}, {values.iloc[-1]:.0f} decades up" if lost else text


def _lost(axis: Any, rows: pd.DataFrame, metric: names.Metric, look: Look) -> None:
    """Mark where a run was finite for the last time: no line leads on from there."""
    axis.lines[-1].set_gid(LOST)
    end = rows[metric.key].dropna().index[-1]
    place = rows.loc[end, "iteration"], rows.loc[end, metric.key]
    color, marker = style.dark(look.color), style.VERDICTS[names.DIVERGED][1]
    axis.plot(*place, marker=marker, color=color, ls="", label="_lost", zorder=4)


def _slope(axis: Any, rows: pd.DataFrame, run: Mapping[Any, Any], look: Look) -> None:
    """Draw the slope that theory predicts beside a curve's last half."""
    cost = rows[names.TRAIN_COST.key].to_numpy(dtype=float)
    iterations, factor = rows["iteration"].to_numpy(), run.get(excess.SLOPE, float("nan"))
    known = np.flatnonzero(np.isfinite(cost))
    if len(known) < 2 or not 0 < factor < 1:
        return
    last = known[-1]
    ends = iterations[[last - max(1, last // 2), last]]
    beside = 1.6 * cost[last] * factor ** (ends - ends[-1]).astype(float)
    axis.plot(ends, beside, color=style.dark(look.color), ls=(0, (1, 1)), label="_slope", zorder=3)


def _iterations(axis: Any, last: float) -> None:
    """Set the ticks of the iterations, on a logarithmic axis where a curve has too few to be seen.

    A run that diverged has few, too, but its mark says so.
    """
    kept = [line for line in axis.lines if line.get_label()[0] != "_" and line.get_gid() != LOST]
    if last <= UNSEEN * min((line.get_xdata().max() for line in kept), default=last):
        axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        return
    axis.set_xscale("symlog", linthresh=1, linscale=0.5)
    axis.xaxis.set_major_locator(FixedLocator([0, *(10**power for power in range(7))]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter("{x:.0f}")


def _lead_to_labels(axis: Any, last: float) -> None:
    """Lead a curve of fewer iterations than the others to its label, with dots."""
    for line in list(axis.lines):
        x, y = (np.asarray(data, dtype=float) for data in line.get_data())
        led = line.get_label()[0] != "_" and line.get_gid() != LOST
        if led and len(x) and x[-1] < last:
            color = line.get_color()
            axis.plot([x[-1], last], [y[-1]] * 2, color=color, ls=":", lw=0.8, label="_lead")


def _curve(axis: Any, rows: pd.DataFrame, panel: Panel, look: Look) -> None:
    """Draw one run: quartiles as a band, the test points' history dashed, the training points'."""
    x = rows["iteration"]
    train, test = panel
    curve = style.plain_curve(look)
    if _has(rows, test):
        pale = {"ls": (0, (4, 3)), "alpha": 0.55}
        axis.plot(x, rows[test.key], label="_test", **curve | pale)
    low, high = (names.quartile(train, part).key for part in names.QUARTILES)
    if low in rows:
        axis.fill_between(x, rows[low], rows[high], color=look.color, alpha=0.2, lw=0)
    axis.plot(x, rows[train.key], **curve)


def _scale(axis: Any, ends: list[float], metric: names.Metric, scale: str | None) -> None:
    """Choose the vertical scale and limits, so that no curve makes the others unreadable."""
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axis.lines])
    values = values[np.isfinite(values)]
    curves = [line.get_ydata() for line in axis.lines if line.get_label() not in MARKS]
    start = max(float(heights[0]) for heights in curves if len(heights))
    if metric == names.TRAIN_COST:
        log = values.min() > 0 and values.max() > 10 * values.min()
        if scale in ("log", EXCESS) or (scale is None and log):
            # A run that shoots up leaves the panel; what the others do stays readable. Before the
            # scale is set: margins of 300 decades overflow.
            if values.max() > 1e3 * start > 0:
                axis.set_ylim(values[values > 0].min() / 2, 1e3 * start)
            axis.set_yscale("log", nonpositive="mask")
            ticks.log_ticks(axis.yaxis)
        elif values.max() > 3 * start > 0:
            # Both limits: the margin below would be one of the curve that leaves the panel.
            low, high = min(float(values.min()), start), 1.5 * start
            axis.set_ylim(low - 0.05 * (high - low), high)
        return
    scale = None if scale == EXCESS else scale
    squashed = max(ends) > BAD * max(float(np.median(ends)), 1.0) or max(values) > 10 * max(ends)
    if scale == "log" or (scale is None and squashed):
        axis.set_yscale("symlog", linthresh=1, linscale=0.5)
        axis.set_ylim(bottom=0)
        steps = [unit * 10**power for power in range(7) for unit in (1, 2, 5)]
        axis.set_yticks([0, *(step for step in steps if step <= values.max())])
        axis.yaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter("{x:.0f}")
    else:
        whole = bool((values == np.round(values)).all())  # counts; rates are not
        axis.yaxis.set_major_locator(MaxNLocator(6, integer=whole))


def _notes(histories: pd.DataFrame, runs: pd.DataFrame, scale: str | None) -> str:
    """Return what else the figure has to say: dashed lines, bands, slopes."""
    notes = []
    if _has(histories, names.TEST_COST) or _has(histories, names.TEST_MISCLASSIFICATIONS):
        notes.append("solid: training points, dashed and pale: test points")
    if _has(histories, names.quartile(names.TRAIN_COST, names.QUARTILES[0])):
        notes.append(f"curves: medians, bands: quartiles, over {_over(runs)}")
    if scale == EXCESS:
        notes += _on_excess(runs)
    return "\n".join(notes)


def _over(runs: pd.DataFrame) -> str:
    """Return what medians and quartiles are over, and how many there are."""
    repeats = repeated_over(runs)
    column = names.setting("starts")
    starts = pd.to_numeric(runs[column], errors="coerce").max() if column in runs else float("nan")
    if not starts > 1:
        return ", ".join(repeats) or "the starts"
    # Of a split its starts are one value, their median.
    each = f"{repeats[0]}, each the median of " if repeats else ""
    return f"{each}{starts:.0f} starts"


def _on_excess(runs: pd.DataFrame) -> list[str]:
    """Return what dotted slopes are, and where the least cost is none that was solved for."""
    notes = []
    if (pd.to_numeric(runs.get(excess.SLOPE), errors="coerce") > 0).any():
        notes.append("dotted: the slope that theory predicts")
    reached = runs.get(names.MINIMUM_REACHED.column, pd.Series(dtype=str)).dropna()
    if (reached == "false").any():
        notes.append("the least cost is not known: the lowest that was seen stands for it")
    return notes


def _has(histories: pd.DataFrame, metric: names.Metric) -> bool:
    return metric.key in histories and bool(histories[metric.key].notna().any())


def coinciding(histories: pd.DataFrame, runs: pd.DataFrame) -> list[list[str]]:
    """Return the labels of the runs whose training costs agree to 1e-8, relative, in groups."""
    cost = names.TRAIN_COST.key
    if cost not in histories:
        return []
    by_run = {run_id: rows[cost].to_numpy() for run_id, rows in histories.groupby("run_id")}
    groups: list[tuple[Any, list[str]]] = []
    for run in as_rows(runs):
        costs = by_run.get(run["run_id"])
        if costs is None:
            continue
        for model, labels in groups:
            if len(model) == len(costs) and np.allclose(model, costs, rtol=SAME, atol=0):
                labels.append(run["label"])
                break
        else:
            groups.append((costs, [run["label"]]))
    return [labels for _, labels in groups if len(labels) > 1]


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None without a descent."""
    runs = _curves(sweep, experiment, options.steps)
    title = material.title(experiment, material.schemes(sweep, experiment))
    return of_runs(sweep, experiment, runs, title, options)


def of_runs(
    sweep: Sweep, experiment: str, runs: pd.DataFrame, title: str, options: material.Options
) -> Figure | None:
    """Return the figure of runs of an experiment, with slopes where it is of excess."""
    if options.scale == EXCESS:
        table = excess.histories(sweep, runs)
        runs = excess.with_slopes(sweep, material.schemes(sweep, experiment), runs)
    else:
        table = material.histories(sweep, runs)
    if table.empty:
        return None
    first, scale = options.first, options.scale
    return draw(table, runs, title, first=first, scale=scale, shape=options.shape)


def _curves(sweep: Sweep, experiment: str, sizes: tuple[float, ...]) -> pd.DataFrame:
    """Return the runs whose histories are drawn: the best of each scheme, or chosen steps."""
    every = material.steps(sweep, experiment)
    if sizes:
        known = every[STEP].astype(float)
        missing = [size for size in sizes if not (abs(known / size - 1) < READ).any()]
        if missing:
            tried = ", ".join(f"{size:g}" for size in sorted(set(known.dropna())))
            raise ResultsError(f"--steps {missing[0]:g}: was not tried; choose of {tried}")
        return every[[any(abs(size / one - 1) < READ for one in sizes) for size in known]]
    best = material.schemes(sweep, experiment)
    lost = (best["verdict"] == names.DIVERGED) | best[names.STEP_TAG.column].isna()
    # Where no step size is the best, the smallest shows how.
    instead = [
        rows.sort_values(STEP).head(1).assign(**{GRIDLESS: gridless})
        for rows, gridless in (
            (every[every["parent"] == row["run_id"]], row.get(GRIDLESS))
            for row in as_rows(best[lost])
        )
        if len(rows)
    ]
    return pd.concat([best[~lost], *instead])
