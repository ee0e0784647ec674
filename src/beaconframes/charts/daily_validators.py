"""Charts of many validators by day: small multiples, or the spread with the worst ten."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.charts import series
from beaconframes.charts.model import Area, Axis, Bars, Chart, Layer, Line

_WORST = 10
_LEAST_SPREAD = 0.005
_BAND, _MEDIAN, _WORST_NAME = "10 % to 90 %", "Median", "Worst ten"


def build_spread_chart(balances: pl.DataFrame) -> Chart:
    """Build the median balance and the range of most balances, from `analysis.daily_balances`."""
    times = series.read_dates(balances)
    low, middle, high = (
        series.convert_amounts(balances[f"balance_p{share}_gwei"], "eth") for share in (10, 50, 90)
    )
    # Balances between withdrawals differ by millionths of an ETH: their axis would be all noise.
    center = float(np.nanmedian(middle))
    y = Axis("Balance (ETH)", include=(center - _LEAST_SPREAD, center + _LEAST_SPREAD))
    layers = (
        Area(times, low, high, _BAND, colours.BLUE, opacity=0.25),
        Line(times, middle, _MEDIAN, colours.BLUE),
    )
    return Chart(Axis("Day", "day", times), y, layers, legend=(_MEDIAN, _BAND))


def read_income(ledger: pl.DataFrame) -> pl.DataFrame:
    """Return the income in ETH of each validator and day: that of both layers, if it is known."""
    is_known = ledger["net_income_wei"].null_count() == 0
    name = "net_income_wei" if is_known else "consensus_income_gwei"
    eth = pl.Series("income", series.convert_amounts(ledger[name], "eth"))
    return ledger.select("date", "validator_index").with_columns(eth)


def build_validator_charts(income: pl.DataFrame) -> dict[int, Chart]:
    """Build a small chart of bars for each validator."""
    found = {}
    for (validator,), own in income.sort("date").group_by("validator_index"):
        times = series.read_dates(own)
        width = np.full(len(times), series.DAY_BAR)
        bars = Bars(times, series.to_floats(own["income"]), None, colours.BLUE, width=width)
        axes = Axis("Day", "day", times), Axis("", zero_line=True)
        found[int(str(validator))] = Chart(*axes, (bars,))
    return dict(sorted(found.items()))


def build_worst_chart(income: pl.DataFrame) -> Chart:
    """Build the median income by day, the range of most validators, and those with the least."""
    quantiles = {"low": 0.1, "middle": 0.5, "high": 0.9}
    amount = pl.col("income")
    spread = income.group_by("date").agg(
        amount.quantile(share, "linear").alias(name) for name, share in quantiles.items()
    )
    spread = spread.sort("date")
    times = series.read_dates(spread)
    low, middle, high = (series.to_floats(spread[name]) for name in quantiles)
    sums = income.group_by("validator_index").agg(amount.sum()).sort("income", "validator_index")
    layers: list[Layer] = [Area(times, low, high, _BAND, colours.BLUE, opacity=0.25)]
    for validator in sums.head(_WORST)["validator_index"]:
        own = income.filter(pl.col("validator_index") == validator).sort("date")
        heights = series.to_floats(own["income"])
        layers.append(Line(series.read_dates(own), heights, _WORST_NAME, colours.RED, 0.8, 0.6))
    # Only one of these lines is in the legend.
    layers[2:] = [replace(layer, name="_") for layer in layers[2:] if isinstance(layer, Line)]
    layers.append(Line(times, middle, _MEDIAN, colours.BLUE))
    return Chart(
        Axis("Day", "day", times),
        Axis("ETH per validator", zero_line=True),
        tuple(layers),
        legend=(_MEDIAN, _BAND, _WORST_NAME),
    )
