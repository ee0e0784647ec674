"""Proposed, missed and orphaned blocks and what they brought, to be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.charts import series
from beaconframes.charts.drawing import Axis, Dots, Drawing, Layer
from beaconframes.charts.participation import lost
from beaconframes.charts.series import Unit
from beaconframes.frames import choose

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

_COLUMNS = ["proposer_index", "slot", "time", "status"]
_NAMED = 20  # As many validators have a row with their name.
_MANY = 3_000
# Per status: name, colour, symbol, size; what is rare lies in front.
_LOOKS = {
    "scheduled": ("Scheduled", colours.SLATE, "o", 4),
    "proposed": ("Proposed", colours.BLUE, "o", 4),
    "missed": ("Missed", colours.RED, "X", 6),
    "orphaned": ("Orphaned", colours.PURPLE, "D", 5),
}


def proposals(
    frame: IntoFrame, produced: IntoFrame | None = None, *, unit: Unit = "eth"
) -> Drawing:
    """Prepare the chart of ``plot.proposals`` and ``interactive.proposals``."""
    choose("unit", unit, get_args(Unit))
    rows = series.rows_of(frame, _COLUMNS, loader="load_proposals")
    rows = rows.filter(pl.col("status").is_in(list(_LOOKS))).sort("slot", "proposer_index")
    x = Axis("Slot (UTC)", "slot", series.moments(rows["time"]))
    only = "One proposal only" if rows.height == 1 else None
    nothing = None
    if rows.is_empty():
        lacking = series.lacking(frame, "no row that has a proposer, a slot, a time and a status")
        nothing = f"No proposals to draw: {lacking}"
    if produced is not None:
        y = Axis(
            f"Execution reward of the block ({series.UNIT_NAMES[unit]})", thousands=unit == "gwei"
        )
        if nothing:
            return Drawing(x, y, nothing=nothing)
        return _rewards(rows, produced, unit, x, y, only)
    validators = rows["proposer_index"].unique().sort().to_list()
    named = len(validators) <= _NAMED
    names = tuple(map(str, validators)) if named else ()
    y = Axis("Validator", names=names, whole=not named, reverse=bool(names))
    layers = []
    for status, (name, colour, symbol, size) in _LOOKS.items():
        some = rows.filter(pl.col("status") == status)
        if some.height:
            ranks = some["proposer_index"]
            if named:
                ranks = ranks.replace_strict(validators, list(range(len(validators))))
            label = f"{name} ({some.height:,})"
            points = series.moments(some["time"]), ranks.cast(pl.Float64).to_numpy()
            hollow = status == "scheduled"
            fit = min(size, _size(some.height))
            who = tuple(map(str, some["proposer_index"])) if named else ()
            dots = Dots(*points, label, colour, symbol, fit, hollow, main=True, who=who)
            layers.append(dots)
    legend = tuple(layer.name for layer in layers)
    return Drawing(x, y, tuple(layers), nothing, only, legend=legend)


def _size(count: int) -> float:
    """Give the size of so many dots that they can be told apart."""
    return 10 if count <= _MANY else 1.5


def _rewards(
    rows: pl.DataFrame, produced: IntoFrame, unit: Unit, x: Axis, y: Axis, only: str | None
) -> Drawing:
    """Draw what the proposed blocks brought; those that are lost stand beneath."""
    columns = ["slot", "producer_reward_wei"]
    rewards = series.rows_of(produced, columns, loader="load_produced_blocks").unique("slot")
    brought = rows.filter(pl.col("status") == "proposed").join(
        rewards, on="slot", how="left", maintain_order="left"
    )
    there = brought.drop_nulls("producer_reward_wei")
    layers: list[Layer] = []
    if there.height:
        points = series.moments(there["time"]), series.heights(there["producer_reward_wei"], unit)
        label = f"Proposed ({there.height:,})"
        layers.append(
            Dots(*points, label, colours.BLUE, size=min(4, _size(there.height)), main=True)
        )
    layers += lost(rows, {"missed": 0.02, "orphaned": 0.05})
    unknown = brought.height - there.height
    if unknown:
        at = series.moments(brought.filter(pl.col("producer_reward_wei").is_null())["time"])
        label = f"Reward not given ({unknown:,})"
        layers.append(
            Dots(at, np.full(unknown, 0.08), label, colours.SLATE, "o", hollow=True, strip=True)
        )
    names = tuple(layer.name for layer in layers if isinstance(layer, Dots))
    return Drawing(x, y, tuple(layers), only=only, legend=names)
