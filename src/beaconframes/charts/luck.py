"""Chart of luck: actual proposals and sync seats, compared with the expected numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.analysis.engines import list_columns
from beaconframes.analysis.luck import proposal_luck, sync_luck
from beaconframes.charts import series
from beaconframes.charts.caption import format_range
from beaconframes.charts.model import Area, Axis, Bars, Chart, Points, ReferenceLine
from beaconframes.errors import UsageError
from beaconframes.frames import collect, select_columns, to_polars

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.calendar import Chain
    from beaconframes.charts.model import Positions

_MAX_NAMED = 10  # Up to this many rows have room for a name and two numbers.
_LONGEST = 20  # Characters of the name of a group.
_NO_CHANCE = "no duty is expected, or of nearly all validators"
_EXPECTED = "As many as expected"
_DRAWN = ("drawn", "drawn_low", "drawn_high")
_NUMBERS = ["drawn_low", "drawn_high", *(f"{name}_percent" for name in _DRAWN), "is_outside"]


def luck(
    balances: IntoFrame,
    epochs: IntoFrame,
    proposals: IntoFrame | None = None,
    committees: IntoFrame | None = None,
    *,
    by: str | Sequence[str] = (),
    validators: IntoFrame | None = None,
    level: float = 0.95,
    chain: Chain | str | None = None,
    escape: Callable[[object, int], str] = lambda name, _: str(name),
) -> Chart:
    """Draw whether validators proposed more blocks, or had more sync seats, than expected.

    *balances* is the result of ``bf.load_balance_history(...)``, and *epochs* that of
    ``bf.load_epochs(...)`` over the same epochs: the expected numbers follow from the share of the
    effective balance in every epoch. *proposals* is the result of ``bf.load_proposals(...)``,
    *committees* that of ``bf.load_sync_committees(...)``; pass one or both. Each number is
    shown in percent of the expected one. The range behind it contains *level* of all cases if only
    chance decides; a marker outside of it is red.

    By default, all validators count together. *by* are the columns of *balances* that group them,
    such as ``"validator_index"``. More than 10 rows are ranked, the luckiest first. The caption
    states the epochs and committees that count: an epoch needs a row in both frames, a committee
    the epoch that selected it.
    *validators*, *level* and *chain* are as in ``bf.analysis.proposal_luck`` and
    ``bf.analysis.sync_luck``, which return the numbers.

    *kwargs* go to the ``Axes.plot`` of the markers.
    """
    if proposals is None and committees is None:
        raise UsageError(
            "luck needs proposals or sync committees",
            hint="Pass proposals=bf.load_proposals(...), or committees=, or both.",
        )
    groups = list_columns(by)
    options: dict[str, Any] = {"by": groups, "validators": validators, "level": level}
    tables, notes = {}, []
    times, count = _find_times(balances, epochs)
    if len(times) < count:
        listed = f"{len(times):,} of {count:,} epochs counted"
        notes.append(f"{listed}: the others are not in the frame of epochs")
    if proposals is not None:
        tables["Proposals"] = proposal_luck(proposals, balances, epochs, chain=chain, **options)
    if committees is not None:
        seats = sync_luck(committees, balances, epochs, chain=chain, **options)
        tables["Sync seats"] = seats
        notes += _describe_committees(committees, seats)
    reason = series.explain_empty(balances, _NO_CHANCE)
    return build_luck_chart(
        tables, groups, times, level=level, escape=escape, reason=reason, notes=notes
    )


def build_luck_chart(
    tables: Mapping[str, IntoFrame],
    groups: list[str],
    times: Positions,
    *,
    level: float | None,
    escape: Callable[[object, int], str],
    reason: str = _NO_CHANCE,
    time_unit: str = "epoch",
    notes: Sequence[str] = (),
) -> Chart:
    """Build the chart of the results of `proposal_luck` and `sync_luck`, by the name of the duty.

    *times* are those of the epochs, or of another *time_unit*. *reason* states why there may be
    nothing to draw, and *notes* what is not counted. Without a *level*, there is no range of
    chance.
    """
    kinds = {name: _read(table, with_range=level is not None) for name, table in tables.items()}
    kinds = {name: rows for name, rows in kinds.items() if rows.height}
    percent = Axis("Actual (% of expected)")
    if not kinds:
        reason = "; ".join([reason, *notes])
        return Chart(percent, Axis("Duty"), empty_note=f"No luck to draw: {reason}")
    if is_ranked := sum(rows.height for rows in kinds.values()) > _MAX_NAMED:
        order = [-pl.col("drawn_percent"), pl.col("expected"), *map(pl.col, groups)]
        kinds = {name: rows.sort(order) for name, rows in kinds.items()}
    range_name = "" if level is None else f"Range of chance ({100 * level:g} % of all cases)"
    names = [
        _describe_row(kind, row, groups, escape, with_kind=len(kinds) > 1 or not groups)
        for kind, rows in kinds.items()
        for row in rows.iter_rows(named=True)
    ]
    rows = pl.concat([rows.select(_NUMBERS) for rows in kinds.values()])
    texts = tuple(
        (name if level is None else f"{name}, {least:,} to {most:,} by chance").replace("\n", ", ")
        for name, (least, most) in zip(
            names, rows.select("drawn_low", "drawn_high").iter_rows(), strict=True
        )
    )
    layers = _build_layers(rows, texts, range_name, is_ranked=is_ranked)
    label = ", ".join(escape(name, _LONGEST) for name in groups).replace("_index", "")
    named = Axis(label.capitalize() or "Duty", tick_labels=tuple(names), reverse=True)
    note = "; ".join([format_range(Axis("", time_unit, times)), *notes])
    if is_ranked:
        what = "Validator" if groups == ["validator_index"] else "Group"
        named = Axis(f"{what}, luckiest first")
        if len(kinds) > 1:
            first, second = kinds.values()
            last = first.height + second.height
            note += (
                f"; 1 to {first.height:,}: proposals, {first.height + 1:,} to {last:,}: sync seats"
            )
    return Chart(
        named if is_ranked else percent,
        percent if is_ranked else named,
        (*layers, ReferenceLine(100.0, _EXPECTED, vertical=not is_ranked)),
        single_note="One epoch only" if time_unit == "epoch" and len(times) == 1 else None,
        legend=(*(str(layer.name) for layer in layers), _EXPECTED),
        note=note,
    )


def _read(table: IntoFrame, *, with_range: bool) -> pl.DataFrame:
    """Read the rows in which something is expected, with percentages."""
    rows = to_polars(table).filter(pl.col("expected") > 0)
    if with_range:
        rows = rows.drop_nulls("drawn_low")
    else:
        rows = rows.with_columns(drawn_low="drawn", drawn_high="drawn")
    percent = (pl.col(_DRAWN) * 100 / pl.col("expected")).name.suffix("_percent")
    is_outside = ~pl.col("drawn").is_between("drawn_low", "drawn_high")
    return rows.with_columns(percent, is_outside=is_outside)


def _find_times(balances: IntoFrame, epochs: IntoFrame) -> tuple[Positions, int]:
    """Return the times of the epochs that count, and the number of all epochs of *balances*.

    An epoch counts if the balance of all validators is known as well.
    """
    totals = select_columns(epochs, ["epoch", "eligible_ether_gwei"], loader="load_epochs")
    known = collect(totals).drop_nulls()["epoch"].implode()
    rows = select_columns(balances, ["epoch", "time"], loader="load_balance_history")
    held = collect(rows).drop_nulls().unique()
    counted = held.filter(pl.col("epoch").is_in(known))
    return series.to_datetime64(counted["time"]), held.height


def _describe_committees(committees: IntoFrame, seats: IntoFrame) -> list[str]:
    """Return how many committees count, unless all do."""
    rows = collect(select_columns(committees, ["period"], loader="load_sync_committees"))
    count = rows["period"].drop_nulls().n_unique()
    counted: Any = to_polars(seats)["periods"].max() or 0
    if counted == count:
        return []
    return [f"{counted} of {count} sync committees counted: those selected in these epochs"]


def _describe_row(
    kind: str,
    row: dict[str, Any],
    groups: list[str],
    escape: Callable[[object, int], str],
    *,
    with_kind: bool,
) -> str:
    """Return the label of a row: its group, what is counted, and both numbers."""
    if groups == ["validator_index"]:
        names = [f"validator {row['validator_index']}"]
    else:
        names = [escape(row[name], _LONGEST) for name in groups]
    if with_kind:
        names.append(kind.lower() if groups else kind)
    return f"{', '.join(names)}\n{row['drawn']:,} of {_format_number(row['expected'])} expected"


def _format_number(number: float) -> str:
    """Format an expected number with as many decimals as a reader needs."""
    decimals = 0 if number >= 1000 else 1 if number >= 10 else 2
    return f"{number:,.{decimals}f}" if number >= 0.005 else f"{number:.1g}"


def _build_layers(
    rows: pl.DataFrame, texts: Sequence[str], range_name: str, *, is_ranked: bool
) -> list[Bars | Area | Points]:
    """Build the range of chance of each row, and a marker for the actual number."""
    place = np.arange(rows.height) + (1 if is_ranked else 0)
    drawn, low, high = (series.to_floats(rows[f"{name}_percent"]) for name in _DRAWN)
    layers: list[Bars | Area | Points] = []
    if range_name and is_ranked:
        edges = np.append(place, place[-1] + 1) - 0.5
        low, high = np.append(low, low[-1]), np.append(high, high[-1])
        layers.append(Area(edges, low, high, range_name, colours.TEAL, stepped=True))
    elif range_name:
        bars = Bars(place, high - low, range_name, colours.TEAL, low, 0.5, horizontal=True)
        layers.append(replace(bars, takes_kwargs=False, texts=tuple(texts)))
    is_outside = rows["is_outside"].to_numpy()
    for name, colour, chosen in (
        ("Actual", colours.INK, ~is_outside),
        ("Actual, outside of the range", colours.RED, is_outside),
    ):
        if chosen.any():
            points = Points(drawn[chosen], place[chosen].astype(float), name, colour, "D", 7)
            if is_ranked:
                points = Points(place[chosen], drawn[chosen], name, colour, "D", 3)
            picked = tuple(text for text, is_chosen in zip(texts, chosen, strict=True) if is_chosen)
            layers.append(replace(points, texts=picked, takes_kwargs=True))
    return layers
