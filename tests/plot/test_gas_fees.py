"""Charts of gas fees."""

import numpy as np
import polars as pl
import pytest
from matplotlib.colors import rgb_to_hsv, to_hex, to_rgb

from beaconframes import charts, colours, plot

from ..support.chart_frames import gas
from ..support.drawn_charts import lines_by_name, tick_labels


def test_a_reading_of_gas_fees_is_bars():
    """Fastest first, in gwei; the axis has the time of the reading."""
    ax = plot.gas_fees(gas(0))

    assert pytest.approx([4.0, 3.0, 2.0, 1.0]) == [bar.get_height() for bar in ax.patches]
    assert ["Rapid\n15 s", "Fast\n1 min"] == tick_labels(ax.xaxis)[:2]
    assert "About how long until included" == ax.get_xlabel()
    assert "Rapid, about 15 s: 4 gwei; Fast, about 1 min: 3 gwei" in plot.alt_text(ax)
    assert "One reading: Dec 1, 2020, 12:00 UTC" == charts.gas_fees(gas(0)).note
    assert "Gas price (gwei)" == ax.get_ylabel()


def test_a_tier_without_a_price_is_unknown():
    """The text of its bar has no number."""
    reading = gas(0).with_columns(fast_wei=pl.lit(None, pl.Int64))

    text = plot.alt_text(plot.gas_fees(reading))

    assert "Rapid, about 15 s: 4 gwei; Fast, about 1 min: unknown" in text


def test_readings_of_gas_fees_are_lines():
    """A line per tier, which stops at a pause of more than three times the usual pause."""
    ax = plot.gas_fees(gas(0, 5, 10, 26, 31), unit="wei")
    whole = plot.gas_fees(gas(0, 5, 10, 25, 30), unit="wei")

    heights = lines_by_name(ax)["Slow (about 10 min)"].get_ydata()
    assert [False, False, False, True, False, False] == list(np.isnan(heights))
    assert {1e9} == set(heights[np.isfinite(heights)])
    assert not np.isnan(lines_by_name(whole)["Slow (about 10 min)"].get_ydata()).any()


def test_the_tiers_of_gas_have_shades_of_one_hue():
    """The faster, the darker."""
    ax = plot.gas_fees(gas(0))
    shades = [to_hex(bar.get_facecolor()) for bar in ax.patches]

    assert list(colours.BLUES) == shades
    assert {0.0} == {label.get_rotation() for label in ax.get_xticklabels()}
    hues = [rgb_to_hsv(to_rgb(shade)) for shade in shades]
    assert max(hue for hue, *_ in hues) - min(hue for hue, *_ in hues) < 0.02
    assert sorted(shades, key=lambda shade: sum(to_rgb(shade))) == shades
