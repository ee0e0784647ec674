"""Withdrawals and deposits over time, to be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.charts import series
from beaconframes.charts.drawing import Axis, Bars, Drawing, Layer, Line
from beaconframes.charts.series import Unit
from beaconframes.frames import choose

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

Every = Literal["day", "week", "month"]

_DOTTED = 60  # Dots of more days than this run into each other.


def withdrawals(
    frame: IntoFrame, *, every: Every = "day", unit: Unit = "eth", cumulative: bool = False
) -> Drawing:
    """Prepare the chart of ``plot.withdrawals`` and ``interactive.withdrawals``."""
    rows = series.rows_of(frame, ["time", "amount_gwei"], loader="load_validator_withdrawals")
    lacking = series.lacking(frame, "no row that has a time and an amount")
    kinds = {"Withdrawals": (rows, colours.BLUE)}
    return _flows(kinds, "Withdrawals", lacking, every, unit, cumulative=cumulative)


def deposits(
    frame: IntoFrame, *, every: Every = "day", unit: Unit = "eth", cumulative: bool = False
) -> Drawing:
    """Prepare the chart of ``plot.deposits`` and ``interactive.deposits``."""
    columns = ["time", "amount_gwei", "valid_signature", "removed"]
    rows = series.rows_of(frame, columns, loader="load_deposits").filter(~pl.col("removed"))
    lacking = series.lacking(frame, "no row that has a time, an amount and a verdict, and stands")
    valid = pl.col("valid_signature")
    kinds = {
        "Valid signature": (rows.filter(valid), colours.BLUE),
        "Invalid signature": (rows.filter(~valid), colours.RED),
    }
    return _flows(kinds, "Deposits", lacking, every, unit, cumulative=cumulative)


def _flows(
    kinds: dict[str, tuple[pl.DataFrame, str]],
    what: str,
    lacking: str,
    every: Every,
    unit: Unit,
    *,
    cumulative: bool,
) -> Drawing:
    """Add amounts up per day, week or month, exactly; the kinds stand on each other."""
    choose("every", every, get_args(Every))
    choose("unit", unit, get_args(Unit))
    everything = pl.concat(
        rows.select(
            "amount_gwei", kind=pl.lit(name), time=pl.col("time").dt.truncate(series.LENGTHS[every])
        )
        for name, (rows, _) in kinds.items()
    )
    amount = pl.col("amount_gwei").cast(pl.Decimal(38, 0)).sum()
    sums = everything.group_by("time", "kind").agg(amount)
    buckets = sums.select("time").unique().sort("time")
    x = Axis(f"{series.TIME_NAMES[every]} (UTC)", every, series.moments(buckets["time"]))
    span = f"per {every}"
    if cumulative and buckets.height:
        span = f"since {series.day_name(everything['time'].min())}"
    y = Axis(f"{what} {span} ({series.UNIT_NAMES[unit]})", thousands=unit == "gwei")
    if buckets.is_empty():
        return Drawing(x, y, nothing=f"No {what.lower()} to draw: {lacking}")
    only = f"One {every} only" if buckets.height == 1 else None
    layers: list[Layer] = []
    base = np.zeros(buckets.height)
    moments = series.moments(buckets["time"])
    width = series.moments(buckets["time"].dt.offset_by(series.LENGTHS[every])) - moments
    for name, (rows, colour) in kinds.items():
        if rows.is_empty():
            continue
        own = buckets.join(
            sums.filter(pl.col("kind") == name), on="time", how="left", maintain_order="left"
        )
        amounts = own["amount_gwei"].fill_null(0)
        if cumulative:
            height = series.heights(amounts.cum_sum(), unit)
            layers.append(
                Line(moments, height, name, colour, marked=buckets.height <= _DOTTED, main=True)
            )
        else:
            height = series.heights(amounts, unit)
            layers.append(Bars(moments, height, name, colour, base.copy(), width * 0.8))
            base += height
    names = tuple(kinds) if len(kinds) > 1 else ()
    shown = {layer.name for layer in layers if isinstance(layer, Line | Bars)}
    return Drawing(x, y, tuple(layers), only=only, legend=tuple(n for n in names if n in shown))
