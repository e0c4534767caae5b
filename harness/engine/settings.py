"""The settings of a descent, checked against the table of settings."""

from dataclasses import dataclass, fields
from typing import Any

from normbench import settings
from normbench.datasets.values import (
    FLOAT64_BYTES,
    UserError,
    format_value,
    refuse_larger,
    spell_setting,
)
from normbench.settings import FITTED as FITTED
from normbench.settings import RANDOM_STARTS, WINDOW_STATISTICS, default

HISTORIES_PER_RUN = 4  # of a run: costs and counts, of the training and of the test points


@dataclass(frozen=True)
class Settings:
    """How the runs of one job start, step and end; every field is checked on construction.

    step_sizes: distinct positive numbers. iterations: steps after the start. start: `zeros`,
    `normal` (start_scale times a standard normal, the same weights under every scheme),
    `same_function` (the same function under every affine scheme: see `engine.start`), or weights,
    bias first (one list, or one for each class). starts: how many starts. seed: of the starts.
    shadows: runs that may be chaotic are descended once more. refine: `auto`, true or false: step
    sizes between those of the grid. theory: `auto` (what costs no more than the descent), `full` or
    `none`. shown_step: the step size whose run represents its scheme, one of step_sizes; None for
    the best. shown_point: the training point, from 0, that `record=[components]` builds up. draws:
    the seeds that drew the data: another draw has other starts; zeros change nothing. fold: make no
    copy of the points under the scheme; the numbers are the same to rounding. batch: how many
    points a step sees, None for all; iterations are then passes over the points, each recorded
    `records_per_pass` times (without a batch each step is recorded once), and there are no shadows
    and no finer step sizes. batch_order, batch_seed: see `engine.batches`. step_schedule: passes
    and a factor, see `engine.schedule`; None for step sizes that stay. statistics, window: see
    `engine.statistics`. Raises `UserError`.
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
    fold: bool = default("fold")
    batch: int | None = default("batch")
    batch_order: str = default("batch_order")
    batch_seed: int = default("batch_seed")
    records_per_pass: int = default("records_per_pass")
    statistics: str = default("normalizer.statistics")
    window: int | None = default("normalizer.window")
    step_schedule: tuple[int, float] | None = default("step_schedule")

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name in settings.ROWS:
                value = settings.check(field.name, getattr(self, field.name))
                object.__setattr__(self, field.name, value)
        if self.shown_step not in (None, *self.step_sizes):
            tried = ", ".join(f"{step_size:g}" for step_size in self.step_sizes)
            raise UserError(
                f"shown_step={self.shown_step:g}: is not one of step_sizes; choose of {tried}"
            )
        if self.batch is not None:
            object.__setattr__(self, "shadows", False)
            object.__setattr__(self, "refine", False)
        else:  # every step is recorded
            object.__setattr__(self, "records_per_pass", 1)
        self._check_statistics()
        runs = len(self.step_sizes) * self.starts
        refuse_larger(
            f"iterations={self.iterations}, starts={self.starts}, "
            f"{len(self.step_sizes)} step_sizes",
            HISTORIES_PER_RUN * FLOAT64_BYTES * runs * (self.records + 1),
            "choose fewer",
        )
        if self.starts > 1 and self.start not in RANDOM_STARTS:
            random_starts = " or ".join(spell_setting("start", name) for name in RANDOM_STARTS)
            raise UserError(
                f"starts={self.starts}: {spell_setting('start', self.start)} is the same start "
                f"every time; use {random_starts} with several starts"
            )

    def _check_statistics(self) -> None:
        """Check the statistics of a scheme against the batch, the start and the window.

        Raises:
            UserError: The statistics move with the batches and there is no batch, or the start is
                `same_function`; or a window is given for statistics other than `window`, or is
                missing for these.
        """
        for name in ("statistics", "window"):  # named after the normalizer in the table of settings
            settings.check(f"normalizer.{name}", getattr(self, name))
        if self.statistics != FITTED and self.batch is None:
            raise UserError(
                f"normalizer.statistics={self.statistics}: is of steps that see a batch; set "
                "batch, such as batch=200, or use statistics=fitted"
            )
        if self.statistics != FITTED and self.start == "same_function":
            raise UserError(
                f"normalizer.statistics={self.statistics}: the function of start=same_function "
                "moves with the statistics; use start=zeros, or start=normal"
            )
        if (self.statistics == WINDOW_STATISTICS) != (self.window is not None):
            raise UserError(
                f"normalizer.window={format_value(self.window)}: statistics={self.statistics}; "
                "a number of points belongs to statistics=window, such as normalizer.window=1000, "
                "and to no other"
            )

    @property
    def records(self) -> int:
        """The number of records of a run after its start: iterations times records per pass.

        Without a batch a record is an update, with one it is a part of a pass.
        """
        return self.iterations * self.records_per_pass
