"""Chart of days as a calendar: a column for each week, a row for each day of the week."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import polars as pl

from beaconframes.analysis.attestation_losses import attestation_rates
from beaconframes.charts import series
from beaconframes.charts.income import describe_execution_income, sum_periods
from beaconframes.charts.model import Axis, Chart, Heatmap
from beaconframes.charts.series import Unit
from beaconframes.errors import UsageError
from beaconframes.frames import check_choice, to_polars

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.model import Positions

Show = Literal["income", "missed"]

_DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
_WEEK = np.timedelta64(7, "D").astype("timedelta64[us]")


def calendar(
    frame: IntoFrame,
    *,
    blocks: IntoFrame | None = None,
    validators: IntoFrame | None = None,
    show: Show = "income",
    unit: Unit = "eth",
) -> Chart:
    """Draw each day (UTC) of an income history as a cell of a calendar: a column for each week.

    *frame* is the result of ``bf.load_income_history(...)``. The colour is the net income of all
    validators together, as `income` draws it; with *show* ``"missed"``, the share of their votes
    that were missed. Days without all epochs have no cell if income is drawn, because their income
    is lower. Days far from most others have the colour at the end of the scale.

    With *blocks*, the result of ``bf.load_produced_blocks(...)``, execution income is what the
    proposers received; without it, priority fees, relay payments not included.

    With *validators*, the result of ``bf.load_validators(...)``, penalties after an exit are no
    missed votes.

    *kwargs* go to ``Axes.imshow``.
    """
    check_choice("show", show, get_args(Show))
    check_choice("unit", unit, get_args(Unit))
    if show == "missed":
        if blocks is not None:
            raise UsageError(
                'blocks= and show="missed" exclude each other', hint="Missed votes need no blocks."
            )
        days, label, note = _read_missed(frame, validators), "Votes missed per day (%)", ""
    elif validators is not None:
        raise UsageError(
            "validators= is for missed votes only", hint='Pass show="missed", or leave it out.'
        )
    else:
        sums, is_known = sum_periods(frame, blocks, "day", "total")
        days = sums.filter(pl.col("complete")).sort("date")
        days = days.with_columns(y=series.convert_amounts(days["net_income_wei"], unit))
        quantity = "Net income" if is_known else "Consensus income"
        label = f"{quantity} per day ({series.UNIT_NAMES[unit]})"
        note = describe_execution_income(is_known=is_known, has_blocks=blocks is not None)
    mondays = series.read_dates(days.select(pl.col("date").dt.truncate("1w")))
    axes = Axis(f"{series.TIME_NAMES['week']} (UTC)", "week", mondays), Axis("Day of the week")
    if days.is_empty():
        reason = series.explain_empty(frame, "no whole day")
        return Chart(*axes, empty_note=f"No days to draw: {reason}")
    single_note = "One day only" if days.height == 1 else None
    layer = _build_cells(days, mondays, label)
    dates = series.read_dates(days)
    return Chart(*axes, (layer,), days=dates, note=note, single_note=single_note)


def _build_cells(days: pl.DataFrame, mondays: Positions, label: str) -> Heatmap:
    """Build the cells of *days*, whose weeks begin on *mondays*."""
    heights, weekdays = series.to_floats(days["y"]), days["date"].dt.weekday().to_numpy() - 1
    at = weekdays, (mondays - mondays.min()) // _WEEK
    cells = np.full((7, at[1].max() + 1), np.nan)
    cells[at] = heights
    texts = np.full(cells.shape, "", dtype="<U64")
    unit = label.rpartition("(")[2].removesuffix(")")
    texts[at] = [
        f"{_DAYS[weekday]} {date:%Y-%m-%d}: {height:,.6g} {unit}"
        for weekday, date, height in zip(weekdays, days["date"], heights, strict=True)
    ]
    low, high = np.quantile(heights, (0.1, 0.9))
    return Heatmap(
        mondays.min(),
        _WEEK,
        _DAYS,
        cells,
        quantity=label,
        limits=series.find_limits(heights.min(), low, high, heights.max()),
        texts=texts,
        has_validators=False,
    )


def _read_missed(frame: IntoFrame, validators: IntoFrame | None) -> pl.DataFrame:
    """Return the share of missed votes in percent. One row per day with a vote."""
    rates = to_polars(attestation_rates(frame, validators=validators, every="day"))
    voted = rates.filter(pl.col("votes") > 0).sort("date")
    return voted.select("date", y=100 * (1 - pl.col("included_rate")))
