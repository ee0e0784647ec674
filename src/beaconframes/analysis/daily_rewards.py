"""What votes, blocks and sync duties of a day earned: estimated from rows of days."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.analysis.daily_income import STAKES, daily_income, find_stake
from beaconframes.analysis.engines import open_frame
from beaconframes.frames import collect, drop_missing

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.calendar import Chain

OWN_MEDIAN = "median of the validators"
NETWORK_MEAN = "mean of the network"
MISSED_VOTE = (54 + 40) / 54
"""What a missed vote costs, in rewards of a vote: source and target votes have penalties."""
SHARES = {"votes": 54, "block": 8, "sync": 2}
"""The share of each duty in the rewards of the network, of `ALL_SHARES`, since Altair."""
ALL_SHARES = 64
_WEI_PER_GWEI = 10**9
_MOST_MISSED = 0.5
"""Validators that earned less than this share of their votes show no rate of the day."""
_KEYS = ["validator_index", "day"]
_DUTIES = ["proposed_blocks", "participated_sync", "missed_sync"]
_NETWORK: dict[str, Any] = {
    "day": pl.Int64,
    "network_rate": pl.Float64,
    "network_block_gwei": pl.Int64,
    "network_sync_gwei": pl.Float64,
    "network_fees_wei": pl.Decimal(28, 0),
}
ACTIVE_PERIOD = ["validator_index", "activation_epoch", "exit_epoch"]
COLUMNS = [
    *(*_KEYS, "time", *STAKES, "start_balance_gwei", "end_balance_gwei"),
    *("deposits_amount_gwei", "withdrawals_amount_gwei", "missed_attestations", *_DUTIES),
]
"""The columns of daily statistics that estimates need."""


def average_network(index: IntoFrame | None, clock: Chain) -> pl.DataFrame:
    """Return what the duties of the network earned on average, one row per day of the index.

    ``network_rate`` is the reward of the votes of a day by effective balance. Penalties of the
    network lower all of them.
    """
    schema = pl.Schema(_NETWORK)
    if index is None:
        return pl.DataFrame(schema=schema)
    names = ["day", "consensus_rewards_sum_wei", "effective_balances_sum_wei", "tx_fees_sum_wei"]
    rows = collect(drop_missing(open_frame(index, names, loader="load_yield_index"), names))
    rewards, stake, fees = (pl.col(name).cast(pl.Int128) for name in names[1:])
    slots = clock.epochs_per_day * clock.slots_per_epoch
    gwei = ALL_SHARES * slots * _WEI_PER_GWEI
    # A signature earns so few gwei that only its sums are rounded.
    sync = rewards.cast(pl.Float64) * SHARES["sync"] / (gwei * clock.sync_committee_size)
    means = rows.filter(rewards > 0, stake > 0).select(
        "day",
        network_rate=rewards.cast(pl.Float64)
        / stake.cast(pl.Float64)
        * SHARES["votes"]
        / ALL_SHARES,
        network_block_gwei=rewards * SHARES["block"] // gwei,
        network_sync_gwei=sync,
        network_fees_wei=fees // slots,
    )
    return means.unique("day", keep="last").cast(schema)


def add_active_epochs(rows: pl.DataFrame, periods: pl.DataFrame, length: int) -> pl.DataFrame:
    """Add ``active_epochs``: the number of active epochs of a day, of at most *length*."""
    begin = pl.col("day") * length
    end = pl.min_horizontal("exit_epoch", begin + length)
    # Before its activation is known, a validator is not active.
    start = pl.max_horizontal(pl.col("activation_epoch").fill_null(end), begin)
    joined = rows.join(periods.select(ACTIVE_PERIOD), on="validator_index")
    # Epochs of pandas may be floats.
    active = (end - start).clip(0).cast(pl.Int64)
    return joined.with_columns(active_epochs=active).drop(ACTIVE_PERIOD[1:])


def add_vote_rates(stats: pl.DataFrame, network: pl.DataFrame, clock: Chain) -> pl.DataFrame:
    """Add ``income``, ``stake``, and ``rate``: the reward of all votes of a day by *stake*.

    It is the median of the validators without another duty that missed the fewest votes, half of
    them; a row with an unknown count does not say so. What they missed is added. On a day without
    such a validator, it is that of the *network*. A validator with less than half of that rate was
    not active all day, and neither was one whose balance begins with 0. On a day that *network*
    does not have, the limit is half of the median of all validators.
    """
    days = daily_income(stats, chain=clock).select(*_KEYS, income="consensus_income_gwei")
    rows = stats.join(days, on=_KEYS, how="left").with_columns(stake=find_stake())
    rows = rows.filter(pl.col("stake") > 0).join(network, on="day", how="left")
    missed = pl.col("missed_attestations")
    votes = 1 - missed * MISSED_VOTE / clock.epochs_per_day
    rate = pl.col("income") / (pl.col("stake") * votes)
    has_only_votes = pl.all_horizontal(pl.col(_DUTIES) == 0) & (votes > _MOST_MISSED)
    is_whole = pl.col(STAKES[0]) > 0
    # Votes have 54 of 64 parts of all rewards: half of the validators cannot earn twice as much.
    median = rate.filter(is_whole & (rate > 0)).quantile(0.5, "lower").over("day")
    is_active = (rate > 0) & (rate > pl.coalesce("network_rate", median) / 2)
    rows = rows.with_columns(
        known=pl.when(has_only_votes & is_whole & is_active).then(missed), own_rate=rate
    )
    is_compared = pl.col("known") <= pl.col("known").median().over("day")
    compared = pl.when(is_compared).then("own_rate").median().over("day")
    rows = rows.with_columns(own_rate=compared).drop("known")
    basis = (
        pl.when(pl.col("own_rate").is_not_null())
        .then(pl.lit(OWN_MEDIAN))
        .when(pl.col("network_rate").is_not_null())
        .then(pl.lit(NETWORK_MEAN))
    )
    return rows.with_columns(rate=pl.coalesce("own_rate", "network_rate"), rate_basis=basis)


def find_block_rewards(stats: pl.DataFrame, network: pl.DataFrame, clock: Chain) -> pl.DataFrame:
    """Return what blocks earned on the consensus layer, from the income beyond that of votes.

    One row per validator and day, ``cost_consensus_gwei`` is the mean of its ``blocks``. Days with
    duties in a sync committee are left out, and so are unknown ones, and days without a validator
    that only voted: the mean of the network is not exact enough to subtract.
    """
    rows = add_vote_rates(stats, network, clock)
    rows = rows.filter(pl.col("rate_basis") == OWN_MEDIAN)
    missed = pl.col("missed_attestations") * MISSED_VOTE / clock.epochs_per_day
    votes = pl.col("rate") * pl.col("stake") * (1 - missed)
    reward = (pl.col("income") - votes) / pl.col("proposed_blocks")
    has_no_sync = pl.all_horizontal(pl.col(_DUTIES[1:]) == 0)
    rows = rows.filter(
        pl.col(STAKES[0]) > 0, pl.col("proposed_blocks") > 0, has_no_sync, reward > 0
    )
    return rows.select(
        "day", blocks="proposed_blocks", cost_consensus_gwei=reward.round().cast(pl.Int64)
    )
