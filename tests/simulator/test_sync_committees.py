"""Test simulated sync committees: seats, signatures and rewards."""

import numpy as np
import polars as pl

from ..support.simulated_chain import ETH, KEY, assert_empty


def test_each_period_has_512_seats(simulated):
    """Each period of the epochs, and the next period, has 512 seats."""
    committees = simulated.sync_committees
    periods = range(simulated.first // 256, simulated.latest // 256 + 2)

    assert [p for p in periods for _ in range(512)] == committees["period"].to_list()
    assert [*range(512)] * len(periods) == committees["seat"].to_list()
    assert_empty(
        committees.filter(
            (pl.col("start_epoch") != pl.col("period") * 256)
            | (pl.col("end_epoch") != pl.col("period") * 256 + 255)
        )
    )
    assert committees.group_by("period").agg(pl.col("validator_index").n_unique()).height
    assert committees.select("period", "validator_index").is_duplicated().any()


def test_members_have_income_in_every_epoch(simulated):
    """Members of a committee have income throughout its period."""
    span = pl.int_ranges(
        pl.max_horizontal("start_epoch", simulated.first),
        pl.min_horizontal("end_epoch", simulated.finalized) + 1,
    )
    members = simulated.sync_committees.unique(["period", "validator_index"])
    duties = members.select("validator_index", epoch=span).explode("epoch", empty_as_null=False)

    assert_empty(duties.join(simulated.income_history, KEY, how="anti"))


def test_seats_earn_or_lose_by_their_bits(simulated):
    """A seat earns for each signature in a block, and loses as much for each missing one."""
    blocks = simulated.produced.filter(pl.col("epoch") <= simulated.finalized)
    text = "".join(blocks["sync_aggregate_bits"].str.slice(2))
    # Seat i is bit i, the lowest bit of each byte first.
    data = np.frombuffer(bytes.fromhex(text), np.uint8).reshape(-1, 64)
    signed = np.unpackbits(data, axis=1, bitorder="little").astype(np.int64)
    popcount = signed.sum(axis=1)
    assert (popcount / 512).tolist() == blocks["sync_aggregate_participation"].to_list()

    shape = (simulated.finalized - simulated.first + 1, simulated.meta["validators"])
    earned, penalties, shared = np.zeros((3, *shape), np.int64)
    seats = simulated.sync_committees.partition_by("period", as_dict=True)
    epochs, proposers = blocks["epoch"].to_numpy(), blocks["proposer_index"].to_numpy()
    increments = pl.col("total") // ETH
    states = simulated.states.group_by("epoch").agg(
        (pl.col("per_increment") * increments).first() * 2 // 64 // 32 // 512
    )
    for epoch, share in states.filter(pl.col("epoch") <= simulated.finalized).rows():
        row, here = epoch - simulated.first, epochs == epoch
        members = seats[(epoch // 256,)]["validator_index"].to_numpy()
        got = signed[here].sum(axis=0)
        np.add.at(earned[row], members, got * share)
        np.add.at(penalties[row], members, (here.sum() - got) * share)
        np.add.at(shared[row], proposers[here], popcount[here] * (share * 8 // 56))
    rows = simulated.income_history
    where = rows["epoch"].to_numpy() - simulated.first, rows["validator_index"].to_numpy()
    for name, expected in (
        ("sync_committee_reward_gwei", earned),
        ("sync_committee_penalty_gwei", penalties),
        ("proposer_sync_inclusion_reward_gwei", shared),
    ):
        paid = np.zeros_like(expected)
        paid[where] = rows[name].to_numpy()
        assert np.array_equal(expected, paid)
