"""Charts of balances."""

import numpy as np
import polars as pl
import pytest

from beaconframes import charts, plot

from ..support.chart_frames import balances
from ..support.drawn_charts import legend_labels, lines_by_name


def test_balances_are_the_difference_to_the_effective_balance():
    """0, 1 and 2 gwei above 32 ETH; the caption has the effective balance."""
    ax = plot.balances(balances(range(200, 203), [9]))

    (line,) = ax.lines
    assert [0, 1, 2] == list(line.get_ydata())
    assert ("Epoch (UTC)", "Balance minus effective balance (gwei)") == (
        ax.get_xlabel(),
        ax.get_ylabel(),
    )
    (caption,) = (text.get_text() for text in ax.texts)
    assert "effective balance 32 ETH" in caption


def test_effective_balances_have_a_range():
    """A validator with 32 ETH and one with 2,048 ETH share a chart."""
    frame = balances([200, 201], [9, 3]).with_columns(
        effective_balance_gwei=pl.when(pl.col("validator_index") == 3)
        .then(2_048_000_000_000)
        .otherwise("effective_balance_gwei")
    )

    assert "effective balance 32 to 2,048 ETH" == charts.balances(frame).note


def test_one_balance_is_drawn_with_its_effective_balance():
    """A single validator: both balances, in ether."""
    ax = plot.balances(balances(range(200, 203), [9]), show="balance")

    assert pytest.approx([32.0, 32.000000001, 32.000000002], rel=1e-15) == list(
        lines_by_name(ax)["Balance"].get_ydata()
    )
    assert [32.0] * 3 == list(lines_by_name(ax)["Effective balance"].get_ydata())
    assert "Validator 9" == ax.get_legend().get_title().get_text()
    assert ("Epoch (UTC)", "Balance (ETH)") == (ax.get_xlabel(), ax.get_ylabel())
    ax.figure.canvas.draw()
    assert "" == ax.yaxis.get_offset_text().get_text()


def test_balances_stop_at_gaps():
    """Lines of several validators stop where epochs are missing."""
    ax = plot.balances(balances([200, 201, 205], [9, 3]), unit="gwei", show="balance")

    assert ["3", "9"] == legend_labels(ax)
    heights = lines_by_name(ax)["9"].get_ydata()
    assert [32_000_000_000, 32_000_000_001, 32_000_000_005] == list(heights[np.isfinite(heights)])
    assert [False, False, True, False] == list(np.isnan(heights))


def test_many_balances_are_grey_lines_and_more_are_bands():
    """More validators than colours, and more than lines."""
    assert ["Each of 30 validators", "Median"] == legend_labels(
        plot.balances(balances(validators=range(30)))
    )
    layers = charts.balances(balances([200, 202], range(51))).layers
    assert [[0, 2]] * 3 == [  # gwei
        [y for y in (layer.high if hasattr(layer, "high") else layer.y) if np.isfinite(y)]
        for layer in layers
    ]


def test_a_sum_of_balances_has_the_number_of_validators():
    """When a validator joins, the legend has both numbers."""
    frame = pl.concat([balances([200, 201], [1]), balances([201], [2])])

    ax = plot.balances(frame, by="total", show="balance")

    assert ["Balance\nof 1 to 2 validators", "Effective balance"] == legend_labels(ax)
    assert [32.0, 64.000000001] == list(ax.lines[0].get_ydata())
    assert "Sum of balances (ETH)" == ax.get_ylabel()
    (difference,) = plot.balances(frame, by="total", unit="eth").lines
    assert [0, 1e-9] == list(difference.get_ydata())


@pytest.mark.parametrize(
    ("gwei", "validators", "by", "unit"),
    [
        (999_999, 1, "validator", "gwei"),
        (-999_999, 1, "validator", "gwei"),
        (1_000_000, 1, "validator", "ETH"),
        (-1_000_000, 1, "validator", "ETH"),
        (499_999, 2, "validator", "gwei"),
        (499_999, 2, "total", "gwei"),
        (500_000, 2, "total", "ETH"),
    ],
)
def test_small_differences_are_in_gwei(gwei, validators, by, unit):
    """An axis in ETH would have a power of ten; one epoch of 20 with a large one does not count."""
    frame = balances(range(200, 220), range(validators))
    peak = pl.when(pl.col("epoch") == 219).then(64 * 10**9).otherwise(32 * 10**9 + gwei)

    ax = plot.balances(frame.with_columns(balance_gwei=peak), by=by)

    assert ax.get_ylabel().endswith(f"({unit})")
    assert ax.get_ylabel().startswith("Balance")
    assert "(ETH)" in plot.balances(frame, by=by, show="balance").get_ylabel()


def test_sums_of_balances_do_not_overflow():
    """Three times 2^62 gwei exceeds 64 bits, and is drawn."""
    frame = balances([200], [1, 2, 3], gwei=2**62)

    (line, _) = plot.balances(frame, by="total", unit="gwei", show="balance").lines

    assert [float(3 * 2**62)] == list(line.get_ydata())


def test_unsigned_balances_do_not_wrap():
    """A balance below the effective balance is a negative difference, not 2^64."""
    amounts = ("balance_gwei", "effective_balance_gwei")
    frame = balances([200, 201], [1], gwei=31 * 10**9).with_columns(
        pl.col(*amounts).cast(pl.UInt64)
    )

    (line,) = plot.balances(frame, unit="eth").lines

    assert pytest.approx([-1, -1 + 1e-9]) == list(line.get_ydata())


def test_an_outlier_is_named_with_the_digits_that_tell_it_from_the_others():
    """60 balances between 32 and 32.00006 ETH, one of 31.9994: "32" would not be the lowest."""
    gwei = 32 * 10**9 + 1_000 * pl.col("validator_index")
    own = pl.when(pl.col("validator_index") == 60).then(31_999_400_000).otherwise(gwei)
    frame = balances(range(200, 203), range(61)).with_columns(balance_gwei=own)

    ax = plot.balances(frame, show="balance")

    assert "Lowest: 31.9994,\nvalidator 60" in legend_labels(ax)
