"""Charts of coverage: loaded and missing rows."""

import numpy as np
import polars as pl
import pytest

from beaconframes import charts, colours, plot
from beaconframes.errors import UsageError

from ..support.chart_frames import balances
from ..support.drawn_charts import cell_colours, legend_labels, tick_labels


def test_coverage_shows_loaded_and_missing_rows():
    """From the first to the last epoch of the frame; the label has the share of rows."""
    frame = pl.concat([balances([100, 101, 103], [1]), balances([102], [40])])

    ax = plot.coverage(frame)

    there, absent = colours.BLUE, colours.AMBER
    assert [[there, there, absent, there], [absent, absent, there, absent]] == cell_colours(ax)
    assert ["1", "40"] == tick_labels(ax.yaxis)
    assert "Validator (50 % of rows loaded)" == ax.get_ylabel()
    assert ["Loaded", "Missing, or not active"] == legend_labels(ax)


@pytest.mark.parametrize(
    ("epoch", "value"),
    [(pl.col("epoch").cast(pl.String), "'100'"), (pl.col("epoch") + 0.5, "100.5")],
)
def test_coverage_refuses_epochs_that_are_not_whole(epoch, value):
    """The error names the value; whole epochs may be floats."""
    frame = balances([100, 101], [1])
    assert plot.coverage(frame.with_columns(pl.col("epoch").cast(pl.Float64)))

    with pytest.raises(UsageError, match=f"column epoch holds .*{value}, not epochs"):
        plot.coverage(frame.with_columns(epoch))


def test_coverage_separates_validators_that_are_not_active():
    """1 is active throughout, 40 from epoch 102, 41 until 101, 42 not yet, and 43 has no rows."""
    frame = pl.concat([balances([100, 101, 103], [1]), balances([102], [40])])
    validators = pl.DataFrame(
        {
            "validator_index": [40, 41, 42, 43],
            "activation_epoch": [102, 50, None, 10],
            "exit_epoch": [None, 101, None, None],
        },
        schema=dict.fromkeys(["validator_index", "activation_epoch", "exit_epoch"], pl.Int64),
    )

    ax = plot.coverage(frame, validators)

    assert ax.texts[-1].get_text().startswith("5 validators")
    there, absent, inactive = colours.BLUE, colours.AMBER, colours.GRID
    assert [
        [there, there, absent, there],
        [inactive, inactive, there, absent],
        [absent, inactive, inactive, inactive],
        [inactive] * 4,
        [absent] * 4,
    ] == cell_colours(ax)
    assert ["1", "40", "41", "42", "43"] == tick_labels(ax.yaxis)
    # 4 of 4 + 2 + 1 + 0 + 4 rows of active validators.
    assert f"Validator ({400 / 11:.4g} % of rows loaded)" == ax.get_ylabel()
    assert ["Loaded", "Not active", "Missing"] == legend_labels(ax)


def test_large_coverage_leaves_out_validators_that_are_not_active():
    """2,048 epochs, two per column: a share counts only epochs in which a validator is active."""
    frame = balances([0, 2047], [1])
    validators = pl.DataFrame(
        {"validator_index": [1], "activation_epoch": [0], "exit_epoch": [2000]}
    )

    (layer,) = charts.coverage(frame, validators).layers

    assert [50.0, 0.0] == layer.cells[0, :2].tolist()
    assert [0.0] == layer.cells[0, 999:1000].tolist()
    assert np.isnan(layer.cells[0, 1000:1023]).all()


@pytest.mark.parametrize(("missing", "share"), [(0, "100 %"), (1, "99.99 %")])
def test_coverage_is_complete_only_without_missing_rows(missing, share):
    """One missing row in 20,000 is not 100 %."""
    frame = balances(range(20_000), [1])
    frame = frame.filter(~pl.col("epoch").is_between(5, 4 + missing))

    assert f"Validator ({share} of rows loaded)" == charts.coverage(frame).y.label


@pytest.mark.more
def test_large_coverage_is_folded():
    """3,000 epochs of 2,000 validators: shares of cells, exact also at the edges."""
    frame = balances(range(3000), range(0, 2000, 2))
    frame = pl.concat([frame, balances([0], range(1, 2000, 2))])

    ax = plot.coverage(frame)

    (image,) = ax.images
    shares = image.get_array()
    assert (1000, 1000) == shares.shape
    assert 100 * 4 / 6 == pytest.approx(float(shares[0, 0]))
    assert 50.0 == float(shares[999, 999])
    assert "Epoch (UTC, 3 per column)" == ax.get_xlabel()
    assert "Validator (50.02 % of rows loaded), 2 per row" == ax.get_ylabel().replace("\n", " ")
