"""Chart of duties in sync committees: a strip per member, coloured by the share signed."""

from __future__ import annotations

import numpy as np
import polars as pl

from beaconframes.charts.heatmap import compute_bin_size, find_columns
from beaconframes.charts.model import Axis, Chart, Heatmap

_STRIPS = 30
_COLUMNS = 200


def build_sync_chart(duties: pl.DataFrame) -> Chart:
    """Build the strips of the members that signed least, from `analysis.sync_income` by epoch."""
    reward = pl.sum("reward_gwei")
    rate = 100 * reward / (reward + pl.sum("penalty_gwei"))
    members = (
        duties.group_by("validator_index")
        .agg(rate=rate)
        .sort("rate", "validator_index")
        .head(_STRIPS)["validator_index"]
        .sort()
    )
    first, count, start, length = find_columns(duties, "epoch")
    step = compute_bin_size(count, _COLUMNS)
    size = -(-count // step)
    rows = pl.DataFrame({"validator_index": members}).with_row_index("row")
    column = ((pl.col("epoch") - first) // step).alias("column")
    cells = duties.group_by("validator_index", column).agg(rate=rate)
    cells = cells.join(rows, on="validator_index")
    table = np.full((members.len(), size), np.nan)
    table[cells["row"].to_numpy(), cells["column"].to_numpy()] = cells["rate"].to_numpy()
    names = [str(index) for index in members]
    heatmap = Heatmap(start, step * length, names, table, shares="Signed (%)")
    times = start + np.arange(size) * step * length
    return Chart(Axis("Time (UTC)", "epoch", times), Axis("Validator"), (heatmap,))
