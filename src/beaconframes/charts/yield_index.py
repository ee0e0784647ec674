"""Chart of the daily yield index, and of the yield of your own validators."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.analysis.group_comparison import compute_t_quantile
from beaconframes.analysis.validator_yield import compute_own_rates
from beaconframes.charts import series
from beaconframes.charts.model import Area, Axis, Chart, Layer, Line, Points
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

# Name, and colours: of days, 7-day average, 31-day average, own validators.
_WHOLE = {"": ("", colours.GREY, colours.BLUE, colours.RED, colours.PURPLE)}
_LAYERS = {
    "cl_": ("Consensus, ", colours.CYAN, colours.BLUE, colours.PURPLE, colours.SLATE),
    "el_": ("Execution, ", colours.AMBER, colours.ORANGE, colours.RED, colours.BROWN),
}

_FEW_DAYS, _FEW_VALIDATORS = 30, 10

_QUANTITIES = {"": "Yield", "cl_": "Consensus yield", "el_": "Execution yield"}


def yield_index(
    frame: IntoFrame,
    income: IntoFrame | None = None,
    balances: IntoFrame | None = None,
    *,
    split: bool = False,
) -> Chart:
    """Draw the yield index in percent per year: days as dots, averages over 7 and 31 days as lines.

    *frame* is the result of ``bf.load_yield_index(...)``; the averages are columns of it. With
    *split*, the consensus and the execution layer have a panel each; the second is
    {second_panel}. Lines stop where days are missing. Averages begin with the 7th and the
    31st day of a chain.

    With *income* and *balances* of some validators, the results of ``bf.load_income_history(...)``
    and ``bf.load_balance_history(...)`` for the same days, their daily yield is drawn as well, by
    the same definition. Validators with missing rows on a day are left out of it.

    *kwargs* go to the ``Axes.plot`` of the dots.
    """
    if (income is None) != (balances is None):
        raise UsageError(
            "the yield of validators needs both income and balances: one is missing",
            hint="Pass both: bf.load_income_history(...) and bf.load_balance_history(...).",
        )
    styles = _LAYERS if split else _WHOLE
    rates = [f"{layer}apr{window}" for layer in styles for window in ("", "_avg_7d", "_avg_31d")]
    index_rows = series.read_rows(frame, ["day", "time"], loader="load_yield_index", also=rates)
    percent = pl.col(rates).cast(pl.Float64) * 100
    rows = (
        index_rows.sort("day")
        .with_columns(pl.when(percent.is_finite()).then(percent))
        .filter(pl.any_horizontal(pl.col(rates).is_not_null()))
    )
    x = Axis("Day (UTC)", "day", series.to_datetime64(rows["time"]))
    y = Axis("Yield (APR, %)")
    if rows.is_empty():
        reason = series.explain_empty(frame, "no row with a day, a time and a rate")
        return Chart(x, y, empty_note=f"No yield to draw: {reason}")
    own_rows, note = None, ""
    if income is not None and balances is not None:
        own_rows = compute_own_rates(income, balances, frame)
        if own_rows.is_empty():
            note = "own yield not drawn: no validator has all rows of a day"
        few = own_rows["validators"] < _FEW_VALIDATORS
        if own_rows.height < _FEW_DAYS and few.any():
            count = f"{few.sum()} day{'' if few.sum() == 1 else 's'}"
            note = (
                f"own yield of {count} not drawn: fewer than {_FEW_VALIDATORS} validators, "
                f"and fewer than {_FEW_DAYS} days, are mostly chance"
            )
            own_rows = own_rows.filter(~few)
    panels = [_build_panel(x, rows, own_rows, layer, style) for layer, style in styles.items()]
    return replace(
        panels[0],
        single_note="One day only" if rows.height == 1 else None,
        legend=tuple(name for panel in panels for name in panel.legend),
        panel=panels[1] if split else None,
        panel_share=0.5,
        note=note,
    )


def _build_panel(
    x: Axis,
    rows: pl.DataFrame,
    own_rows: pl.DataFrame | None,
    layer: str,
    style: tuple[str, ...],
) -> Chart:
    """Build the panel of both layers together, or of one of them."""
    layers = _build_index(rows, f"{layer}apr", style)
    if own_rows is not None and not own_rows.is_empty():
        layers += _build_own(own_rows, f"{layer}apr", style)
    names = tuple(layer.name for layer in layers if isinstance(layer, Area | Line | Points))
    return Chart(x, Axis(f"{_QUANTITIES[layer]} (APR, %)"), tuple(layers), legend=names)


def _build_index(rows: pl.DataFrame, rate: str, style: tuple[str, ...]) -> list[Layer]:
    """Build one rate: its days, and its averages where there are any."""
    name, dot_colour, week_colour, month_colour, _ = style
    days = series.to_floats(rows[rate])
    x = series.to_datetime64(rows["time"])
    daily = f"{name}daily".capitalize()
    layers: list[Layer] = [Points(x, days, daily, dot_colour, size=2.5, takes_kwargs=True)]
    for window, colour in (("7", week_colour), ("31", month_colour)):
        label = f"{name}{window}-day average".capitalize()
        # On the first days of a chain, the service averages fewer days.
        full = rows.filter(pl.col("day") >= int(window) - 1)
        y = full[f"{rate}_avg_{window}d"]
        if y.count():
            curve = series.build_curve(full["day"], full["time"], series.to_floats(y))
            layers.append(Line(*curve, label, colour))
    return layers


def _build_own(rows: pl.DataFrame, rate: str, style: tuple[str, ...]) -> list[Layer]:
    """Build the line of the daily yield of your own validators, and the band of its interval."""
    percent, error = (100 * series.to_floats(rows[name]) for name in (rate, f"{rate}_error"))
    counts = rows["validators"]
    quantiles = {
        n: compute_t_quantile(0.975, n - 1) if n >= _FEW_VALIDATORS else np.nan
        for n in counts.unique()
    }
    margin = error * np.array([quantiles[n] for n in counts])
    (x, y), (_, low), (_, high) = (
        series.build_curve(rows["day"], rows["time"], heights)
        for heights in (percent, percent - margin, percent + margin)
    )
    name = f"{style[0]}your validators".capitalize()
    band = Area(x, low, high, f"{name}, 95 % interval", style[-1], opacity=0.25)
    line = Line(x, y, name, style[-1], marked=True)
    return [band, line] if np.isfinite(margin).any() else [line]
