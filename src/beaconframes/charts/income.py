"""Income over time, to be drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.analysis.income import income as sum_income
from beaconframes.analysis.income_columns import PENALTIES, REWARDS
from beaconframes.charts import crowd, series
from beaconframes.charts.drawing import Area, Axis, Bars, Drawing
from beaconframes.charts.series import Unit
from beaconframes.frames import choose, to_polars

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.drawing import Floats, Places

Every = Literal["epoch", "day", "week", "month"]
By = Literal["total", "component", "validator"]

_PARTS = {
    "attestation_reward_gwei": ("Attestations", colours.BLUE),
    "proposal_reward_gwei": ("Block proposals", colours.AMBER),
    "sync_committee_reward_gwei": ("Sync committee", colours.CYAN),
    "slashing_reward_gwei": ("Slashing rewards", colours.KHAKI),
    "execution_income_wei": ("Execution fees", colours.PURPLE),
    "attestation_penalty_gwei": ("Attestation penalties", colours.RED),
    "finality_delay_penalty_gwei": ("Finality delay penalties", colours.BROWN),
    "sync_committee_penalty_gwei": ("Sync committee penalties", colours.ORANGE),
    "slashing_penalty_gwei": ("Slashing penalties", colours.SLATE),
}
# Name, colour, base and height of each part.
_Stack = list[tuple[str, "Floats", "Floats"]]


def income(
    frame: IntoFrame,
    *,
    every: Every = "day",
    unit: Unit = "eth",
    by: By = "total",
    cumulative: bool = False,
) -> Drawing:
    """Prepare the chart of ``plot.income`` and ``interactive.income``."""
    choose("unit", unit, get_args(Unit))
    choose("by", by, get_args(By))
    choose("every", every, get_args(Every))
    groups = "validator_index" if by == "validator" else ()
    rows = to_polars(sum_income(frame, every=every, by=groups, coverage=True))
    if every != "epoch":
        midnight = pl.col("date").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        rows = rows.with_columns(time=midnight)
    bars = every != "epoch" and not cumulative
    cut = "hollow" if by == "validator" else "hatched"
    cut = "" if cumulative or rows["complete"].all() else f", {cut} where incomplete"
    x = Axis(f"{series.TIME_NAMES[every]} (UTC{cut})", every, series.moments(rows["time"]))
    what = "Income" if by == "component" else "Net income"
    whose = " and validator" if by == "validator" else ""
    span = f"per {every}{whose}"
    if cumulative and not rows.is_empty():
        span = f"since {series.day_name(rows['time'].min())}"
    y = Axis(f"{what} {span} ({series.UNIT_NAMES[unit]})", thousands=unit == "gwei")
    if rows.is_empty():
        lacking = series.lacking(frame, "no row that has a time and every amount")
        return Drawing(x, y, nothing=f"No income to draw: {lacking}")
    only = f"One {every} only" if rows["time"].n_unique() == 1 else None
    number = pl.col("first_epoch") if every == "epoch" else series.calendar_number(every)
    rows = rows.with_columns(number=number)
    if cumulative:
        rows = _summed(rows)
    if by == "component":
        drawing = _components(rows, every, unit, bars=bars)
        return replace(drawing, x=x, y=replace(y, zero=True), only=only)
    rows = rows.with_columns(y=pl.Series(series.heights(rows["net_income_wei"], unit)))
    if by == "validator":
        lines, title = crowd.lines(rows, marked=every != "epoch")
        names = tuple(line.name for line in lines)
        return Drawing(x, y, tuple(lines), only=only, legend=names, legend_title=title)
    if bars:
        moments = series.moments(rows["time"])
        net = Bars(moments, series.floats(rows["y"]), width=_width(rows, every), cut=_cut(rows))
        return Drawing(x, y, (net,), only=only)
    line = crowd.line(rows, "Net income", marked=every != "epoch")
    return Drawing(x, y, (line,), only=only)


def _summed(rows: pl.DataFrame) -> pl.DataFrame:
    """Add up what came before, exactly; per validator where there are validators."""
    amounts = [*REWARDS, *PENALTIES, "execution_income_wei", "net_income_wei"]
    sums = pl.col(amounts).cast(pl.Decimal(38, 0)).cum_sum()
    if "validator_index" in rows.columns:
        sums = sums.over("validator_index", order_by="time")
    return rows.with_columns(sums, complete=True)


def _cut(rows: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.asarray(~rows["complete"].to_numpy())


def _width(rows: pl.DataFrame, every: Every) -> Places:
    """Give four fifths of each day, week or month: the width of its bar."""
    length = rows["time"].dt.offset_by(series.LENGTHS[every])
    return (series.moments(length) - series.moments(rows["time"])) * 0.8


def _stack(rows: pl.DataFrame, unit: Unit) -> _Stack:
    """Give name, base and height of the parts that occur, rewards upwards, penalties downwards."""
    top, bottom = np.zeros(rows.height), np.zeros(rows.height)
    stack = []
    for part in _PARTS:
        height = series.heights(rows[part], unit) * (-1 if part in PENALTIES else 1)
        if height.any():
            base = bottom if part in PENALTIES else top
            stack.append((part, base.copy(), height))
            base += height
    return stack


def _components(rows: pl.DataFrame, every: Every, unit: Unit, *, bars: bool) -> Drawing:
    """Stack the parts, as bars or as steps; the legend lists them as they lie on each other."""
    stack = _stack(rows, unit)
    above = [_PARTS[part][0] for part, *_ in stack if part not in PENALTIES]
    below = [_PARTS[part][0] for part, *_ in stack if part in PENALTIES]
    layers = _bars(rows, stack, every) if bars else _steps(rows, stack, every)
    axis = Axis("")
    return Drawing(axis, axis, tuple(layers), legend=(*reversed(above), *below))


def _bars(rows: pl.DataFrame, stack: _Stack, every: Every) -> list[Bars]:
    """Draw a stack of bars over the start of each day, week or month."""
    x, width, cut = series.moments(rows["time"]), _width(rows, every), _cut(rows)
    return [Bars(x, height, *_PARTS[part], base, width, cut) for part, base, height in stack]


def _steps(rows: pl.DataFrame, stack: _Stack, every: Every) -> list[Area]:
    """Draw the parts as stacked steps, each as wide as its epoch, day, week or month."""
    x = series.moments(rows["time"])
    if every == "epoch":
        jumps = np.diff(rows["number"].to_numpy())
        # A single epoch does not tell its length, and nothing stands beside it: any will do.
        width = (np.diff(x) // jumps).min() if len(jumps) else np.timedelta64(384, "s")
        ends = x + width
    else:
        ends = series.moments(rows["time"].dt.offset_by(series.LENGTHS[every]))
    places, stepped = series.steps(x, ends, series.holes(rows["number"]))
    # Every step reaches down to zero, the outermost drawn first: so an epoch that is narrower than
    # a pixel keeps its colours.
    return [
        Area(
            places,
            stepped(0 * height),
            stepped(base + height),
            *_PARTS[part],
            stepped(height),
            steps=True,
            main=True,
        )
        for part, base, height in reversed(stack)
    ]
