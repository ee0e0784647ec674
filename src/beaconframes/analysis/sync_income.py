"""Income in sync committees: the share of duties signed, by period or by epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.engines import (
    check_distinct,
    collect_sums,
    open_frame,
    resolve_chain,
    return_table,
)
from beaconframes.frames import check_choice, drop_missing
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrameT

    from beaconframes.calendar import Chain

Every = Literal["epoch", "period", "all"]

_REWARD, _PENALTY = "sync_committee_reward_gwei", "sync_committee_penalty_gwei"


@show_elapsed
def sync_income(
    income: IntoFrameT, *, every: Every = "period", chain: Chain | str | None = None
) -> IntoFrameT:
    """Compute what members of sync committees signed. One row per validator and period or epoch.

    A signature is rewarded with the same amount as a missing one is penalized. So the share of
    the duties that were signed follows from an income history, without the bits of the blocks.
    Slots without a block have neither reward nor penalty.

    Parameters
    ----------
    income
        Frame of `load_income_history`.
    every
        ``"period"``, ``"epoch"``, or ``"all"`` for one row per validator.
    chain
        Chain of the epochs; it sets the number of epochs in a period. Default: that of *income*,
        from ``time``.

    Returns
    -------
    The same kind of frame
        ``validator_index``, ``period``, ``first_epoch`` and ``last_epoch`` with a duty (or
        ``epoch``), ``time`` of the first, ``reward_gwei``, ``penalty_gwei``, ``signed_rate`` and
        ``lost_gwei``: the rewards not earned, plus the penalties. Sorted. This computes eagerly.
    """
    check_choice("every", every, get_args(Every))
    check_distinct(income, ["validator_index", "epoch"], loader="load_income_history")
    columns = ["validator_index", "epoch", "time", _REWARD, _PENALTY]
    source = drop_missing(open_frame(income, columns, loader="load_income_history"), columns)
    length = resolve_chain(chain, (income, "epoch")).epochs_per_sync_period
    duties = collect_sums(source.filter((nw.col(_REWARD) > 0) | (nw.col(_PENALTY) > 0)))
    rows = duties.with_columns(period=pl.col("epoch") // length)
    epochs = {"first_epoch": pl.min("epoch"), "last_epoch": pl.max("epoch")}
    if every == "epoch":
        epochs = {}
    units = {"epoch": ["period", "epoch"], "period": ["period"], "all": []}
    keys = ["validator_index", *units[every]]
    sums = rows.group_by(keys).agg(
        **epochs,
        time=pl.min("time"),
        reward_gwei=pl.sum(_REWARD),
        penalty_gwei=pl.sum(_PENALTY),
    )
    paid = pl.col("reward_gwei") + pl.col("penalty_gwei")
    result = sums.with_columns(
        signed_rate=pl.col("reward_gwei") / paid, lost_gwei=2 * pl.col("penalty_gwei")
    )
    return return_table(result.sort(keys), source, income)
