"""Proposals: expected and actual numbers, luck, and the cost of missed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.aggregation import aggregate, check_row_sums, get_amount_type
from beaconframes.analysis.binomial import compute_interval, compute_p_value
from beaconframes.analysis.engines import (
    collect_sums,
    find_range,
    list_columns,
    move_to_engine,
    open_frame,
    open_frame_like,
    return_table,
)
from beaconframes.analysis.execution_income import FEES, open_income
from beaconframes.analysis.income_columns import REWARDS
from beaconframes.analysis.sync_committees import select_one_per_slot
from beaconframes.calendar import MAINNET, get_chain
from beaconframes.errors import UsageError
from beaconframes.frames import collect, drop_missing, map_rows, select_columns
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.analysis.engines import Lazy
    from beaconframes.calendar import Chain

_KEYS = ["validator_index", "epoch"]
_ACTIVE_PERIOD = ["validator_index", "activation_epoch", "exit_epoch"]
_BLOCK = ["slot", "epoch", "time", "status", "proposer_index"]
_OUTCOMES = ["proposed", "missed", "orphaned"]
_REWARDS = REWARDS["proposal_reward_gwei"]
_SECONDS_PER_DAY = 86_400


@show_elapsed
def proposal_luck(
    proposals: IntoFrame,
    balances: IntoFrameT,
    epochs: IntoFrame,
    *,
    validators: IntoFrame | None = None,
    by: str | Sequence[str] = "validator_index",
    level: float = 0.95,
    chain: Chain | str = MAINNET,
) -> IntoFrameT:
    """Compare the number of proposals with the expected number. One row per validator or group.

    This computes at once, also for lazy frames: the engine of *balances* adds up by group, and
    probabilities are computed from the sums.

    Parameters
    ----------
    proposals
        Frame of `load_proposals` or `load_epoch_slots`, of all the epochs. Missed and orphaned
        proposals count as well: being selected is luck.
    balances
        Frame of `load_balance_history`: effective balances by epoch. Its epochs are the ones
        examined.
    epochs
        Frame of `load_epochs`, of the same epochs: ``eligible_ether_gwei`` is the balance of all
        validators.
    validators
        Frame of `load_validators`. With it, balances count only while their validator is active:
        before activation and after exit it is never selected.
    by
        Group columns of *balances*; ``()`` is all validators together.
    level
        Confidence level of the interval.
    chain
        Chain of the slots.

    Returns
    -------
    The same kind of frame as *balances*
        ``slots`` examined; ``expected`` proposals, the sum over slots of the share of the effective
        balance; ``drawn``, the proposals assigned, of which ``proposed``, ``missed``, ``orphaned``.
        ``luck`` is drawn over expected, ``luck_low`` to ``luck_high`` its exact interval (Clopper
        and Pearson), and ``p_value`` the probability of a deviation this large by chance. Where
        balances changed, both are conservative. ``days_to_next`` is the mean time to the next
        proposal at the balances of the last epoch. Null where no proposal is expected.
    """
    if not 0 < level < 1:
        raise UsageError(f"level={level!r} is not between 0 and 1", hint="Try level=0.95.")
    clock, groups = get_chain(chain), list_columns(by)
    slots_per_epoch = clock.slots_per_epoch
    columns = list(dict.fromkeys([*_KEYS, "effective_balance_gwei", *groups]))
    balance_rows = open_frame(balances, columns, loader="load_balance_history")
    balance_rows = drop_missing(balance_rows, [*_KEYS, "effective_balance_gwei"])
    total_columns = ["epoch", "eligible_ether_gwei"]
    totals = drop_missing(
        open_frame_like(epochs, total_columns, loader="load_epochs", like=balance_rows),
        total_columns,
    )
    rows = balance_rows.join(totals, on="epoch", how="inner")
    if validators is not None:
        active_periods = open_frame_like(
            validators, _ACTIVE_PERIOD, loader="load_validators", like=balance_rows
        )
        rows = map_rows(
            rows.join(active_periods, on="validator_index", how="inner"), _select_active
        )
    rows = rows.join(move_to_engine(_count_proposals(proposals), rows), on=_KEYS, how="left")
    last = find_range(rows, "epoch")[1]
    rows = map_rows(rows, lambda part: _add_expected(part, last, slots_per_epoch))
    sums = aggregate(
        rows,
        groups,
        _OUTCOMES,
        slots=("distinct", "epoch"),
        expected=("sum", "expected"),
        now=("sum", "now"),
    )
    days = clock.seconds_per_slot * slots_per_epoch / _SECONDS_PER_DAY
    table = collect_sums(sums).with_columns(pl.col("slots").cast(pl.Int64) * slots_per_epoch)
    return return_table(_add_luck(table, groups, level, days), balance_rows, balances)


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
    missed = select_one_per_slot(
        collect(drop_missing(source, ["slot", "epoch", "status", "proposer_index"]))
    )
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
        "cost_execution_wei": pl.Decimal(28, 0),
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


def _count_proposals(proposals: IntoFrame) -> pl.DataFrame:
    """Count proposals by outcome. One row per validator and epoch."""
    columns = ["slot", "epoch", "status", "proposer_index"]
    lazy = drop_missing(select_columns(proposals, columns, loader="load_proposals"), columns)
    return (
        select_one_per_slot(collect(lazy))
        .group_by(validator_index="proposer_index", epoch="epoch")
        .agg(
            (pl.col("status") == outcome).sum().cast(pl.Int64).alias(outcome)
            for outcome in _OUTCOMES
        )
    )


def _select_active(rows: Lazy) -> Lazy:
    has_exited = (nw.col("exit_epoch") <= nw.col("epoch")).fill_null(value=False)
    return rows.filter((nw.col("activation_epoch") <= nw.col("epoch")) & ~has_exited)


def _add_expected(rows: Lazy, last: int, slots_per_epoch: int) -> Lazy:
    """Add the expected number of proposals of each row, and of the last epoch alone."""
    own_balance, total_balance = nw.col("effective_balance_gwei"), nw.col("eligible_ether_gwei")
    share = own_balance.cast(nw.Float64) / total_balance.cast(nw.Float64)
    expected = nw.when(total_balance > 0).then(share * slots_per_epoch).otherwise(0.0)
    counts = [nw.col(name).fill_null(0).cast(get_amount_type(name)) for name in _OUTCOMES]
    return rows.with_columns(
        expected.alias("expected"),
        nw.when(nw.col("epoch") == last).then(expected).otherwise(0.0).alias("now"),
        *counts,
    )


def _add_luck(
    table: pl.DataFrame, groups: list[str], level: float, epoch_days: float
) -> pl.DataFrame:
    """Add luck, its interval, its p-value, and the time to the next proposal."""
    drawn, expected = pl.sum_horizontal(_OUTCOMES), pl.col("expected")
    rows = table.sort(groups) if groups else table
    rows = rows.with_columns(drawn=drawn, luck=pl.when(expected > 0).then(drawn / expected))
    luck: list[tuple[float | None, ...]] = []
    for k, n, mean in rows.select("drawn", "slots", "expected").iter_rows():
        if not mean > 0:
            luck.append((None, None, None))
            continue
        low, high = compute_interval(k, n, level)
        luck.append((low * n / mean, high * n / mean, compute_p_value(k, n, min(1.0, mean / n))))
    names = ["luck_low", "luck_high", "p_value"]
    intervals = pl.DataFrame(luck, schema=dict.fromkeys(names, pl.Float64), orient="row")
    days_to_next = pl.when(pl.col("now") > 0).then(epoch_days / pl.col("now"))
    return rows.hstack(intervals).select(
        *groups,
        "slots",
        "expected",
        "drawn",
        *_OUTCOMES,
        "luck",
        *names,
        days_to_next.alias("days_to_next"),
    )
