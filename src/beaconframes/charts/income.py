"""Chart of income over time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.analysis.execution_income import FEES_ONLY
from beaconframes.analysis.income import income as sum_income
from beaconframes.analysis.income_columns import PENALTIES, REWARDS
from beaconframes.charts import series, validator_lines
from beaconframes.charts.caption import captioned
from beaconframes.charts.model import Area, Axis, Bars, Chart
from beaconframes.charts.series import Unit
from beaconframes.frames import check_choice, to_polars

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.model import Floats, Positions

Every = Literal["epoch", "day", "week", "month"]
By = Literal["total", "component", "validator"]

_PARTS = {
    "attestation_reward_gwei": ("Attestations", colours.BLUE),
    "proposal_reward_gwei": ("Block proposals", colours.AMBER),
    "sync_committee_reward_gwei": ("Sync committee", colours.CYAN),
    "slashing_reward_gwei": ("Slashing rewards", colours.KHAKI),
    "execution_income_wei": ("Execution income", colours.PURPLE),
    "attestation_penalty_gwei": ("Attestation penalties", colours.RED),
    "finality_delay_penalty_gwei": ("Finality delay penalties", colours.BROWN),
    "sync_committee_penalty_gwei": ("Sync committee penalties", colours.ORANGE),
    "slashing_penalty_gwei": ("Slashing penalties", colours.SLATE),
}
CONSENSUS_ONLY = "consensus layer only, because priority fees are missing"
# Part, base and height.
_Stack = list[tuple[str, "Floats", "Floats"]]


@captioned
def income(
    frame: IntoFrame,
    *,
    blocks: IntoFrame | None = None,
    every: Every = "day",
    unit: Unit = "eth",
    by: By = "total",
    cumulative: bool = False,
) -> Chart:
    """Build the income by epoch, day, week or month: bars, lines, or stacked components."""
    check_choice("unit", unit, get_args(Unit))
    check_choice("by", by, get_args(By))
    check_choice("every", every, get_args(Every))
    groups = "validator_index" if by == "validator" else ()
    rows = to_polars(sum_income(frame, blocks=blocks, every=every, by=groups, coverage=True))
    is_known = not rows["execution_income_wei"].null_count()
    if not is_known:
        consensus = pl.col("consensus_income_gwei").cast(pl.Decimal(28, 0)) * 10**9
        rows = rows.with_columns(
            consensus.cast(pl.Decimal(28, 0)).alias("net_income_wei"),
            pl.lit(0, pl.Decimal(28, 0)).alias("execution_income_wei"),
        )
    if every != "epoch":
        midnight = pl.col("date").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        rows = rows.with_columns(time=midnight)
    bars = every != "epoch" and not cumulative
    style = "hollow" if by == "validator" else "hatched"
    incomplete = "" if cumulative or rows["complete"].all() else f", {style} where incomplete"
    x = Axis(
        f"{series.TIME_NAMES[every]} (UTC{incomplete})", every, series.to_datetime64(rows["time"])
    )
    quantity = "Income" if by == "component" else "Net income" if is_known else "Consensus income"
    suffix = " and validator" if by == "validator" else ""
    span = f"per {every}{suffix}"
    if cumulative and not rows.is_empty():
        span = f"since {series.format_day(rows['time'].min())}"
    y = Axis(f"{quantity} {span} ({series.UNIT_NAMES[unit]})", thousands=unit == "gwei")
    note = CONSENSUS_ONLY if not is_known else FEES_ONLY if blocks is None else ""
    if rows.is_empty():
        reason = series.explain_empty(frame, "no row with a time and every amount")
        return Chart(x, y, empty_note=f"No income to draw: {reason}")
    single_note = f"One {every} only" if rows["time"].n_unique() == 1 else None
    chart = Chart(x, y, single_note=single_note, note=note)
    number = pl.col("first_epoch") if every == "epoch" else series.number_units(every)
    rows = rows.with_columns(number=number)
    if cumulative:
        rows = _accumulate(rows)
    if by == "component":
        layers, legend = _build_components(rows, every, unit, bars=bars)
        return replace(chart, y=replace(y, zero_line=True), layers=layers, legend=legend)
    rows = rows.with_columns(y=pl.Series(series.convert_amounts(rows["net_income_wei"], unit)))
    if by == "validator":
        lines, title = validator_lines.build_lines(rows, marked=every != "epoch")
        names = tuple(line.name for line in lines)
        return replace(chart, layers=tuple(lines), legend=names, legend_title=title)
    if bars:
        moments = series.to_datetime64(rows["time"])
        net = Bars(
            moments,
            series.to_floats(rows["y"]),
            width=_compute_bar_widths(rows, every),
            incomplete=_find_incomplete(rows),
        )
        return replace(chart, layers=(net,))
    line = validator_lines.build_line(rows, quantity, marked=every != "epoch")
    return replace(chart, layers=(line,))


def _accumulate(rows: pl.DataFrame) -> pl.DataFrame:
    """Replace amounts by exact running sums; per validator where there are validators."""
    amounts = [*REWARDS, *PENALTIES, "execution_income_wei", "net_income_wei"]
    sums = pl.col(amounts).cast(pl.Decimal(38, 0)).cum_sum()
    if "validator_index" in rows.columns:
        sums = sums.over("validator_index", order_by="time")
    return rows.with_columns(sums, complete=True)


def _find_incomplete(rows: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.asarray(~rows["complete"].to_numpy())


def _compute_bar_widths(rows: pl.DataFrame, every: Every) -> Positions:
    """Return the widths of the bars: four fifths of each day, week or month."""
    length = rows["time"].dt.offset_by(series.LENGTHS[every])
    return (series.to_datetime64(length) - series.to_datetime64(rows["time"])) * 0.8


def _stack_parts(rows: pl.DataFrame, unit: Unit) -> _Stack:
    """Return part, base and height of the non-zero parts: rewards upwards, penalties downwards."""
    top, bottom = np.zeros(rows.height), np.zeros(rows.height)
    stack = []
    for part in _PARTS:
        height = series.convert_amounts(rows[part], unit) * (-1 if part in PENALTIES else 1)
        if height.any():
            base = bottom if part in PENALTIES else top
            stack.append((part, base.copy(), height))
            base += height
    return stack


def _build_components(
    rows: pl.DataFrame, every: Every, unit: Unit, *, bars: bool
) -> tuple[tuple[Bars, ...] | tuple[Area, ...], tuple[str, ...]]:
    """Build the stack of parts, as bars or as steps, and the names in the same order."""
    stack = _stack_parts(rows, unit)
    above = [_PARTS[part][0] for part, *_ in stack if part not in PENALTIES]
    below = [_PARTS[part][0] for part, *_ in stack if part in PENALTIES]
    layers = _build_bars(rows, stack, every) if bars else _build_areas(rows, stack, every)
    return layers, (*reversed(above), *below)


def _build_bars(rows: pl.DataFrame, stack: _Stack, every: Every) -> tuple[Bars, ...]:
    """Build a stack of bars at the start of each day, week or month."""
    x, width, incomplete = (
        series.to_datetime64(rows["time"]),
        _compute_bar_widths(rows, every),
        _find_incomplete(rows),
    )
    return tuple(
        Bars(x, height, *_PARTS[part], base, width, incomplete) for part, base, height in stack
    )


def _build_areas(rows: pl.DataFrame, stack: _Stack, every: Every) -> tuple[Area, ...]:
    """Build a stack of steps, each as wide as its epoch, day, week or month."""
    x = series.to_datetime64(rows["time"])
    if every == "epoch":
        jumps = np.diff(rows["number"].to_numpy())
        # The length of a single epoch is unknown, and has no effect on the drawing.
        width = (np.diff(x) // jumps).min() if len(jumps) else np.timedelta64(384, "s")
        ends = x + width
    else:
        ends = series.to_datetime64(rows["time"].dt.offset_by(series.LENGTHS[every]))
    positions, stepped = series.build_steps(x, ends, series.find_gaps(rows["number"]))
    # Every step reaches down to zero, and the outermost is drawn first: otherwise an epoch that is
    # narrower than a pixel would lose colours.
    return tuple(
        Area(
            positions,
            stepped(0 * height),
            stepped(base + height),
            *_PARTS[part],
            stepped(height),
            stepped=True,
            takes_kwargs=True,
        )
        for part, base, height in reversed(stack)
    )
