"""Charts of deposits and withdrawals over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.analysis.engines import check_distinct
from beaconframes.charts import series
from beaconframes.charts.model import Axis, Bars, Chart, Layer, Line
from beaconframes.charts.series import Unit
from beaconframes.frames import check_choice

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.time_range import Moment

Every = Literal["day", "week", "month"]

Kinds: TypeAlias = dict[str, tuple[pl.DataFrame, str]]
"""The rows and the colour of each kind of transfer, by its name in the legend."""

_MAX_MARKERS = 60  # Markers of more days than this overlap.


def withdrawals(
    frame: IntoFrame,
    *,
    every: Every = "day",
    unit: Unit = "eth",
    cumulative: bool = False,
    since: Moment | None = None,
    until: Moment | None = None,
) -> Chart:
    """Draw withdrawals: bars for days, weeks or months (UTC).

    *frame* is the result of ``bf.load_validator_withdrawals(...)`` or
    ``bf.load_slot_withdrawals(...)``; amounts are summed exactly. Days without a withdrawal have no
    bar.

    Bars that may be incomplete are hatched: the first and the last, because rows do not contain the
    range that was loaded. *since* and *until*, dates or times, are that range: then the bars that
    it does not cover completely are hatched.

    *cumulative* draws the sum since the first row instead.

    *kwargs* go to ``Axes.bar``, or to ``Axes.plot`` (cumulative).
    """
    loader = "load_validator_withdrawals"
    rows = series.read_rows(frame, ["time", "amount_gwei"], loader=loader)
    check_distinct(frame, ["withdrawal_index"], loader=loader)
    reason = series.explain_empty(frame, "no row with a time and an amount")
    kinds = {"Withdrawals": (rows, colours.BLUE)}
    loaded = since, until
    return _build_transfers(
        kinds, "Withdrawals", reason, every, unit, loaded, cumulative=cumulative
    )


def deposits(
    frame: IntoFrame,
    *,
    every: Every = "day",
    unit: Unit = "eth",
    cumulative: bool = False,
    since: Moment | None = None,
    until: Moment | None = None,
) -> Chart:
    """Draw deposits: bars for days, weeks or months (UTC).

    *frame* is the result of ``bf.load_deposits(...)`` or ``bf.load_transaction_deposits(...)``;
    amounts are summed exactly. Deposits with an invalid signature, which have no effect, are
    stacked on the others in red, and those with an unknown one in grey. Deposits removed by a
    reorganization are left out.

    Bars that may be incomplete are hatched: the first and the last, because rows do not contain the
    range that was loaded. *since* and *until*, dates or times, are that range: then the bars that
    it does not cover completely are hatched.

    *cumulative* draws the sum since the first row instead.

    *kwargs* go to ``Axes.bar``, or to ``Axes.plot`` (cumulative).
    """
    columns, also = ["time", "amount_gwei", "removed"], ["valid_signature"]
    rows = series.read_rows(frame, columns, loader="load_deposits", also=also)
    check_distinct(frame, ["tx_hash", "merkletree_index"], loader="load_deposits")
    rows = rows.filter(~pl.col("removed"))
    reason = series.explain_empty(frame, "no deposit with a time and an amount")
    valid = pl.col("valid_signature")
    kinds = {
        "Valid signature": (rows.filter(valid), colours.BLUE),
        "Invalid signature": (rows.filter(~valid), colours.RED),
        "Signature not checked": (rows.filter(valid.is_null()), colours.GREY),
    }
    title, loaded = "Deposits", (since, until)
    return _build_transfers(kinds, title, reason, every, unit, loaded, cumulative=cumulative)


def _build_transfers(
    kinds: Kinds,
    title: str,
    reason: str,
    every: Every,
    unit: Unit,
    loaded: tuple[Moment | None, Moment | None],
    *,
    cumulative: bool,
) -> Chart:
    """Build stacked bars of the exact sums by day, week or month, or lines of running sums.

    The rows do not contain the range that was *loaded*.
    """
    check_choice("every", every, get_args(Every))
    check_choice("unit", unit, get_args(Unit))
    sums = _sum_kinds(kinds, every)
    periods = sums.select("time").unique().sort("time")
    if cumulative and periods.height:
        # Between two transfers, the running sum stays the same.
        periods = periods.upsample("time", every=series.LENGTHS[every])
    starts = series.to_datetime64(periods["time"])
    ends = series.to_datetime64(periods["time"].dt.offset_by(series.LENGTHS[every]))
    partial = series.find_partial_periods(starts, ends, *loaded)
    hatched = ""
    if not cumulative and partial.any():
        hatched = ", hatched: may be incomplete" if None in loaded else ", hatched where incomplete"
    x = Axis(f"{series.TIME_NAMES[every]} (UTC{hatched})", every, starts)
    span = f"per {every}"
    if cumulative and periods.height:
        span = f"since {series.format_day(periods['time'].min())}"
    y = Axis(f"{title} {span} ({series.UNIT_NAMES[unit]})", thousands=unit == "gwei")
    if periods.is_empty():
        return Chart(x, y, empty_note=f"No {title.lower()} to draw: {reason}")
    # A single point needs a note; a bar does not, and the note would cover it.
    single_note = f"One {every} only" if cumulative and periods.height == 1 else None
    layers: list[Layer] = []
    base = np.zeros(periods.height)
    for name, (rows, colour) in kinds.items():
        if rows.is_empty():
            continue
        of_kind = sums.filter(pl.col("kind") == name)
        joined = periods.join(of_kind, on="time", how="left", maintain_order="left")
        amounts = joined["amount_gwei"].fill_null(0)
        if cumulative:
            sums_so_far = series.convert_amounts(amounts.cum_sum(), unit)
            marked = periods.height <= _MAX_MARKERS
            line = Line(starts, sums_so_far, name, colour, marked=marked, takes_kwargs=True)
            layers.append(line)
        else:
            height = series.convert_amounts(amounts, unit)
            width = (ends - starts) * 0.8
            layers.append(Bars(starts, height, name, colour, base.copy(), width, partial))
            base += height
    shown = [name for name, (rows, _) in kinds.items() if not rows.is_empty()]
    legend = tuple(shown) if len(kinds) > 1 else ()
    return Chart(x, y, tuple(layers), single_note=single_note, legend=legend)


def _sum_kinds(kinds: Kinds, every: Every) -> pl.DataFrame:
    """Return the exact amounts by kind and by day, week or month."""
    start = pl.col("time").dt.truncate(series.LENGTHS[every])
    rows = pl.concat(
        rows.select("amount_gwei", kind=pl.lit(name), time=start)
        for name, (rows, _) in kinds.items()
    )
    return rows.group_by("time", "kind").agg(pl.col("amount_gwei").cast(pl.Decimal(38, 0)).sum())
