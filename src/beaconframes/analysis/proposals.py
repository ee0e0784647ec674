"""Proposals: what blocks earned, and what relays paid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.analysis.aggregation import sum_known
from beaconframes.analysis.engines import (
    check_distinct,
    list_columns,
    open_frame,
    return_table,
    sum_by,
)
from beaconframes.analysis.proposal_costs import COSTS, missed_proposals
from beaconframes.analysis.sync_committees import select_one_per_slot
from beaconframes.frames import collect, drop_missing, list_column_names, to_polars
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.calendar import Chain

_BLOCK = ["slot", "epoch", "time", "status", "proposer_index"]
_KNOWN = ["slot", "epoch", "status", "proposer_index"]
_PAYMENT = "block_mev_reward_wei"
_WEI = pl.Decimal(28, 0)


@show_elapsed
def proposal_outcomes(
    proposals: IntoFrameT,
    *,
    blocks: IntoFrame | None = None,
    income: IntoFrame | None = None,
    stats: IntoFrame | None = None,
    index: IntoFrame | None = None,
    chain: Chain | str | None = None,
) -> IntoFrameT:
    """List proposals with what each earned, or what missing it cost. One row per slot.

    Parameters
    ----------
    proposals
        Frame of `load_proposals` or `load_epoch_slots`.
    blocks
        Frame of `load_produced_blocks`: it adds ``reward_wei`` and ``relay_tag``.
    income, stats, index, chain
        Any of the frames adds ``cost_consensus_gwei``, ``cost_execution_wei`` and ``cost_basis`` of
        missed and orphaned proposals, as in `missed_proposals`.

    Returns
    -------
    The same kind of frame as *proposals*
        ``slot``, ``epoch``, ``time``, ``status``, ``proposer_index``, ``graffiti_text``, and the
        columns of the other frames. ``reward_wei`` is null for a slot without a block in the
        chain. Sorted. This computes eagerly.
    """
    columns = [*_BLOCK, "graffiti_text"]
    source = open_frame(proposals, columns, loader="load_proposals")
    rows = select_one_per_slot(collect(drop_missing(source, _KNOWN))).select(columns)
    if blocks is not None:
        columns = ["slot", "producer_reward_wei", "relay_tag"]
        paid = collect(
            drop_missing(open_frame(blocks, columns, loader="load_produced_blocks"), ["slot"])
        )
        paid = paid.unique("slot").rename({"producer_reward_wei": "reward_wei"})
        rows = rows.join(paid, on="slot", how="left", maintain_order="left")
        is_proposed = pl.col("status") == "proposed"
        rows = rows.with_columns(
            pl.when(is_proposed).then(pl.col("reward_wei").cast(_WEI)).alias("reward_wei")
        )
    if any(frame is not None for frame in (income, stats, index)):
        options: dict[str, Any] = {"blocks": blocks, "stats": stats, "index": index, "chain": chain}
        costs = to_polars(missed_proposals(proposals, income, **options))
        costs = costs.select("slot", *COSTS)
        rows = rows.join(costs, on="slot", how="left", maintain_order="left")
    return return_table(rows.sort("slot"), source, proposals)


@show_elapsed
def relay_payments(blocks: IntoFrameT, *, by: str | Sequence[str] = ()) -> IntoFrameT:
    """Add up what relays paid to proposers. One row per group.

    Parameters
    ----------
    blocks
        Frame of `load_produced_blocks`.
    by
        Group columns of *blocks*, such as ``"relay_tag"`` or ``"proposer_index"``. Default: all
        blocks together.

    Returns
    -------
    The same kind of frame
        The columns of *by*, the number of ``blocks``, that of ``relay_blocks`` among them, and
        ``relay_payments_wei``, null if a payment is unknown. Blocks of a node are among them if
        their builder paid the proposer: it does not know the relay. Sorted. This computes eagerly.
    """
    groups = list_columns(by, {"blocks", "relay_blocks", "relay_payments_wei"})
    check_distinct(blocks, ["block_number"], groups, loader="load_produced_blocks")
    columns = [*groups, "producer_reward_wei", "relay_tag"]
    has_payments = _PAYMENT in list_column_names(blocks)
    columns += [_PAYMENT] * has_payments
    source = open_frame(blocks, columns, loader="load_produced_blocks")
    is_relayed = pl.col("relay_tag").is_not_null()
    if has_payments:
        is_paid = (pl.col(_PAYMENT) > 0) & (pl.col(_PAYMENT) == pl.col("producer_reward_wei"))
        is_relayed |= is_paid.fill_null(value=False)
    paid = sum_known(pl.col("producer_reward_wei").filter(is_relayed))
    totals = {
        "blocks": pl.len().cast(pl.Int64),
        "relay_blocks": is_relayed.sum().cast(pl.Int64),
        "relay_payments_wei": paid.cast(_WEI),
    }
    return return_table(sum_by(collect(source), groups, **totals), source, blocks)
