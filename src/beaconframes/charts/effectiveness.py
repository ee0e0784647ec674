"""Chart of the effectiveness of votes over time."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

import polars as pl

from beaconframes import colours
from beaconframes.analysis.attestation_losses import attestation_rates
from beaconframes.charts import series, validator_lines
from beaconframes.charts.model import Axis, Chart, Line
from beaconframes.frames import check_choice, to_polars

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.model import Area

Every = Literal["day", "week", "month"]

_PERFECT = 100.0


def effectiveness(
    frame: IntoFrame,
    network: IntoFrame | None = None,
    *,
    validators: IntoFrame | None = None,
    every: Every = "day",
) -> Chart:
    """Draw how effective the votes of each validator were, with the range of other validators.

    *frame* is the result of ``bf.load_income_history(...)``. The effectiveness is that of
    ``bf.analysis.attestation_rates``: 100 % if every vote was timely and right. Each validator has
    a line; of more than 50, the median, the band of 80 % of them, and the extremes are drawn. Days,
    weeks and months are those of UTC.

    With *network*, the income history of other validators, such as some hundred of the whole chain,
    a grey band has 80 % of these, and a dashed line their median.

    With *validators*, the result of ``bf.load_validators(...)``, penalties after an exit are no
    missed votes.

    *kwargs* go to the ``Axes.plot`` of the validators (of many: of the median).
    """
    check_choice("every", every, get_args(Every))
    rows = _read_rates(frame, validators, every)
    x = Axis(f"{series.TIME_NAMES[every]} (UTC)", every, series.to_datetime64(rows["time"]))
    y = Axis(f"Effectiveness of votes per {every} (%)", include=(_PERFECT,))
    if rows.is_empty():
        reason = series.explain_empty(frame, "no row with a time and the rewards of a vote")
        return Chart(x, y, empty_note=f"No votes to draw: {reason}")
    single_note = f"One {every} only" if rows["time"].n_unique() == 1 else None
    chart = Chart(x, y, single_note=single_note)
    chart = validator_lines.build_layers(rows, marked=True).add_to(chart)
    if network is None:
        return chart
    others = _read_rates(network, validators, every)
    if others.is_empty():
        return replace(chart, note="no votes of other validators to draw")
    band = _build_network(others)
    names = tuple(layer.name for layer in band)
    # Explicit, because the cycle of colours in plotly counts the layers behind them.
    own = (
        replace(layer, colour=colour) if isinstance(layer, Line) and not layer.colour else layer
        for layer, colour in zip(chart.layers, itertools.cycle(colours.CYCLE), strict=False)
    )
    return replace(chart, layers=(*band, *own), legend=(*chart.legend, *names))


def _read_rates(frame: IntoFrame, validators: IntoFrame | None, every: Every) -> pl.DataFrame:
    """Return the effectiveness in percent. One row per validator and day, week or month."""
    rates = attestation_rates(frame, validators=validators, every=every, by="validator_index")
    rows = to_polars(rates).drop_nulls("effectiveness")
    y = 100 * pl.col("effectiveness")
    rows = rows.with_columns(time=series.MIDNIGHT, y=y, complete=True)
    return rows.with_columns(number=series.number_units(every))


def _build_network(rows: pl.DataFrame) -> tuple[Area, Line]:
    """Build the band of 80 % of the other validators, and the line of their median."""
    shares = {"low": 0.1, "middle": 0.5, "high": 0.9}
    spread = rows.group_by("number", "time").agg(
        pl.quantile("y", share, "linear").alias(name) for name, share in shares.items()
    )
    spread = spread.sort("number")
    others = f"{rows['validator_index'].n_unique():,} others"
    name = f"10 % to 90 % of {others}"
    band = validator_lines.build_band(spread, "low", "high", name, 0.25, colours.GREY)
    middle = series.to_floats(spread["middle"])
    curve = series.build_curve(spread["number"], spread["time"], middle)
    return band, Line(*curve, f"Median of {others}", colours.SLATE, 1.4, dashed=True)
