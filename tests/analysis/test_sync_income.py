"""Duties in sync committees from income, compared with the bits of the blocks."""

import polars as pl

from beaconframes import analysis


def test_the_share_signed_is_that_of_the_bits(chain):
    """Rewards and penalties of a period show the same share as the bits of its blocks."""
    period = pl.col("epoch").is_between(256, 467)
    income = chain.scan("income_history").filter(period, pl.col("validator_index") < 60).collect()
    blocks = chain.scan("blocks").filter(period).collect()
    seats = chain.scan("sync_committees").filter(pl.col("period") == 1).collect()

    rows = analysis.sync_income(income)

    bits = analysis.sync_against_committee(blocks, seats, range(60))
    assert bits["validator_index"].to_list() == rows["validator_index"].to_list()
    assert bits.height > 10
    # A signature is worth slightly more or less in another epoch: the active balance changes.
    assert (bits["rate"] - rows["signed_rate"]).abs().max() < 4e-3
    assert (2 * income["sync_committee_penalty_gwei"].sum()) == rows["lost_gwei"].sum()


def test_epochs_add_up_to_periods(chain):
    """A row per epoch has the amounts of that epoch."""
    mine = (pl.col("validator_index") < 20) & pl.col("epoch").is_between(250, 270)
    income = chain.scan("income_history").filter(mine).collect()

    epochs = analysis.sync_income(income, every="epoch")
    periods = analysis.sync_income(income)

    keys = ["validator_index", "period"]
    sums = epochs.group_by(keys).agg(pl.sum("reward_gwei"), pl.sum("penalty_gwei")).sort(keys)
    assert sums.equals(periods.select(sums.columns))
    assert {0, 1} == set(periods["period"])
