"""The settings of a descent, checked against the table of settings."""

from dataclasses import dataclass
from typing import Any

from normbench import settings
from normbench.datasets.values import FLOAT64_BYTES, UserError, refuse_larger, spell_setting
from normbench.settings import FITTED, RANDOM_STARTS, WINDOW_STATISTICS, default

HISTORIES_PER_RUN = 4  # of a run: costs and counts, of the training and of the test points


@dataclass(frozen=True)
class Settings:
    """How the runs of one job start, step and end; every field is checked on construction.

    A batch has no shadows and no finer step sizes, whatever these settings are, see
    `Job.effective_settings`.

    Attributes:
        step_sizes: Distinct positive numbers `(S,)`.
        iterations: The number of steps after the start; with a batch, of passes over the points.
        start: `zeros`, `normal` (start_scale times a standard normal, the same weights under every
            scheme), `same_function` (the same function under every affine scheme, see
            `engine.start`), or weights, bias first (one list, or one for each class).
        start_scale: The standard deviation of the weights of random starts.
        starts: The number of starts.
        seed: The seed of the random starts.
        shadows: Whether runs that may be chaotic are descended again from slightly moved starts,
            see `engine.rounds`.
        refine: Whether step sizes between those of the grid are added, for every target; `auto`:
            for the one that is reported, unless that takes long.
        precision: `float64` or `float32`.
        record: The names of the arrays that are recorded for figures.
        theory: `auto` (what costs no more than the descent), `full` or `none`.
        shown_step: The step size whose run represents its scheme, one of step_sizes; None for the
            best.
        shown_point: The training point, from 0, that `record=[components]` builds up.
        draws: The seeds that drew the data, which seed the random starts, too; zeros change
            nothing.
        batch: The number of points that a step sees; None for all.
        batch_order: See `engine.plan`.
        batch_seed: See `engine.plan`.
        records_per_pass: The number of records of a pass; without a batch, where a pass is a step,
            it does not count.
        statistics: The points that a scheme is fitted on, see `engine.plan`.
        window: The number of points under `statistics=window`, else None.
        step_schedule: Passes and a factor, see `engine.plan`; None for step sizes that stay.

    Raises:
        UserError: A value is out of range, or two values exclude one another.
    """

    step_sizes: tuple[float, ...]
    iterations: int = default("iterations")
    start: Any = "zeros"
    start_scale: float = default("start_scale")
    starts: int = default("starts")
    seed: int = default("seed")
    shadows: bool = default("shadows")
    refine: bool | str = default("refine")
    precision: str = default("precision")
    record: tuple[str, ...] = tuple(default("record"))
    theory: str = default("theory")
    shown_step: float | None = default("shown_step")
    shown_point: int = default("shown_point")
    draws: tuple[int, ...] = ()
    batch: int | None = default("batch")
    batch_order: str = default("batch_order")
    batch_seed: int = default("batch_seed")
    records_per_pass: int = default("records_per_pass")
    statistics: str = default("normalizer.statistics")
    window: int | None = default("normalizer.window")
    step_schedule: tuple[int, float] | None = default("step_schedule")

    def __post_init__(self) -> None:
        """Check every field, and some against others."""
        for name, value in vars(self).items():
            # Two are named after the normalizer in the table of settings; `draws` is none of it.
            for row in {name, f"normalizer.{name}"} & settings.ROWS.keys():
                settings.check(row, value)
        shown_step = settings.find_step_size(self.shown_step, self.step_sizes)
        if shown_step is None and self.shown_step is not None:
            tried = ", ".join(f"{step_size:g}" for step_size in self.step_sizes)
            raise UserError(
                f"shown_step={self.shown_step:g}: is not one of step_sizes; choose of {tried}"
            )
        moves = self.statistics != FITTED
        if moves and (self.batch is None or self.start == "same_function"):
            raise UserError(
                f"normalizer.statistics={self.statistics}: is of steps that see a batch, from a "
                "start that does not move with the statistics; set batch, such as batch=200, and "
                "start=zeros or start=normal, or use statistics=fitted"
            )
        if (self.statistics == WINDOW_STATISTICS) != (self.window is not None):
            window = spell_setting("normalizer.window", self.window)
            rule = "a number of points, such as normalizer.window=1000, is for statistics=window"
            raise UserError(f"{window}: {rule}, and for no other")
        # The histories of all runs must fit in memory; one entry more, for the start.
        bytes_per_run = HISTORIES_PER_RUN * FLOAT64_BYTES * (self.records + 1)
        size = len(self.step_sizes) * self.starts * bytes_per_run
        grid = f"starts={self.starts}, {len(self.step_sizes)} step_sizes"
        refuse_larger(f"iterations={self.iterations}, {grid}", size, "choose fewer")
        if self.starts > 1 and self.start not in RANDOM_STARTS:
            random_starts = " or ".join(spell_setting("start", name) for name in RANDOM_STARTS)
            raise UserError(
                f"starts={self.starts}: {spell_setting('start', self.start)} is the same start "
                f"every time; use {random_starts} with several starts"
            )

    @property
    def records(self) -> int:
        """The number of records of a run after its start: iterations times records per pass.

        Without a batch a record is an update, with one it is a part of a pass.
        """
        return self.iterations * (self.records_per_pass if self.batch else 1)
