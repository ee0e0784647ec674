"""Charts of one line per day: yearly rates, and the effectiveness of votes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes import colours
from beaconframes.charts import series
from beaconframes.charts.caption import format_range
from beaconframes.charts.model import Axis, Chart, Layer, Line, ReferenceLine

if TYPE_CHECKING:
    from beaconframes.charts.model import Positions

_RATES = (
    ("apr_on_effective", "Own rate", colours.BLUE),
    ("index_apr", "Yield index", colours.ORANGE),
)
_VOTES = {"effectiveness": "Effectiveness", "included_rate": "Votes included"}


def build_rates_chart(rates: pl.DataFrame, times: Positions) -> Chart:
    """Build the lines of the yearly rate and of the yield index, from the rows of `analysis.apr`.

    *times* are those of the days.
    """
    layers = tuple(
        Line(times, 100 * series.to_floats(rates[name]), title, colour, marked=True)
        for name, title, colour in _RATES
        if name in rates.columns and rates[name].null_count() < rates.height
    )
    note = None if layers else "No rate to draw: execution income is unknown"
    names = tuple(layer.name for layer in layers)
    axes = Axis("Day", "day", times), Axis("Yearly rate (%)")
    return Chart(*axes, layers, empty_note=note, legend=names)


def build_effectiveness_chart(
    rates: pl.DataFrame, network: pl.DataFrame | None, times: Positions
) -> Chart:
    """Build the line of the effectiveness of votes, with that of the network.

    From the rows of `analysis.attestation_rates` and `analysis.compare_with_network`, with
    ``since`` and ``until`` of the network. Daily statistics have only the share of votes that were
    included.
    """
    name = "effectiveness" if "effectiveness" in rates.columns else "included_rate"
    title = _VOTES[name]
    percent = 100 * series.to_floats(rates[name])
    layers: list[Layer] = [Line(times, percent, title, colours.BLUE, marked=True)]
    legend = [title]
    if network is not None:
        others = network.filter(pl.col("measure") == name)["network"].drop_nulls()
        if others.len():
            window = pl.concat([network["since"].head(1), network["until"].head(1)]).drop_nulls()
            span = format_range(Axis("", "day", series.to_datetime64(window)))
            legend.append(", ".join(filter(None, ("Network", span))))
            layers.append(ReferenceLine(100 * others[0], legend[-1]))
    y = Axis(f"{title} (%)", maximum=100.5)
    return Chart(Axis("Day", "day", times), y, tuple(layers), legend=tuple(legend))
