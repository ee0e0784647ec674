"""Charts of block proposals: a timeline, and their rewards."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.charts import series
from beaconframes.charts.caption import captioned
from beaconframes.charts.model import Axis, Chart, Layer, Points
from beaconframes.charts.series import Unit
from beaconframes.charts.sync_participation import build_missing_marks
from beaconframes.frames import check_choice

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

_COLUMNS = ["proposer_index", "slot", "time", "status"]
_MAX_NAMED = 20  # Up to this many validators have a named row.
_MANY = 3_000
# Name, colour, symbol and size of each status; rare statuses are drawn last, in front.
_STYLES = {
    "scheduled": ("Scheduled", colours.SLATE, "o", 4),
    "proposed": ("Proposed", colours.BLUE, "o", 4),
    "missed": ("Missed", colours.RED, "X", 6),
    "orphaned": ("Orphaned", colours.PURPLE, "D", 5),
}


@captioned
def proposals(frame: IntoFrame, produced: IntoFrame | None = None, *, unit: Unit = "eth") -> Chart:
    """Build the timeline of block proposals by validator, or of their execution rewards."""
    check_choice("unit", unit, get_args(Unit))
    rows = series.read_rows(frame, _COLUMNS, loader="load_proposals")
    rows = rows.filter(pl.col("status").is_in(list(_STYLES))).sort("slot", "proposer_index")
    x = Axis("Slot (UTC)", "slot", series.to_datetime64(rows["time"]))
    single_note = "One proposal only" if rows.height == 1 else None
    empty_note = None
    if rows.is_empty():
        reason = series.explain_empty(frame, "no row with a proposer, a slot, a time and a status")
        empty_note = f"No proposals to draw: {reason}"
    if produced is not None:
        y = Axis(
            f"Execution reward of the block ({series.UNIT_NAMES[unit]})", thousands=unit == "gwei"
        )
        if empty_note:
            return Chart(x, y, empty_note=empty_note)
        return _build_rewards(rows, produced, unit, x, y, single_note)
    validators = rows["proposer_index"].unique().sort().to_list()
    named = len(validators) <= _MAX_NAMED
    names = tuple(map(str, validators)) if named else ()
    y = Axis("Validator", tick_labels=names, integers=not named, reverse=bool(names))
    layers = []
    for status, (name, colour, symbol, size) in _STYLES.items():
        with_status = rows.filter(pl.col("status") == status)
        if with_status.height:
            ranks = with_status["proposer_index"]
            if named:
                ranks = ranks.replace_strict(validators, list(range(len(validators))))
            label = f"{name} ({with_status.height:,})"
            points = series.to_datetime64(with_status["time"]), ranks.cast(pl.Float64).to_numpy()
            hollow = status == "scheduled"
            marker_size = min(size, _choose_size(with_status.height))
            hover_names = tuple(map(str, with_status["proposer_index"])) if named else ()
            points_layer = Points(
                *points,
                label,
                colour,
                symbol,
                marker_size,
                hollow,
                takes_kwargs=True,
                validators=hover_names,
            )
            layers.append(points_layer)
    legend = tuple(layer.name for layer in layers)
    return Chart(
        x, y, tuple(layers), empty_note, single_note, legend=legend, validators=len(validators)
    )


def _choose_size(count: int) -> float:
    """Return a marker size at which this many markers stay separate."""
    return 10 if count <= _MANY else 1.5


def _build_rewards(
    rows: pl.DataFrame, produced: IntoFrame, unit: Unit, x: Axis, y: Axis, single_note: str | None
) -> Chart:
    """Build the rewards of proposed blocks; blocks without a reward are marked below."""
    columns = ["slot", "producer_reward_wei"]
    rewards = series.read_rows(produced, columns, loader="load_produced_blocks").unique("slot")
    proposed = rows.filter(pl.col("status") == "proposed").join(
        rewards, on="slot", how="left", maintain_order="left"
    )
    rewarded = proposed.drop_nulls("producer_reward_wei")
    layers: list[Layer] = []
    if rewarded.height:
        points = (
            series.to_datetime64(rewarded["time"]),
            series.convert_amounts(rewarded["producer_reward_wei"], unit),
        )
        label = f"Proposed ({rewarded.height:,})"
        layers.append(
            Points(
                *points,
                label,
                colours.BLUE,
                size=min(4, _choose_size(rewarded.height)),
                takes_kwargs=True,
            )
        )
    layers += build_missing_marks(rows, {"missed": 0.02, "orphaned": 0.05})
    unknown = proposed.height - rewarded.height
    if unknown:
        at = series.to_datetime64(proposed.filter(pl.col("producer_reward_wei").is_null())["time"])
        label = f"Reward unknown ({unknown:,})"
        layers.append(
            Points(at, np.full(unknown, 0.08), label, colours.SLATE, "o", hollow=True, strip=True)
        )
    names = tuple(layer.name for layer in layers if isinstance(layer, Points))
    count = rows["proposer_index"].n_unique()
    return Chart(x, y, tuple(layers), single_note=single_note, legend=names, validators=count)
