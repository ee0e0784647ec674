"""Charts of block proposals: a timeline, their numbers, and their rewards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.analysis.engines import check_distinct
from beaconframes.charts import series
from beaconframes.charts.model import Axis, Bars, Chart, Layer, Points
from beaconframes.charts.series import Unit
from beaconframes.charts.sync_participation import build_missing_marks
from beaconframes.frames import check_choice

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

Show = Literal["auto", "timeline", "counts"]

_COLUMNS = ["proposer_index", "slot", "time", "status"]
_MAX_NAMED = 20  # Up to this many validators have a named row.
_MOST_ROWS = 100  # More validators than this have no readable timeline: bars count proposals.
_MANY = 3_000
# The number of days that are drawn with bars of this length.
_STEPS = {"hour": 3, "day": 60, "week": 730}
_MOST_LISTED = 5
# Name, colour, symbol and size of each status; rare statuses are drawn last, in front.
_STYLES = {
    "scheduled": ("Scheduled", colours.SLATE, "o", 4),
    "proposed": ("Proposed", colours.BLUE, "o", 4),
    "missed": ("Missed", colours.RED, "X", 6),
    "orphaned": ("Orphaned", colours.PURPLE, "D", 5),
}

_OUTCOMES = {"proposed": colours.BLUE, "missed": colours.RED, "orphaned": colours.AMBER}
"""The colours of the bars in a report, where nothing else separates them."""


def proposals(
    frame: IntoFrame,
    produced: IntoFrame | None = None,
    *,
    show: Show = "auto",
    unit: Unit = "eth",
) -> Chart:
    """Draw block proposals: a timeline by validator, or their numbers over time.

    *frame* is the result of ``bf.load_proposals(...)``. Proposed, missed, orphaned and scheduled
    blocks have different markers; the legend counts each kind. With *show* ``"counts"``, bars have
    the number of each kind by hour, day, week or month; this is the default for more than 100
    validators. ``"timeline"`` always draws a marker per block.

    With *produced*, the result of ``bf.load_produced_blocks(...)``, the height is the producer's
    reward on the execution layer, in *unit*, on a logarithmic axis. Missed and orphaned blocks, and
    blocks without a reward or missing in *produced*, are drawn in rows below.

    *kwargs* go to the ``Axes.plot`` of the proposals.
    """
    check_choice("show", show, get_args(Show))
    check_choice("unit", unit, get_args(Unit))
    rows = series.read_rows(frame, _COLUMNS, loader="load_proposals")
    check_distinct(frame, ["slot", "proposer_index", "status"], loader="load_proposals")
    rows = rows.filter(pl.col("status").is_in(list(_STYLES))).sort("slot", "proposer_index")
    x = Axis("Slot (UTC)", "slot", series.to_datetime64(rows["time"]))
    single_note = "One proposal only" if rows.height == 1 else None
    empty_note = None
    if rows.is_empty():
        reason = series.explain_empty(frame, "no row with a proposer, a slot, a time and a status")
        empty_note = f"No proposals to draw: {reason}"
    if produced is not None:
        y = Axis(
            f"Execution reward of the block ({series.UNIT_NAMES[unit]})",
            thousands=unit == "gwei",
            logarithmic=True,
        )
        if empty_note:
            return Chart(x, y, empty_note=empty_note)
        return _build_rewards(rows, produced, unit, x, y, single_note)
    validators = rows["proposer_index"].unique().sort().to_list()
    if show == "counts" or (show == "auto" and len(validators) > _MOST_ROWS):
        return _build_counts(rows, empty_note, single_note)
    named = len(validators) <= _MAX_NAMED
    names = tuple(map(str, validators)) if named else ()
    y = Axis("Validator", tick_labels=names, integers=not named, reverse=bool(names))
    layers = _build_points(rows, validators if named else None)
    legend = tuple(layer.name for layer in layers)
    return Chart(
        x, y, tuple(layers), empty_note, single_note, legend=legend, validators=len(validators)
    )


def _build_points(rows: pl.DataFrame, named: list[int] | None) -> list[Points]:
    """Build the points of each status, in the rows of the *named* validators or by index."""
    layers = []
    for status, (name, colour, symbol, size) in _STYLES.items():
        with_status = rows.filter(pl.col("status") == status)
        if with_status.is_empty():
            continue
        places = with_status["proposer_index"]
        hover_names: tuple[str, ...] = ()
        if named is not None:
            hover_names = tuple(map(str, places))
            places = places.replace_strict(named, list(range(len(named))))
        layers.append(
            Points(
                series.to_datetime64(with_status["time"]),
                places.cast(pl.Float64).to_numpy(),
                f"{name} ({with_status.height:,})",
                colour,
                symbol,
                size=min(size, _choose_size(with_status.height)),
                hollow=status == "scheduled",
                takes_kwargs=True,
                validators=hover_names,
            )
        )
    return layers


def _build_counts(rows: pl.DataFrame, empty_note: str | None, single_note: str | None) -> Chart:
    """Build stacked bars of the number of proposals by hour, day, week or month."""
    if empty_note:
        return Chart(Axis("Day (UTC)", "day"), Axis("Proposals per day"), empty_note=empty_note)
    days = np.ptp(series.to_datetime64(rows["time"])) / np.timedelta64(1, "D")
    every = next((every for every, most in _STEPS.items() if days <= most), "month")
    counts = (
        rows.group_by(pl.col("time").dt.truncate(series.LENGTHS[every]))
        .agg((pl.col("status") == status).sum().alias(status) for status in _STYLES)
        .sort("time")
    )
    moments = series.to_datetime64(counts["time"])
    ends = series.to_datetime64(counts["time"].dt.offset_by(series.LENGTHS[every]))
    partial = series.find_partial_periods(moments, ends)
    base, layers = np.zeros(counts.height), []
    # Rare statuses are at the bottom, where they are visible.
    for status, (name, colour, _, _) in reversed(_STYLES.items()):
        if total := counts[status].sum():
            height, label = series.to_floats(counts[status]), f"{name} ({total:,})"
            width = (ends - moments) * 0.8
            layers.append(Bars(moments, height, label, colour, base.copy(), width, partial))
            base += height
    x = Axis(
        f"{series.TIME_NAMES[every]} (UTC, hatched: may be incomplete)",
        "epoch" if every == "hour" else every,
        moments,
    )
    return Chart(
        x,
        Axis(f"Proposals per {every}"),
        tuple(layers),
        single_note=single_note,
        legend=tuple(str(layer.name) for layer in reversed(layers)),
        validators=rows["proposer_index"].n_unique(),
        note=_name_missed(rows),
    )


def _name_missed(rows: pl.DataFrame) -> str:
    missed = rows.filter(status="missed")["proposer_index"].value_counts(name="missed")
    worst = missed.sort("missed", "proposer_index", descending=[True, False]).head(_MOST_LISTED)
    if worst.is_empty():
        return ""
    names = ", ".join(f"{index} ({count:,})" for index, count in worst.iter_rows())
    more = ", ..." if missed.height > worst.height else ""
    return f"missed by validators {names}{more}"


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
    known = proposed.drop_nulls("producer_reward_wei")
    is_positive = pl.col("producer_reward_wei") > 0
    rewarded = known.filter(is_positive)
    layers: list[Layer] = []
    if rewarded.is_empty():
        # Without a reward, the axis has no numbers.
        y = Axis(y.label, tick_labels=("",))
        single_note = "No block has a known reward above 0"
    else:
        at = series.to_datetime64(rewarded["time"])
        heights = series.convert_amounts(rewarded["producer_reward_wei"], unit)
        label, size = f"Proposed ({rewarded.height:,})", min(4, _choose_size(rewarded.height))
        layers.append(Points(at, heights, label, colours.BLUE, size=size, takes_kwargs=True))
    layers += build_missing_marks(rows, {"missed": 0.02, "orphaned": 0.05})
    # A logarithmic axis has no zero.
    others = {
        "No reward": known.filter(~is_positive),
        "Reward unknown": proposed.filter(pl.col("producer_reward_wei").is_null()),
    }
    for name, blocks in others.items():
        if blocks.height:
            at, label = series.to_datetime64(blocks["time"]), f"{name} ({blocks.height:,})"
            y_strip, hollow = np.full(blocks.height, 0.08), name == "Reward unknown"
            layers.append(Points(at, y_strip, label, colours.SLATE, "o", hollow=hollow, strip=True))
    names = tuple(layer.name for layer in layers if isinstance(layer, Points))
    count = rows["proposer_index"].n_unique()
    return Chart(x, y, tuple(layers), single_note=single_note, legend=names, validators=count)


def build_outcomes_chart(proposals: pl.DataFrame, tz: str = "UTC") -> Chart:
    """Build stacked bars of the number of proposals, from rows with ``time`` and ``status``.

    Days are those of the time zone *tz*.
    """
    status = pl.col("status")
    counts = (
        proposals.group_by(date=pl.col("time").dt.convert_time_zone(tz).dt.date())
        .agg((status == name).sum().alias(name) for name in _OUTCOMES)
        .sort("date")
    )
    times = series.read_dates(counts)
    base, layers = np.zeros(counts.height), []
    for name, colour in _OUTCOMES.items():
        height = series.to_floats(counts[name])
        if height.any():
            width = np.full(len(times), series.DAY_BAR)
            layers.append(Bars(times, height, name.capitalize(), colour, base, width))
            base = base + height
    legend = tuple(str(layer.name) for layer in layers)
    axes = Axis("Day", "day", times), Axis("Proposals", integers=True)
    return Chart(*axes, tuple(layers), legend=legend)
