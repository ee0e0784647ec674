"""Balances at the end of each day, with their spread over validators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.analysis.engines import add_date, check_distinct, open_frame, return_table
from beaconframes.frames import collect, drop_missing
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrameT

_COLUMNS = ["validator_index", "epoch", "time", "balance_gwei", "effective_balance_gwei"]
_QUANTILES = (0.1, 0.5, 0.9)


@show_elapsed
def daily_balances(balances: IntoFrameT, *, tz: str = "UTC") -> IntoFrameT:
    """Add up balances at the end of each day. One row per day.

    Parameters
    ----------
    balances
        Frame of `load_balance_history`. The last epoch of each day counts.
    tz
        Time zone of the days.

    Returns
    -------
    The same kind of frame
        ``date``, the number of ``validators``, and the sums ``balance_gwei`` and
        ``effective_balance_gwei``. ``balance_p10_gwei``, ``balance_p50_gwei`` and
        ``balance_p90_gwei`` are quantiles over validators: balances that occur, never a mean of
        two. Sorted. This computes eagerly.
    """
    check_distinct(balances, _COLUMNS[:2], loader="load_balance_history")
    source = open_frame(balances, _COLUMNS, loader="load_balance_history")
    dated = add_date(drop_missing(source, _COLUMNS), "day", tz)
    rows = collect(dated).with_columns(pl.col("date").cast(pl.Date))
    last = rows.filter(pl.col("epoch") == pl.col("epoch").max().over("date"))
    balance = pl.col("balance_gwei")
    result = last.group_by("date").agg(
        validators=pl.len().cast(pl.Int64),
        balance_gwei=balance.sum(),
        effective_balance_gwei=pl.sum("effective_balance_gwei"),
        **{
            f"balance_p{round(100 * q)}_gwei": balance.quantile(q, "lower").cast(pl.Int64)
            for q in _QUANTILES
        },
    )
    return return_table(result.sort("date"), source, balances)
