"""Proposals: what blocks earned, what relays paid, and the cost of missed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.aggregation import check_row_sums
from beaconframes.analysis.engines import collect_sums, list_columns, open_frame, return_table
from beaconframes.analysis.execution_income import FEES, open_income
from beaconframes.analysis.income_columns import REWARDS
from beaconframes.analysis.sync_committees import select_one_per_slot
from beaconframes.errors import UsageError
from beaconframes.frames import collect, drop_missing, map_rows, to_polars
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

_BLOCK = ["slot", "epoch", "time", "status", "proposer_index"]
_KNOWN = ["slot", "epoch", "status", "proposer_index"]
_WEI = pl.Decimal(28, 0)
_REWARDS = REWARDS["proposal_reward_gwei"]


@show_elapsed
def missed_proposals(
    proposals: IntoFrameT,
    income: IntoFrame,
    *,
    blocks: IntoFrame | None = None,
    window: int = 225,
) -> IntoFrameT:
    """List missed and orphaned proposals with their cost. One row per slot.

    The cost of a slot is the median reward of the blocks in *income* at most *window* epochs away,
    separately for each layer: the lower of the two middle values, never their mean. This computes
    at once.

    Parameters
    ----------
    proposals
        Frame of `load_proposals` or `load_epoch_slots`.
    income
        Frame of `load_income_history`, of as many validators as possible: blocks of other
        validators are as good a comparison as your own.
    blocks
        Blocks of these validators, as in `analysis.income`: the execution cost is then the median
        of what proposers received. Without it: priority fees, relay payments not included.
    window
        Number of epochs before and after a missed block to compare; 225 are a day.

    Returns
    -------
    The same kind of frame as *proposals*
        ``slot``, ``epoch``, ``time``, ``status``, ``proposer_index``, ``blocks_compared``,
        ``cost_consensus_gwei`` and ``cost_execution_wei``; null where there was no block to
        compare. Without the priority fees of any of them, ``cost_execution_wei`` is null.
    """
    if type(window) is not int or window < 0:
        raise UsageError(
            f"window={window!r} is not a number of epochs", hint="Pass an integer of 0 or more."
        )
    source = open_frame(proposals, _BLOCK, loader="load_proposals")
    missed = select_one_per_slot(collect(drop_missing(source, _KNOWN)))
    missed = missed.filter(pl.col("status").is_in(["missed", "orphaned"])).select(_BLOCK)
    columns = ["epoch", *_REWARDS, FEES]
    income_rows = drop_missing(open_income(income, columns, blocks), columns[:-1])
    rewards = collect_sums(
        map_rows(
            check_row_sums(income_rows, _REWARDS),
            lambda part: part.filter(nw.sum_horizontal(*_REWARDS) > 0),
        )
    ).select(
        "epoch",
        cost_consensus_gwei=pl.sum_horizontal(*_REWARDS),
        cost_execution_wei=FEES,
    )
    costs = [
        _find_median_reward(rewards.filter((pl.col("epoch") - epoch).abs() <= window))
        for epoch in missed["epoch"]
    ]
    schema: dict[str, Any] = {
        "blocks_compared": pl.Int64,
        "cost_consensus_gwei": pl.Int64,
        "cost_execution_wei": _WEI,
    }
    result = missed.hstack(pl.DataFrame(costs, schema=schema, orient="row"))
    return return_table(result.sort("slot"), source, proposals)


def _find_median_reward(blocks: pl.DataFrame) -> tuple[object, ...]:
    """Return the number of blocks, and the lower median of the rewards of both layers.

    Blocks without priority fees count only if no block has them.
    """
    names = ["cost_consensus_gwei", "cost_execution_wei"]
    known = blocks.drop_nulls("cost_execution_wei")
    if not known.is_empty():
        blocks = known
    if blocks.is_empty():
        return 0, None, None
    middle = (blocks.height - 1) // 2
    return blocks.height, *(blocks[name].sort()[middle] for name in names)


@show_elapsed
def proposal_outcomes(
    proposals: IntoFrameT, *, blocks: IntoFrame | None = None, income: IntoFrame | None = None
) -> IntoFrameT:
    """List proposals with what each earned, or what missing it cost. One row per slot.

    Parameters
    ----------
    proposals
        Frame of `load_proposals` or `load_epoch_slots`.
    blocks
        Frame of `load_produced_blocks`: it adds ``reward_wei`` and ``relay_tag``.
    income
        Frame of `load_income_history`: it adds ``cost_consensus_gwei`` and ``cost_execution_wei``
        of missed and orphaned proposals, as in `missed_proposals`.

    Returns
    -------
    The same kind of frame as *proposals*
        ``slot``, ``epoch``, ``time``, ``status``, ``proposer_index``, ``graffiti_text``, and the
        columns of the other frames. ``reward_wei`` is null for a slot without a block in the
        chain. Sorted. This computes at once.
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
    if income is not None:
        costs = to_polars(missed_proposals(proposals, income, blocks=blocks))
        costs = costs.select("slot", "cost_consensus_gwei", "cost_execution_wei")
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
        ``relay_payments_wei``, null if a payment is unknown. Sorted. This computes at once.
    """
    groups = list_columns(by)
    columns = [*groups, "producer_reward_wei", "relay_tag"]
    source = open_frame(blocks, columns, loader="load_produced_blocks")
    is_relayed = pl.col("relay_tag").is_not_null()
    paid = pl.col("producer_reward_wei").filter(is_relayed)
    paid = pl.when(~paid.is_null().any()).then(paid.sum())
    totals = {
        "blocks": pl.len().cast(pl.Int64),
        "relay_blocks": is_relayed.sum().cast(pl.Int64),
        "relay_payments_wei": paid.cast(_WEI),
    }
    rows = collect(source)
    result = rows.group_by(groups).agg(**totals).sort(groups) if groups else rows.select(**totals)
    return return_table(result, source, blocks)
