"""Income of many validators from their daily statistics: one row per day instead of 225."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.analysis.aggregation import sum_known
from beaconframes.analysis.engines import (
    check_distinct,
    open_frame,
    resolve_chain,
    return_table,
)
from beaconframes.analysis.execution_income import BASIS, RECEIVED, UNKNOWN
from beaconframes.frames import collect, drop_missing
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.calendar import Chain

_KEYS = ["validator_index", "day"]
_BALANCES = ["start_balance_gwei", "end_balance_gwei"]
_MOVES = ["deposits_amount_gwei", "withdrawals_amount_gwei"]
STAKES = ["start_effective_balance_gwei", "end_effective_balance_gwei"]
_BLOCK = ["proposer_index", "epoch", "producer_reward_wei", "block_reward_wei"]
_WEI_PER_GWEI = 10**9
_CREDITED = 0.9
"""A balance that rose by this share of a deposit contains it: penalties are smaller."""
_LARGEST_RISE, _LARGEST_FALL = 0.01, 0.5
"""Shares of a balance that no validator earns or loses in a day."""


@show_elapsed
def daily_income(
    stats: IntoFrameT, blocks: IntoFrame | None = None, *, chain: Chain | str | None = None
) -> IntoFrameT:
    """Compute income from daily statistics. One row per validator and beacon day.

    For many validators and long ranges: the statistics have one row per day, an income history one
    per epoch. Consensus income is the change of the balance, less deposits, plus withdrawals. It
    has no components. A deposit counts on the day on which it reaches the balance, which is often
    later than that of its block.

    Parameters
    ----------
    stats
        Frame of `load_validator_stats`.
    blocks
        Frame of `load_produced_blocks`, of the same validators. Without it, execution income is
        unknown.
    chain
        Chain of the days; it sets the number of epochs in a day. Default: that of the frames, from
        ``time``; an unknown chain has the epochs of mainnet if only days are known.

    Returns
    -------
    The same kind of frame
        ``day``, ``time`` (start of the day, UTC), ``date`` (of this time), ``validator_index``,
        ``effective_balance_gwei`` (at its start, or at its end on the day on which a new validator
        has its first balance), ``consensus_income_gwei``, ``execution_income_wei``,
        ``net_income_wei``, ``withdrawals_gwei``, ``deposits_gwei``, ``priority_fees_wei`` (what the
        yield index counts) and ``execution_income_basis``. Days without balances are left out, and
        so are days on which the balance rose by more than 1 % without a deposit in *stats*, or fell
        to less than half without a withdrawal: these are consolidations, and deposits of earlier
        days; `daily_income_gaps` lists them. Sorted by day and validator. This computes eagerly.
    """
    columns = [*_KEYS, "time", STAKES[0], *_BALANCES]
    source = open_frame(stats, [*columns, STAKES[1], *_MOVES], loader="load_validator_stats")
    check_distinct(stats, _KEYS, loader="load_validator_stats")
    length = resolve_chain(chain, (blocks, "slot"), (stats, "day")).epochs_per_day
    rows = collect(drop_missing(source, columns)).filter(pl.col("day") >= 0)
    deposits, withdrawals = (pl.col(name).fill_null(0) for name in _MOVES)
    change = pl.col("end_balance_gwei") - pl.col("start_balance_gwei")
    rows = rows.with_columns(
        date=pl.col("time").dt.date(),
        effective_balance_gwei=find_stake(),
        change=change + withdrawals,
        withdrawals_gwei=withdrawals,
        deposits_gwei=deposits,
    )
    rows = _credit_deposits(rows).with_columns(
        consensus_income_gwei=pl.col("change") - pl.col("deposits_gwei")
    )
    # The balance of a new validator begins with 0 on the day of its deposit.
    income = pl.col("consensus_income_gwei")
    balance = pl.col("start_balance_gwei") + pl.col("deposits_gwei")
    is_moved = (income > balance * _LARGEST_RISE) | (income < -balance * _LARGEST_FALL)
    rows = rows.filter(~is_moved)
    received = fees = pl.lit(None, pl.Int128)
    if blocks is not None:
        rows = rows.join(sum_blocks(blocks, length), on=_KEYS, how="left")
        received, fees = (
            pl.when("has_block").then(name).otherwise(0).cast(pl.Int128)
            for name in ("received", "fees")
        )
    consensus = pl.col("consensus_income_gwei").cast(pl.Int128) * _WEI_PER_GWEI
    rows = rows.with_columns(received=received, fees=fees).with_columns(
        priority_fees_wei=pl.col("fees").cast(pl.Decimal(28, 0)),
        execution_income_wei=pl.col("received").cast(pl.Decimal(28, 0)),
        net_income_wei=(consensus + pl.col("received")).cast(pl.Decimal(28, 0)),
        **{
            BASIS: pl.when(pl.col("received").is_null())
            .then(pl.lit(UNKNOWN))
            .otherwise(pl.lit(RECEIVED))
        },
    )
    result = rows.select(
        "day",
        "time",
        "date",
        "validator_index",
        "effective_balance_gwei",
        "consensus_income_gwei",
        "execution_income_wei",
        "net_income_wei",
        "withdrawals_gwei",
        "deposits_gwei",
        "priority_fees_wei",
        BASIS,
    )
    return return_table(result.sort("day", "validator_index"), source, stats)


def find_stake() -> pl.Expr:
    """Return the effective balance of a day: at its end, if a new validator has none before."""
    start, end = map(pl.col, STAKES)
    return pl.when(start == 0).then(end.fill_null(0)).otherwise(start)


def _credit_deposits(rows: pl.DataFrame) -> pl.DataFrame:
    """Move deposits to the day on which the balance rose by them; drop those that come later."""
    amounts = rows.filter(pl.col("deposits_gwei").sum().over("validator_index") > 0)
    credited: list[tuple[int, int, int]] = []
    waiting: list[int] = []
    of: int | None = None
    ordered = amounts.select(*_KEYS, "deposits_gwei", "change").sort(_KEYS)
    for validator, day, deposit, change in ordered.iter_rows():
        if validator != of:
            of, waiting = validator, []
        if deposit:
            waiting.append(deposit)
        total, left = 0, change
        while waiting and left > waiting[0] * _CREDITED:
            left -= waiting[0]
            total += waiting.pop(0)
        credited.append((validator, day, total))
    table = pl.DataFrame(credited, [*_KEYS, "credited"], orient="row").cast(pl.Int64)
    joined = rows.join(table, on=_KEYS, how="left")
    return joined.with_columns(deposits_gwei=pl.col("credited").fill_null(0)).drop("credited")


def sum_blocks(blocks: IntoFrame, length: int) -> pl.DataFrame:
    """Sum what validators received by day; null where the payment of a block is unknown."""
    check_distinct(blocks, ["block_number"], loader="load_produced_blocks")
    lazy = open_frame(blocks, _BLOCK, loader="load_produced_blocks")
    rows = collect(drop_missing(lazy, _BLOCK[:2]))
    amount, fees = (pl.col(name).cast(pl.Int128) for name in _BLOCK[2:])
    return rows.group_by(
        validator_index=pl.col("proposer_index").cast(pl.Int64),
        day=(pl.col("epoch") // length).cast(pl.Int64),
    ).agg(
        received=sum_known(amount),
        fees=sum_known(fees),
        has_block=pl.lit(value=True),
    )
