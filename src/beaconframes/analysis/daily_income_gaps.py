"""Days that daily income leaves out, with what the validators received on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.analysis.daily_income import daily_income, sum_blocks
from beaconframes.analysis.engines import open_frame, resolve_chain, return_table
from beaconframes.frames import collect, drop_missing, to_polars
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.calendar import Chain

_KEYS = ["validator_index", "day"]
_BALANCES = ["start_balance_gwei", "end_balance_gwei", "start_effective_balance_gwei"]


@show_elapsed
def daily_income_gaps(
    stats: IntoFrameT, blocks: IntoFrame | None = None, *, chain: Chain | str | None = None
) -> IntoFrameT:
    """List the days that `daily_income` leaves out. One row per validator and beacon day.

    Parameters
    ----------
    stats, blocks, chain
        As in `daily_income`.

    Returns
    -------
    The same kind of frame
        ``validator_index``, ``day``, ``execution_income_wei`` (what the validator received for
        blocks of the day; null without *blocks*) and ``reason``. Days without balances and without
        a block are left out: the validator may not have been active. Sorted. This computes eagerly.
    """
    source = open_frame(stats, [*_KEYS, *_BALANCES], loader="load_validator_stats")
    clock = resolve_chain(chain, (blocks, "slot"), (stats, "day"))
    rows = collect(drop_missing(source, _KEYS)).filter(pl.col("day") >= 0)
    rows = rows.select(*_KEYS, has_balances=pl.all_horizontal(pl.col(_BALANCES).is_not_null()))
    received = pl.lit(None, pl.Int128)
    if blocks is not None:
        paid = sum_blocks(blocks, clock.epochs_per_day).select(*_KEYS, "received", "has_block")
        rows = rows.join(paid, on=_KEYS, how="full", coalesce=True)
        received = pl.when("has_block").then("received").otherwise(0)
    else:
        rows = rows.with_columns(has_block=pl.lit(None, pl.Boolean))
    reason = (
        pl.when(pl.col("has_balances").is_null())
        .then(pl.lit("no statistics"))
        .when(~pl.col("has_balances"))
        .then(pl.lit("no balances"))
        .otherwise(pl.lit("consolidation, or deposit of an earlier day"))
    )
    known = to_polars(daily_income(stats, chain=clock)).select(_KEYS)
    found = rows.filter(pl.any_horizontal("has_balances", "has_block")).join(
        known, on=_KEYS, how="anti"
    )
    result = found.select(
        *_KEYS, execution_income_wei=received.cast(pl.Decimal(28, 0)), reason=reason
    )
    return return_table(result.sort(_KEYS), source, stats)
