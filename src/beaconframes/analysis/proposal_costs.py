"""The cost of missed and orphaned proposals: what other blocks earned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.aggregation import check_row_sums
from beaconframes.analysis.daily_rewards import (
    COLUMNS,
    NETWORK_MEAN,
    average_network,
    find_block_rewards,
)
from beaconframes.analysis.engines import collect_sums, open_frame, resolve_chain, return_table
from beaconframes.analysis.execution_income import FEES, open_income, read_blocks
from beaconframes.analysis.income_columns import REWARDS
from beaconframes.analysis.sync_committees import select_one_per_slot
from beaconframes.errors import UsageError
from beaconframes.frames import collect, drop_missing, map_rows
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.calendar import Chain

COSTS = ["cost_consensus_gwei", "cost_execution_wei", "cost_basis"]
"""The columns of a cost."""
_BLOCK = ["slot", "epoch", "time", "status", "proposer_index"]
_KNOWN = ["slot", "epoch", "status", "proposer_index"]
_KEYS = ["validator_index", "epoch"]
_REWARDS = REWARDS["proposal_reward_gwei"]
_EXECUTION = "execution layer: "


@show_elapsed
def missed_proposals(
    proposals: IntoFrameT,
    income: IntoFrame | None = None,
    *,
    blocks: IntoFrame | None = None,
    stats: IntoFrame | None = None,
    index: IntoFrame | None = None,
    window: int = 225,
    chain: Chain | str | None = None,
) -> IntoFrameT:
    """List missed and orphaned proposals with their cost. One row per slot.

    The cost of a slot is the median reward of the blocks in *income* at most *window* epochs away,
    separately for each layer: the lower of the two middle values, never their mean. This computes
    eagerly.

    Parameters
    ----------
    proposals
        Frame of `load_proposals` or `load_epoch_slots`.
    income
        Frame of `load_income_history`, of as many validators as possible: blocks of other
        validators are as good a comparison as your own. Its rows are sums of epochs: an epoch in
        which *blocks* or *proposals* have several blocks of a validator is left out.
    blocks
        Blocks of these validators, as in `analysis.income`: the execution cost is then the median
        of what proposers received. Without it: priority fees, relay payments not included.
    stats
        Frame of `load_validator_stats`, instead of *income*, for many validators: a block of a day
        earned what its proposer earned beyond its votes. The window then consists of whole days.
    index
        Frame of `load_yield_index`: where there is no block to compare, the cost is the mean of the
        network on the day, 8 of 64 parts of its rewards, and its priority fees.
    window
        Number of epochs before and after a missed block to compare; 225 are a day.
    chain
        Chain of the days of *stats* and *index*. Default: that of the frames, from ``time``.

    Returns
    -------
    The same kind of frame as *proposals*
        ``slot``, ``epoch``, ``time``, ``status``, ``proposer_index``, ``blocks_compared``,
        ``cost_consensus_gwei``, ``cost_execution_wei`` and ``cost_basis``, what both are estimated
        from; null where there was nothing to compare. Without the priority fees of any of the
        blocks, ``cost_execution_wei`` is null.
    """
    if type(window) is not int or window < 0:
        raise UsageError(
            f"window={window!r} is not a number of epochs", hint="Pass an integer of 0 or more."
        )
    if income is None and stats is None and index is None:
        raise UsageError(
            "income, stats and index are missing", hint="Pass one of them, to compare with."
        )
    source = open_frame(proposals, _BLOCK, loader="load_proposals")
    slots = select_one_per_slot(collect(drop_missing(source, _KNOWN)))
    missed = slots.filter(pl.col("status").is_in(["missed", "orphaned"])).select(_BLOCK)
    clock = resolve_chain(chain, (stats, "day"), (index, "day"), (proposals, "slot"))
    network = average_network(index, clock)
    if income is not None:
        rewards = _list_rewards(income, blocks, slots)
        costs = [
            _find_median_reward(rewards.filter((pl.col("epoch") - epoch).abs() <= window))
            for epoch in missed["epoch"]
        ]
    elif stats is not None:
        costs = _find_daily_medians(missed, stats, blocks, network, window=window, clock=clock)
    else:
        costs = [(0, None, None, None)] * missed.height
    schema: dict[str, Any] = {
        "blocks_compared": pl.Int64,
        "cost_consensus_gwei": pl.Int64,
        "cost_execution_wei": pl.Decimal(28, 0),
        "cost_basis": pl.String,
    }
    result = missed.hstack(pl.DataFrame(costs, schema=schema, orient="row"))
    result = _fill_from_network(result, network, clock.epochs_per_day)
    return return_table(result.sort("slot"), source, proposals)


def _list_rewards(income: IntoFrame, blocks: IntoFrame | None, slots: pl.DataFrame) -> pl.DataFrame:
    """Return the rewards of both layers of each block in an income history."""
    columns = [*_KEYS, *_REWARDS, FEES]
    income_rows = drop_missing(open_income(income, columns, blocks), columns[:-1])
    rows = collect_sums(
        map_rows(
            check_row_sums(income_rows, _REWARDS),
            lambda part: part.filter(nw.sum_horizontal(*_REWARDS) > 0),
        )
    )
    made = [slots.filter(pl.col("status") == "proposed").rename({"proposer_index": _KEYS[0]})]
    if blocks is not None:
        made.append(read_blocks(blocks).drop_nulls(_KEYS[0]))
    keys = pl.col(_KEYS).cast(pl.Int64)
    several = pl.concat(part.group_by(keys).len().filter(pl.col("len") > 1) for part in made)
    return (
        rows.with_columns(keys)
        .join(several, on=_KEYS, how="anti")
        .select(
            "epoch",
            cost_consensus_gwei=pl.sum_horizontal(*_REWARDS),
            cost_execution_wei=FEES,
        )
    )


def _find_median_reward(blocks: pl.DataFrame) -> tuple[object, ...]:
    """Return the number of blocks, the lower median of the rewards of both layers, and the basis.

    Blocks without priority fees count only if no block has them.
    """
    known = blocks.drop_nulls("cost_execution_wei")
    if not known.is_empty():
        blocks = known
    if blocks.is_empty():
        return 0, None, None, None
    costs = [_select_median(blocks[name]) for name in COSTS[:2]]
    return blocks.height, *costs, f"median of {_count(blocks.height)}"


def _find_daily_medians(
    missed: pl.DataFrame,
    stats: IntoFrame,
    blocks: IntoFrame | None,
    network: pl.DataFrame,
    *,
    window: int,
    clock: Chain,
) -> list[tuple[object, ...]]:
    """Return the medians of the blocks in daily statistics, and of what proposers received.

    Many slots of a few days are compared by day: the blocks of a day have one median.
    """
    length = clock.epochs_per_day
    table = collect(open_frame(stats, COLUMNS, loader="load_validator_stats"))
    rewards = find_block_rewards(table, network, clock)
    received = pl.DataFrame(schema={"epoch": pl.Int64, "producer_reward_wei": pl.Decimal(28, 0)})
    if blocks is not None:
        names = [*received.columns]
        lazy = open_frame(blocks, names, loader="load_produced_blocks")
        received = collect(drop_missing(lazy, names))
    received = received.with_columns(day=pl.col("epoch") // length)
    days = missed["epoch"] // length
    costs: dict[int, tuple[object, ...]] = {}
    for day in days.unique():
        is_near = (pl.col("day") - day).abs() <= window / length
        near, paid = rewards.filter(is_near), received.filter(is_near)["producer_reward_wei"]
        number = int(near["blocks"].sum())
        texts = [f"median of {_count(number)}"] if number else []
        texts += [f"{_EXECUTION}median of {_count(paid.len())}"] if paid.len() else []
        consensus = _select_median(near["cost_consensus_gwei"])
        basis = ", ".join(texts) or None
        costs[day] = number, consensus, _select_median(paid), basis
    return [costs[day] for day in days]


def _fill_from_network(costs: pl.DataFrame, network: pl.DataFrame, length: int) -> pl.DataFrame:
    """Fill unknown costs with the mean of the network, and state in the basis what is unknown."""
    rows = costs.with_columns(day=pl.col("epoch") // length).join(network, on="day", how="left")
    consensus, execution = (pl.col(name) for name in COSTS[:2])
    block, fees = pl.col("network_block_gwei"), pl.col("network_fees_wei")
    basis = pl.concat_str(
        pl.when(consensus.is_null() & block.is_not_null()).then(pl.lit(NETWORK_MEAN)),
        pl.col("cost_basis"),
        pl.when(execution.is_null() & fees.is_not_null()).then(
            pl.lit(f"{_EXECUTION}priority fees of the network")
        ),
        pl.when(execution.is_null() & fees.is_null() & consensus.is_not_null()).then(
            pl.lit(f"{_EXECUTION}unknown")
        ),
        separator=", ",
        ignore_nulls=True,
    )
    return rows.select(
        *costs.columns[:-3],
        cost_consensus_gwei=pl.coalesce(consensus, block),
        cost_execution_wei=pl.coalesce(execution, fees),
        cost_basis=pl.when(basis != "").then(basis),
    )


def _select_median(values: pl.Series) -> object:
    """Return the lower of the two middle values; None without one."""
    return values.sort()[(values.len() - 1) // 2] if values.len() else None


def _count(number: int) -> str:
    return f"{number:,} block{'' if number == 1 else 's'}"
