"""Income of many validators from their daily statistics: one row per day instead of 225."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.analysis.engines import open_frame, return_table
from beaconframes.analysis.execution_income import BASIS, RECEIVED, UNKNOWN
from beaconframes.calendar import MAINNET, get_chain
from beaconframes.frames import collect, drop_missing

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.calendar import Chain

_KEYS = ["validator_index", "day"]
_BALANCES = ["start_balance_gwei", "end_balance_gwei"]
_MOVES = ["deposits_amount_gwei", "withdrawals_amount_gwei"]
_STAKE = "start_effective_balance_gwei"
_BLOCK = ["proposer_index", "epoch", "producer_reward_wei"]
_WEI_PER_GWEI = 10**9
_VOTE_REWARD, _VOTE_PENALTY = 54, 40
"""Weights of the three votes in rewards, and of source and target votes in penalties."""


def daily_income(
    stats: IntoFrameT, blocks: IntoFrame | None = None, *, chain: Chain | str = MAINNET
) -> IntoFrameT:
    """Compute income from daily statistics. One row per validator and beacon day.

    For many validators and long ranges: the statistics have one row per day, an income history one
    per epoch. Consensus income is the change of the balance, less deposits, plus withdrawals. It
    has no components, and includes what a consolidation moved.

    Parameters
    ----------
    stats
        Frame of `load_validator_stats`.
    blocks
        Frame of `load_produced_blocks`, of the same validators. Without it, execution income is
        unknown.
    chain
        Chain of the days; it sets the number of epochs in a day.

    Returns
    -------
    The same kind of frame
        ``day``, ``time`` (start of the day, UTC), ``date`` (of this time), ``validator_index``,
        ``effective_balance_gwei`` at its start, ``consensus_income_gwei``,
        ``execution_income_wei``, ``net_income_wei``, ``withdrawals_gwei``, ``deposits_gwei`` and
        ``execution_income_basis``. Days without balances are left out; a missing deposit or
        withdrawal counts as 0. Sorted by day and validator. This computes at once.
    """
    length = get_chain(chain).epochs_per_day
    columns = [*_KEYS, "time", _STAKE, *_BALANCES]
    source = open_frame(stats, [*columns, *_MOVES], loader="load_validator_stats")
    rows = collect(drop_missing(source, columns)).filter(pl.col("day") >= 0)
    deposits, withdrawals = (pl.col(name).fill_null(0) for name in _MOVES)
    change = pl.col("end_balance_gwei") - pl.col("start_balance_gwei")
    rows = rows.with_columns(
        date=pl.col("time").dt.date(),
        effective_balance_gwei=pl.col(_STAKE),
        consensus_income_gwei=change - deposits + withdrawals,
        withdrawals_gwei=withdrawals,
        deposits_gwei=deposits,
    )
    if blocks is None:
        received = pl.lit(None, pl.Int128)
    else:
        rows = rows.join(_sum_blocks(blocks, length), on=_KEYS, how="left")
        received = pl.when("has_block").then("received").otherwise(0)
    consensus = pl.col("consensus_income_gwei").cast(pl.Int128) * _WEI_PER_GWEI
    rows = rows.with_columns(received=received.cast(pl.Int128)).with_columns(
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
        BASIS,
    )
    return return_table(result.sort("day", "validator_index"), source, stats)


def daily_losses(stats: IntoFrameT, *, chain: Chain | str = MAINNET) -> IntoFrameT:
    """Estimate what missed votes cost, from daily statistics. One row per validator and day.

    The reward of a vote is the median of the validators that missed nothing on the day: their
    income without proposals and sync committees, by effective balance. A missed vote costs this
    reward and a penalty of 40/54 of it, the proportion of the protocol.

    Parameters
    ----------
    stats
        Frame of `load_validator_stats`; more validators give a better estimate.
    chain
        Chain of the days; it sets the number of epochs, and so of votes, in a day.

    Returns
    -------
    The same kind of frame
        ``validator_index``, ``day``, ``missed_attestations``, ``missed_sync``, and
        ``attestation_lost_gwei``, null on days without a validator to compare. Days on which
        nothing was missed have no row. Sorted. This computes at once.
    """
    counts = ["missed_attestations", "missed_sync"]
    duties = ["proposed_blocks", "participated_sync"]
    columns = [*_KEYS, _STAKE, *_BALANCES, *_MOVES, *counts, *duties]
    source = open_frame(stats, columns, loader="load_validator_stats")
    rows = collect(drop_missing(source, [*_KEYS, _STAKE, *_BALANCES]))
    rows = rows.filter(pl.col(_STAKE) > 0)
    income = pl.col("end_balance_gwei") - pl.col("start_balance_gwei")
    income += pl.col(_MOVES[1]).fill_null(0) - pl.col(_MOVES[0]).fill_null(0)
    others = pl.sum_horizontal(*(pl.col(name).fill_null(0) for name in [*counts, *duties]))
    rate = pl.when((others == 0) & (income > 0)).then(income / pl.col(_STAKE))
    rows = rows.with_columns(rate=rate.median().over("day"))
    votes = get_chain(chain).epochs_per_day
    lost = pl.col("missed_attestations") * pl.col(_STAKE) * pl.col("rate") / votes
    lost *= (_VOTE_REWARD + _VOTE_PENALTY) / _VOTE_REWARD
    result = rows.select(
        *_KEYS,
        *(pl.col(name).fill_null(0) for name in counts),
        attestation_lost_gwei=lost.round().cast(pl.Int64),
    ).filter(pl.sum_horizontal(counts) > 0)
    return return_table(result.sort(_KEYS), source, stats)


def _sum_blocks(blocks: IntoFrame, length: int) -> pl.DataFrame:
    """Sum what validators received by day; null where the payment of a block is unknown."""
    lazy = open_frame(blocks, _BLOCK, loader="load_produced_blocks")
    rows = collect(drop_missing(lazy, _BLOCK[:2]))
    amount = pl.col("producer_reward_wei").cast(pl.Int128)
    return rows.group_by(
        validator_index=pl.col("proposer_index").cast(pl.Int64),
        day=(pl.col("epoch") // length).cast(pl.Int64),
    ).agg(
        received=pl.when(~amount.is_null().any()).then(amount.sum()),
        has_block=pl.lit(value=True),
    )
