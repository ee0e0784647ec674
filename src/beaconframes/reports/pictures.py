"""The charts of a report: which ones its frames have, with title, height and text alternative."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from beaconframes.charts import daily_validators as by_day
from beaconframes.charts import series
from beaconframes.charts.alt_text import describe_chart
from beaconframes.charts.daily_rates import build_effectiveness_chart, build_rates_chart
from beaconframes.charts.income import build_daily_income_chart
from beaconframes.charts.luck import build_luck_chart
from beaconframes.charts.model import Bars
from beaconframes.charts.proposals import build_outcomes_chart
from beaconframes.charts.sync_members import build_sync_chart
from beaconframes.charts.transfers import withdrawals
from beaconframes.text import for_matplotlib, for_plotly

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date

    from beaconframes.charts.model import Chart
    from beaconframes.reports.input_frames import Frames

    Escape = Callable[[object, int], str]

FEW_VALIDATORS = 30
"""Up to this many validators have a chart each; above, quantiles and the worst ten are drawn."""
_MOST_LUCK = 10
_FRAMES = {"validators": ("days",), "luck": ("luck", "sync_luck"), "sync": ("sync_epochs",)}
"""The frames of pictures with other names."""
_HATCHED = "hatched where incomplete"


@dataclass(frozen=True)
class Picture:
    """A chart of a report, and what it shows for readers who do not see it."""

    name: str
    title: str
    alt: str
    charts: tuple[Chart, ...]
    labels: tuple[str, ...] = ()
    """Titles of small multiples."""
    height: float = 2.7
    """In inches; small multiples have one of their own."""

    @property
    def frames(self) -> tuple[str, ...]:
        """Return the frames that it shows."""
        return _FRAMES.get(self.name, (self.name,))


def build_pictures(frames: Frames, *, interactive: bool = False) -> dict[str, Picture]:
    """Return the charts whose frames exist, by name."""
    escape = for_plotly if interactive else for_matplotlib
    builders: tuple[tuple[str, Callable[[Frames], Picture | None]], ...] = (
        ("income", _build_income),
        ("rates", _build_rates),
        ("days", _build_validators),
        ("effectiveness", _build_effectiveness),
        ("balances", _build_balances),
        ("proposals", _build_proposals),
        ("income", partial(_build_luck, escape=escape)),
        ("sync_epochs", _build_sync),
        ("withdrawals", _build_withdrawals),
    )
    pictures = (build(frames) for name, build in builders if _has(frames, name))
    return {picture.name: picture for picture in pictures if picture is not None}


def _frame(name: str, title: str, chart: Chart, height: float = 2.7) -> Picture:
    return Picture(name, title, describe_chart(chart, title), (chart,), height=height)


def _has(frames: Frames, name: str) -> bool:
    """Return whether a frame exists and has rows."""
    return name in frames and not frames[name].is_empty()


def _build_income(frames: Frames) -> Picture:
    chart = _hatch(build_daily_income_chart(frames["income"]), frames)
    return _frame("income", "Income by component", chart, 3.5)


def _drop_short_days(rows: pl.DataFrame, count: str) -> pl.DataFrame:
    """Drop the first and the last day if they have less than half of the epochs of a day.

    The column *count* is proportional to the epochs of a day. Rates of few epochs are mostly
    chance. At least two days remain.
    """
    counts = dict(rows.select("date", count).sort("date").iter_rows())
    dates = list(counts)
    ends = [(dates[0], dates[1]), (dates[-1], dates[-2])] if len(dates) > 2 else []
    short = [day for day, other in ends if 2 * counts[day] < counts[other]]
    return rows.filter(~pl.col("date").is_in(short if len(dates) - len(short) > 1 else []))


def _list_incomplete_days(frames: Frames) -> list[date]:
    """Return the days that are not wholly in the range: a sum would look like a loss."""
    if "income" not in frames or "complete" not in frames["income"].columns:
        return []
    return frames["income"].filter(~pl.col("complete"))["date"].to_list()


def _hatch(chart: Chart, frames: Frames) -> Chart:
    """Hatch the bars of incomplete days, also in the second panel, and name them at the axis."""
    days = np.array(_list_incomplete_days(frames), "datetime64[D]")
    assert chart.x.times is not None
    if not np.isin(chart.x.times.astype("datetime64[D]"), days).any():
        return chart
    label = f"{chart.x.label.removesuffix(')')}, {_HATCHED})"
    label = label if "(" in label else f"{chart.x.label} ({_HATCHED})"
    layers = tuple(
        replace(layer, incomplete=np.isin(layer.x.astype("datetime64[D]"), days))
        if isinstance(layer, Bars)
        else layer
        for layer in chart.layers
    )
    panel = _hatch(chart.panel, frames) if chart.panel else None
    return replace(chart, x=replace(chart.x, label=label), layers=layers, panel=panel)


def _build_rates(frames: Frames) -> Picture | None:
    rates = frames["rates"]
    # The days of rates are those of the chain. Those of daily statistics are whole.
    if "validator_epochs" in rates.columns:
        rates = _drop_short_days(rates, "validator_epochs")
    chart = build_rates_chart(rates, series.read_dates(rates))
    return None if chart.empty_note else _frame("rates", "Yearly rate", chart)


def _build_validators(frames: Frames) -> Picture | None:
    """Return one small chart per validator, or quantiles and the worst ten."""
    income = by_day.read_income(frames["days"])
    count = income["validator_index"].n_unique()
    if count == 1:
        return None
    if count > FEW_VALIDATORS:
        whole = income.filter(~pl.col("date").is_in(_list_incomplete_days(frames)))
        income = whole if whole["date"].n_unique() > 1 else income
        return _frame("validators", "Income by validator", by_day.build_worst_chart(income))
    charts = by_day.build_validator_charts(income)
    charts = {index: _hatch(chart, frames) for index, chart in charts.items()}
    hatched = f", {_HATCHED}" if _list_incomplete_days(frames) else ""
    title = f"Income by validator (ETH per day{hatched})"
    alt = f"{title}: a small bar chart for each of {count} validators. Totals: "
    totals = income.group_by("validator_index").agg(pl.sum("income")).sort("validator_index")
    alt += "; ".join(f"{index}: {total:.5f} ETH" for index, total in totals.iter_rows()) + "."
    return Picture("validators", title, alt, tuple(charts.values()), tuple(map(str, charts)))


def _build_effectiveness(frames: Frames) -> Picture:
    rates = _drop_short_days(frames["effectiveness"], "votes")
    chart = build_effectiveness_chart(rates, frames.get("network"), series.read_dates(rates))
    has_votes = "effectiveness" in rates.columns
    title = "Effectiveness of votes" if has_votes else "Votes included"
    return _frame("effectiveness", title, chart)


def _build_balances(frames: Frames) -> Picture:
    return _frame("balances", "Balances", by_day.build_spread_chart(frames["balances"]))


def _build_proposals(frames: Frames) -> Picture:
    facts = dict(frames["facts"].iter_rows())
    # Statistics have days of the chain, which have no time zone.
    tz = facts["days"] if facts["detail"] == "every epoch" else "UTC"
    chart = _hatch(build_outcomes_chart(frames["proposals"], tz), frames)
    return _frame("proposals", "Proposals", chart)


def _build_luck(frames: Frames, escape: Escape) -> Picture | None:
    """Return proposals and sync seats beside the expected numbers, of each group or of all."""
    groups = ["group"] if "group_luck" in frames or "group_sync_luck" in frames else []
    prefix = "group_" if groups else ""
    names = {"Proposals": f"{prefix}luck", "Sync seats": f"{prefix}sync_luck"}
    tables = {
        title: frames[name].filter(pl.col("expected") > 0)
        for title, name in names.items()
        if _has(frames, name)
    }
    rows = sum(table.height for table in tables.values())
    if not rows:
        return None
    times = series.read_dates(frames["income"])
    chart = build_luck_chart(tables, groups, times, level=None, escape=escape, time_unit="day")
    title = f"Luck: {' and '.join(tables).lower()}"
    return _frame("luck", title, chart, 1.8 + 0.32 * min(rows, _MOST_LUCK))


def _build_sync(frames: Frames) -> Picture:
    """Return strips of the share of sync committee duties that each member signed."""
    chart = build_sync_chart(frames["sync_epochs"])
    members = min(frames["sync_epochs"]["validator_index"].n_unique(), FEW_VALIDATORS)
    return _frame("sync", "Sync committees", chart, 1.5 + 0.11 * members)


def _build_withdrawals(frames: Frames) -> Picture:
    rows = frames["withdrawals"].select(time=series.MIDNIGHT, amount_gwei="withdrawals_gwei")
    days = rows["time"].dt.date()
    chart = withdrawals(rows, since=days[0], until=days[-1])
    return _frame("withdrawals", "Withdrawals", _hatch(chart, frames), 2.2)
