"""The charts of a report: which ones its frames have, with title, height and text alternative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from beaconframes.charts import daily_validators as by_day
from beaconframes.charts import series
from beaconframes.charts.alt_text import describe_chart
from beaconframes.charts.daily_proposals import build_outcomes_chart
from beaconframes.charts.daily_rates import build_effectiveness_chart, build_rates_chart
from beaconframes.charts.income import build_daily_income_chart
from beaconframes.charts.luck import build_luck_chart
from beaconframes.charts.sync_strips import build_sync_chart
from beaconframes.charts.transfers import withdrawals
from beaconframes.text import for_matplotlib, for_plotly

if TYPE_CHECKING:
    from collections.abc import Callable
    from beaconframes.charts.model import Chart

    Frames = dict[str, pl.DataFrame]
    Escape = Callable[[object, int], str]

FEW_VALIDATORS = 30
"""Up to this many validators have a chart each; above, quantiles and the worst ten are drawn."""
_LEVEL = 0.95
_MOST_LUCK = 10
_DAY = np.timedelta64(1, "D")


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


def build_pictures(frames: Frames, *, interactive: bool = False) -> dict[str, Picture]:
    """Return the charts whose frames exist, by name."""
    escape = for_plotly if interactive else for_matplotlib
    pictures = (
        _build_income(frames),
        _build_rates(frames),
        _build_validators(frames),
        _build_effectiveness(frames),
        _build_balances(frames),
        _build_proposals(frames),
        _build_luck(frames, escape),
        _build_sync(frames),
        _build_withdrawals(frames),
    )
    return {picture.name: picture for picture in pictures if picture is not None}


def _frame(name: str, title: str, chart: Chart, height: float = 2.7) -> Picture:
    return Picture(name, title, describe_chart(chart, title), (chart,), height=height)


def _has(frames: Frames, *names: str) -> bool:
    """Return whether the frames exist and have rows."""
    return all(name in frames and not frames[name].is_empty() for name in names)


def _build_income(frames: Frames) -> Picture | None:
    if not _has(frames, "income"):
        return None
    chart = build_daily_income_chart(frames["income"])
    return _frame("income", "Income by component", chart, 3.5)


def _drop_short_days(rows: pl.DataFrame, counted: pl.DataFrame, count: str) -> pl.DataFrame:
    """Drop the first and the last day if they have less than half of the epochs of a day.

    *count* is the column of *counted* with a number per day that is proportional to its epochs.
    Rates of few epochs are mostly chance, and a sum would look like a loss. At least two days
    remain.
    """
    counts = dict(counted.select("date", count).sort("date").iter_rows())
    dates = list(counts)
    ends = [(dates[0], dates[1]), (dates[-1], dates[-2])] if len(dates) > 2 else []
    short = [day for day, other in ends if 2 * counts[day] < counts[other]]
    return rows.filter(~pl.col("date").is_in(short if len(dates) - len(short) > 1 else []))


def _build_rates(frames: Frames) -> Picture | None:
    if not _has(frames, "rates"):
        return None
    rates = frames["rates"]
    # The days of rates are those of the chain. Those of daily statistics are whole.
    if "validator_epochs" in rates.columns:
        rates = _drop_short_days(rates, rates, "validator_epochs")
    chart = build_rates_chart(rates, series.read_dates(rates))
    return None if chart.empty_note else _frame("rates", "Yearly rate", chart)


def _build_validators(frames: Frames) -> Picture | None:
    """Return one small chart per validator, or quantiles and the worst ten."""
    if not _has(frames, "days"):
        return None
    income = by_day.read_income(frames["days"])
    count = income["validator_index"].n_unique()
    if count == 1:
        return None
    if count > FEW_VALIDATORS:
        if _has(frames, "effectiveness"):
            income = _drop_short_days(income, frames["effectiveness"], "votes")
        return _frame("validators", "Income by validator", by_day.build_worst_chart(income))
    charts = by_day.build_validator_charts(income)
    title = "Income by validator (ETH per day)"
    alt = f"{title}: a small bar chart for each of {count} validators. Totals: "
    totals = income.group_by("validator_index").agg(pl.sum("income")).sort("validator_index")
    alt += "; ".join(f"{index}: {total:.5f} ETH" for index, total in totals.iter_rows()) + "."
    return Picture("validators", title, alt, tuple(charts.values()), tuple(map(str, charts)))


def _build_effectiveness(frames: Frames) -> Picture | None:
    if not _has(frames, "effectiveness"):
        return None
    rates = _drop_short_days(frames["effectiveness"], frames["effectiveness"], "votes")
    chart = build_effectiveness_chart(rates, frames.get("network"), series.read_dates(rates))
    has_votes = "effectiveness" in rates.columns
    title = "Effectiveness of votes" if has_votes else "Votes included"
    return _frame("effectiveness", title, chart)


def _build_balances(frames: Frames) -> Picture | None:
    if not _has(frames, "balances"):
        return None
    return _frame("balances", "Balances", by_day.build_spread_chart(frames["balances"]))


def _build_proposals(frames: Frames) -> Picture | None:
    if not _has(frames, "proposals"):
        return None
    return _frame("proposals", "Proposals", build_outcomes_chart(frames["proposals"]))


def _build_luck(frames: Frames, escape: Escape) -> Picture | None:
    """Return proposals and sync seats beside what chance gives, of each group or of all."""
    groups = ["group"] if "group_luck" in frames or "group_sync_luck" in frames else []
    prefix = "group_" if groups else ""
    names = {"Proposals": f"{prefix}luck", "Sync seats": f"{prefix}sync_luck"}
    tables = {
        title: frames[name].filter(pl.col("expected") > 0)
        for title, name in names.items()
        if _has(frames, name)
    }
    rows = sum(table.height for table in tables.values())
    if not rows or not _has(frames, "income"):
        return None
    times = series.read_dates(frames["income"])
    chart = build_luck_chart(tables, groups, times, level=_LEVEL, escape=escape, time_unit="day")
    title = f"Luck: {' and '.join(tables).lower()}"
    return _frame("luck", title, chart, 1.8 + 0.32 * min(rows, _MOST_LUCK))


def _build_sync(frames: Frames) -> Picture | None:
    """Return strips of the share of sync committee duties that each member signed."""
    if not _has(frames, "sync_epochs"):
        return None
    chart = build_sync_chart(frames["sync_epochs"])
    members = min(frames["sync_epochs"]["validator_index"].n_unique(), FEW_VALIDATORS)
    return _frame("sync", "Sync committees", chart, 1.5 + 0.11 * members)


def _build_withdrawals(frames: Frames) -> Picture | None:
    if not _has(frames, "withdrawals"):
        return None
    midnight = pl.col("date").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    rows = frames["withdrawals"].select(time=midnight, amount_gwei="withdrawals_gwei")
    days = rows["time"].dt.date()
    chart = withdrawals(rows, since=days[0], until=days[-1])
    return _frame("withdrawals", "Withdrawals", chart, 2.2)
